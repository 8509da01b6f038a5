/** Optional parts of a form, which depend on the server: the form works without them. */

import { button, el } from "../../shared/dom.js";
import { offer as offerSignIn } from "./signin.js";
import { t as widgetText } from "../../shared/words.js";
import { t } from "../base/writertexts.js";

/**
 * Add a part with `add()`. If that fails, show `sentence` in `host`, with a button to try again.
 *
 * @param {HTMLElement} host
 * @param {string} sentence
 * @param {() => Promise<unknown>} add
 */
export async function addPart(host, sentence, add) {
  try {
    await add();
  } catch {
    const line = el("p", { class: "ft-hint", role: "status" }, `${sentence} `);
    const again = () => {
      line.remove();
      addPart(host, sentence, add);
    };
    line.append(button("ft-again", widgetText("again"), again));
    host.append(line);
  }
}

/** Offer the ways to sign in if guests cannot comment, or say that there is none. */
export function offerEntrance(anchor, site, onSignIn) {
  const sentence = t("no-sign-in");
  return addPart(anchor, sentence, async () => {
    if (await offerSignIn(anchor, site, onSignIn)) return;
    anchor.append(el("p", { class: "ft-hint", role: "status" }, sentence));
  });
}
