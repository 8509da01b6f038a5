/**
 * What a writer wants to be mailed: replies, new comments, or nothing, and where to.
 *
 * Loaded when somebody begins to write, never before a comment is shown, and offered only where the
 * server sends mail. The address is remembered nowhere: the embedding page can read what is.
 */

import { Problem } from "./api.js";
import { el } from "./dom.js";
import { t } from "./writing.js";
import { subscription } from "./writingcalls.js";

const LABELS = { replies: t("mail-replies"), thread: t("mail-thread") };
let count = 0; // ids need to be unique in their shadow root

/** Put the choice into a form, if the server sends mail; else null. `place` is {site, query}. */
export async function offer(form, place) {
  try {
    const { mail } = await subscription("GET", { __proto__: null, site: place.site });
    return mail ? new Notify(form, place) : null;
  } catch {
    return null; // it is no reason to trouble who writes
  }
}

class Notify {
  #place;
  #choices = { __proto__: null, replies: box(), thread: box() };
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
    const choices = Object.entries(this.#choices).map(([name, input]) =>
      el("label", { class: "ft-choice" }, input, " ", LABELS[name]),
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

  /** {email, replies, thread}, or null for nothing. Throws where the address cannot be one. */
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

  /** Have the address asked, and say so in `host`. The comment is posted whatever becomes of it. */
  async ask(wanted, token, host) {
    const told = el("p", { class: "ft-hint ft-note", role: "status" });
    host.append(told);
    try {
      await subscription("PUT", this.#place, wanted, token);
      // Not asked for once more with the next comment.
      for (const input of this.#boxes) input.checked = false;
      this.#toggle();
      told.textContent = t("mail-asked", { email: wanted.email });
    } catch (error) {
      told.textContent = t("mail-failed", { why: error.message });
    }
  }

  get #boxes() {
    return [this.#choices.replies, this.#choices.thread];
  }

  #toggle() {
    this.#address.hidden = !this.#boxes.some((input) => input.checked);
  }
}

function box() {
  return el("input", { type: "checkbox", class: "ft-box" });
}
