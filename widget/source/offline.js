/** The sentence for a call that got no answer. */

import { t } from "./words.js";

/** Say why a call got no answer. */
export function unreachable() {
  return navigator.onLine ? t("unreachable") : t("offline");
}
