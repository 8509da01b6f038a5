/** The form below the header that subscribes an address to the thread's new comments. */

import { button, el, isBusy, setBusy } from "../../shared/dom.js";
import { t } from "../base/writertexts.js";
import { subscription } from "../base/calls.js";

let count = 0; // makes element ids unique in their shadow root

/**
 * Ask for the address. The server then sends a mail with a link to confirm the subscription.
 *
 * @param {HTMLElement} panel
 * @param {Place} place
 */
export function openSubscribeForm(panel, place) {
  const root = /** @type {ShadowRoot} */ (panel.getRootNode());
  const opener = /** @type {HTMLElement | null} */ (root.activeElement);
  const id = `ft-follow-${++count}`;
  const email = el("input", {
    id,
    type: "email",
    class: "ft-input",
    autocomplete: "email",
    required: true,
    maxlength: "254",
    "aria-describedby": `${id}-error`,
  });
  const error = el("p", { class: "ft-error", id: `${id}-error`, role: "alert" });
  const send = el("button", { type: "submit", class: "ft-submit" }, t("follow-send"));
  const close = () => {
    panel.replaceChildren();
    opener?.focus();
  };
  const form = el(
    "form",
    { class: "ft-following", "aria-label": t("follow-about"), novalidate: true },
    el("label", { for: id, class: "ft-label" }, t("follow-about")),
    el("div", { class: "ft-line" }, email, send, button("ft-cancel", t("cancel"), close)),
    error,
    el("p", { class: "ft-hint" }, t("mail-hint")),
  );
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (isBusy(send)) return;
    error.textContent = email.checkValidity() ? "" : t("mail-needed");
    if (error.textContent) {
      email.focus();
      return;
    }
    setBusy(send, true);
    const wanted = { __proto__: null, email: email.value, replies: false, thread: true };
    try {
      await subscription("PUT", place, wanted);
      const confirmation = t("mail-asked", { email: email.value });
      panel.replaceChildren(
        el("p", { class: "ft-hint", role: "status", tabindex: "-1" }, confirmation),
      );
      /** @type {HTMLElement} */ (panel.firstElementChild).focus();
    } catch (problem) {
      error.textContent = problem.message;
    }
    setBusy(send, false);
  });
  form.addEventListener("keydown", (event) => {
    event.stopPropagation(); // pages bind shortcuts to letters
    if (event.key === "Escape") close();
  });
  panel.replaceChildren(form);
  email.focus();
}
