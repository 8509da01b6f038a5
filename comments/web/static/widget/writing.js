/** The texts of the modules that load when somebody writes, and of errors. */

import { entries } from "./strings-writing.js";
import { texts } from "./words.js";

export const { t } = texts(entries);
