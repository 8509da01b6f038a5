/** The error message for a call that got no response. */

import { t } from "./words.js";

/** Say why a call got no response. */
export function unreachable() {
  return navigator.onLine ? t("unreachable") : t("offline");
}
