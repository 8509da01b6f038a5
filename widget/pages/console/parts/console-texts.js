/** The texts for the admin console's scripts. The page contains them in the live region. */

import { texts } from "../../../source/shared/words.js";

export const live = /** @type {HTMLElement} */ (document.querySelector("#live"));

export const { t } = texts(JSON.parse(live.dataset.texts ?? "{}"));
