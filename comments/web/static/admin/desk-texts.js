/** The texts of the admin console's scripts, which the page brings in the live region. */

import { texts } from "./words.js";

const live = /** @type {HTMLElement} */ (document.querySelector("#live"));

export const { t } = texts(JSON.parse(live.dataset.texts ?? "{}"));
