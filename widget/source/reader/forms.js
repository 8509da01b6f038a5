/**
 * The entrance to the forms for writing. Until the reader uses one, the form at the top is one line,
 * and the writer bundle is not loaded.
 */

import { button, el, isTyping } from "../shared/dom.js";
import * as lazy from "../shared/lazy.js";
import * as memory from "../shared/memory.js";
import { unreachable } from "../shared/offline.js";
import { stub } from "./stub.js";
import { t } from "../shared/words.js";

/** @typedef {import("./comments/comment.js").Comment} Comment */

export class Forms {
  #guest;
  #place;
  #thread;
  /** @type {import("../writer/forms/postforms.js").PostForms | null} */
  #forms = null;
  /** @type {import("../writer/forms/composer.js").Composer | null} */
  #composer = null;
  /** @type {import("./stub.js").Stub | null} */
  #stub = null;

  /**
   * @param {import("./guest.js").Guest} guest
   * @param {Place} place
   * @param {import("./thread.js").Thread} thread
   */
  constructor(guest, place, thread) {
    this.#guest = guest;
    this.#place = place;
    this.#thread = thread;
    thread.events.listen({
      reply: (comment) => this.#reply(comment),
      shown: (comment) => this.#reopen(comment),
      rename: () => this.#rename(),
    });
  }

  /** Make the form for the top of the thread. */
  main() {
    const unusedForm = stub(t("write"), t("write-here"));
    this.#stub = unusedForm;
    this.#composer = null;
    const begin = () => this.#begin(unusedForm);
    unusedForm.form.addEventListener("focusin", begin);
    unusedForm.form.addEventListener("pointerenter", () => lazy.writer().catch(() => {}));
    if (memory.load(`draft:${this.#place.spot}`)) begin();
    return unusedForm.form;
  }

  /** Focus the form at the top. */
  focus() {
    if (!isTyping()) this.#stub?.body.focus();
  }

  /** Let a guest change the name, in the form at the top. */
  async #rename() {
    if (this.#stub) (await this.#begin(this.#stub))?.rename();
  }

  /** Make the notice that replaces the form if only signed-in readers can comment. */
  entrance() {
    const anchor = el("div", {});
    const open = button("ft-submit", t("sign-in-first"), async () => {
      const writer = await this.#thread.writer();
      if (!writer) return;
      open.remove();
      writer.offerEntrance(anchor, this.#place.site, (member) =>
        this.#thread.events.send("entered", member),
      );
    });
    return el(
      "div",
      { class: "ft-entrance" },
      el("p", { class: "ft-notice" }, t("members-only")),
      open,
      anchor,
    );
  }

  /**
   * Open the form below a comment, or focus it if it is open.
   *
   * @param {Comment} comment
   */
  async #reply(comment) {
    (await this.#loadForms())?.reply(comment);
  }

  /**
   * Open the form below a comment if the reader has a draft of a reply.
   *
   * @param {Comment} comment
   */
  async #reopen(comment) {
    if (!memory.load(`draft:${this.#place.spot}:${comment.id}`)) return;
    (await this.#loadForms())?.reopen(comment);
  }

  /** Make the form at the top complete; return its composer, or null if the code does not load. */
  async #begin(unusedForm) {
    if (unusedForm === this.#stub && this.#composer) return this.#composer;
    const forms = await this.#loadForms();
    if (unusedForm !== this.#stub) return null;
    for (const old of unusedForm.form.querySelectorAll(".ft-again")) old.parentElement.remove();
    if (forms === null) {
      const again = button("ft-again", t("again"), () => this.#begin(unusedForm));
      unusedForm.form.append(
        el("p", { class: "ft-error", role: "alert" }, `${unreachable()} `, again),
      );
      return null;
    }
    return (this.#composer ??= forms.main(unusedForm));
  }

  async #loadForms() {
    const writer = await this.#thread.writer();
    if (writer === null) return null;
    return (this.#forms ??= new writer.PostForms(this.#guest, this.#place, this.#thread));
  }
}
