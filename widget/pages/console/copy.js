/** Buttons that copy, on pages without any other script. */

import { offerCopies } from "./parts/copying.js";

offerCopies();
