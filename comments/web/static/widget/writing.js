/** The texts for modules that load when the reader writes, and for errors. */

import { entries } from "./strings-writing.js";
import { texts } from "./words.js";

export const { t } = texts(entries);
