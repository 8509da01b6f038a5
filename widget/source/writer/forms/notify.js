/**
 * E-mail subscriptions to replies or new comments. Loads when the reader begins to write.
 *
 * The choice is shown only if the server sends mail. The address is not stored, because the
 * embedding page can read all stored values.
 */

import { Problem } from "../../shared/api.js";
import { el } from "../../shared/dom.js";
import { t } from "../base/writertexts.js";
import { subscription } from "../base/calls.js";

let count = 0; // makes element ids unique in their shadow root

/** Add the choice to a form. Return null if the server sends no mail. `place` is {site, query}. */
export async function offer(form, place) {
  const { mail } = await subscription("GET", { __proto__: null, site: place.site });
  return mail ? new Notify(form, place) : null;
}

class Notify {
  #place;
  #choices = { __proto__: null, replies: checkbox(), thread: checkbox() };
  #email;
  #address;

  constructor(form, place) {
    this.#place = place;
    const id = `ft-email-${++count}`;
    this.#email = el("input", {
      id,
      type: "email",
      class: "ft-input ft-input-email",
      autocomplete: "email",
      required: true,
      maxlength: "254",
    });
    this.#address = el(
      "div",
      { class: "ft-field ft-field-email", hidden: true },
      el("label", { for: id, class: "ft-label" }, t("mail-address")),
      this.#email,
      el("p", { class: "ft-hint" }, t("mail-hint")),
    );
    const labels = { __proto__: null, replies: t("mail-replies"), thread: t("mail-thread") };
    const choices = Object.entries(this.#choices).map(([name, input]) =>
      el("label", { class: "ft-choice" }, input, " ", labels[name]),
    );
    const group = el(
      "div",
      { class: "ft-buttons ft-notify", role: "group", "aria-label": t("mail-about") },
      el("span", { class: "ft-label" }, t("mail-about")),
      ...choices,
    );
    group.addEventListener("change", () => this.#toggle());
    form.querySelector(".ft-buttons").before(group, this.#address);
  }

  /** {email, replies, thread}, or null if nothing is chosen. Throws if the address is not valid. */
  get wanted() {
    const { replies, thread } = this.#choices;
    if (!replies.checked && !thread.checked) return null;
    if (!this.#email.checkValidity()) {
      this.#email.focus();
      throw new Problem(0, t("mail-needed"));
    }
    const email = this.#email.value;
    return { __proto__: null, email, replies: replies.checked, thread: thread.checked };
  }

  /** Subscribe the address after the comment was posted, and show the result in `host`. */
  async ask(wanted, token, host) {
    const status = el("p", { class: "ft-hint ft-note", role: "status" });
    host.append(status);
    try {
      await subscription("PUT", this.#place, wanted, token);
      // The next comment must not subscribe again.
      for (const input of this.#boxes) input.checked = false;
      this.#toggle();
      status.textContent = t("mail-asked", { email: wanted.email });
    } catch (error) {
      status.textContent = t("mail-failed", { why: error.message });
    }
  }

  get #boxes() {
    return [this.#choices.replies, this.#choices.thread];
  }

  #toggle() {
    this.#address.hidden = !this.#boxes.some((input) => input.checked);
  }
}

function checkbox() {
  return el("input", { type: "checkbox", class: "ft-box" });
}
