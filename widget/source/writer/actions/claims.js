/** The notice that imported comments belong to the reader now, and the question to give them up. */

import { button, el, isBusy } from "../../shared/dom.js";
import { giveUpClaims } from "../base/calls.js";
import * as ownstore from "../base/ownstore.js";
import { showBusy } from "../base/busy.js";
import { t } from "../base/writertexts.js";

/**
 * Show the notice in `panel`. `end(member)` is called when the reader has given the comments up.
 *
 * @param {HTMLElement} panel
 * @param {import("../../reader/guest.js").Guest} guest
 * @param {string} site
 * @param {Member & { claimed: number }} member
 * @param {(member: Member) => void} end
 */
export function tellClaims(panel, guest, site, member, end) {
  const error = el("p", { class: "ft-error", role: "alert" });
  const close = () => panel.replaceChildren();
  const giveUp = button("ft-remove-yes", t("claims-end"), async () => {
    if (isBusy(giveUp)) return;
    const finish = showBusy(giveUp, t("sending"));
    error.textContent = "";
    try {
      await giveUpClaims(site, guest.token);
      ownstore.forgetListed(guest);
      close();
      end({ ...member, claimed: 0 });
    } catch (problem) {
      error.textContent = problem.message;
    }
    finish();
  });
  const keep = button("ft-remove-no", t("claims-keep"), close);
  const ask = () => {
    show(t("claims-question"), keep, giveUp);
    keep.focus();
  };
  show(
    t("claimed", { count: member.claimed }),
    button("ft-remove-no", t("claims-ok"), close),
    button("ft-claims-end", t("claims-other"), ask),
  );

  function show(text, ...buttons) {
    const attributes = { class: "ft-ask ft-claims", role: "group", "aria-label": text };
    const row = el("div", { class: "ft-buttons" }, ...buttons);
    panel.replaceChildren(el("div", attributes, el("p", {}, text), row, error));
  }
}
