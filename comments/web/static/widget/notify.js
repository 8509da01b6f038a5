/**
 * What a writer wants to be mailed: replies, new comments, or nothing, and where to.
 *
 * Loaded when somebody begins to write, never before a comment is shown, and offered only where the
 * server sends mail. The address is remembered nowhere: the embedding page can read what is.
 */

import * as api from "./api.js";
import { el } from "./dom.js";

const words = {
  mailMe: "Mail me about",
  replies: "replies to me",
  thread: "all new comments here",
  email: "Mail address",
  hint: "Not shown to anyone. You get one mail, with a link to confirm.",
  needed: "Please give your mail address.",
  asked: (email) => `Open the link in our mail to ${email} to confirm that you want mail.`,
  failed: (why) => `Your comment was posted, but mail could not be asked for. ${why}`,
};
let count = 0; // ids need to be unique in their shadow root

/** Put the choice into a form, if the server sends mail; else null. `place` is {site, query}. */
export async function offer(form, place) {
  try {
    const { mail } = await api.subscription("GET", { __proto__: null, site: place.site });
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
      el("label", { for: id, class: "ft-label" }, words.email),
      this.#email,
      el("p", { class: "ft-hint" }, words.hint),
    );
    const choices = Object.entries(this.#choices).map(([name, input]) =>
      el("label", { class: "ft-choice" }, input, " ", words[name]),
    );
    const group = el(
      "div",
      { class: "ft-buttons ft-notify", role: "group", "aria-label": words.mailMe },
      el("span", { class: "ft-label" }, words.mailMe),
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
      throw new api.Problem(0, words.needed);
    }
    const email = this.#email.value;
    return { __proto__: null, email, replies: replies.checked, thread: thread.checked };
  }

  /** Have the address asked, and say so in `host`. The comment is posted whatever becomes of it. */
  async ask(wanted, token, host) {
    const told = el("p", { class: "ft-hint ft-note", role: "status" });
    host.append(told);
    try {
      await api.subscription("PUT", this.#place, wanted, token);
      // Not asked for once more with the next comment.
      for (const input of this.#boxes) input.checked = false;
      this.#toggle();
      told.textContent = words.asked(wanted.email);
    } catch (error) {
      told.textContent = words.failed(error.message);
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
