/**
 * The edit form and the delete question for the reader's own comments. Loads on first use.
 *
 * The form or question opens below its comment and closes when the server has responded.
 */

import { Composer } from "../forms/composer.js";
import { button, el, isBusy, isTyping } from "../../shared/dom.js";
import { Draft } from "../base/drafts.js";
import { duration } from "../base/durations.js";
import * as ownstore from "../base/ownstore.js";
import { removeDeleted } from "../comments/owncomments.js";
import { preview } from "../forms/preview.js";
import { stub } from "../../reader/stub.js";
import { t as widgetText } from "../../shared/words.js";
import { showBusy } from "../base/busy.js";
import { t } from "../base/writertexts.js";
import * as calls from "../base/calls.js";

/** @typedef {import("../../reader/comments/comment.js").Comment} Comment */

export class Changes {
  #guest;
  #place;
  #thread;

  /**
   * @param {import("../../reader/guest.js").Guest} guest
   * @param {Place} place
   * @param {import("../../reader/thread.js").Thread} thread
   */
  constructor(guest, place, thread) {
    this.#guest = guest;
    this.#place = place;
    this.#thread = thread;
  }

  /** Open the form that edits a comment's text. */
  open(comment) {
    const timeLeft = el("p", { class: "ft-answering" });
    const composer = new Composer({
      stub: stub(t("edit-yours"), ""),
      aside: [timeLeft],
      submit: t("save"),
      fields: ["body"],
      // The browser has no Markdown of a comment that was written elsewhere.
      values: { body: this.#guest.own(comment.id)?.body ?? comment.body?.innerText },
      draft: new Draft(`${this.#place.spot}:${comment.id}:edit`),
      send: ({ body }) => this.#save(comment, body),
      preview: (body) => preview(this.#place.site, body, this.#thread.options.images),
      account: null,
      cancel: () => comment.leave(),
    });
    comment.element.classList.add("ft-editing");
    comment.slot.replaceChildren(composer.element);
    this.#countDown(comment, timeLeft);
    composer.focus();
  }

  /** Show the time left to edit, until the form closes. */
  #countDown(comment, host) {
    const show = () => {
      const timeLeft = ownstore.editableFor(this.#guest, comment.id);
      if (timeLeft === Infinity) return;
      host.textContent =
        timeLeft > 0
          ? t("edit-left", { time: duration(timeLeft / 1000, "short") })
          : t("edit-over");
    };
    show();
    const ticking = setInterval(() => (host.isConnected ? show() : clearInterval(ticking)), 1000);
  }

  /** Ask before deleting a comment. */
  ask(comment) {
    const error = el("p", { class: "ft-error", role: "alert" });
    const yes = button("ft-remove-yes", t("delete-yes"), () => this.#remove(comment, yes, error));
    const no = button("ft-remove-no", t("delete-no"), () => comment.leave());
    const question = el("span", {}, t("delete-question"));
    const attributes = { class: "ft-ask", role: "group", "aria-label": t("delete-question") };
    comment.slot.replaceChildren(el("div", attributes, question, yes, no), error);
    no.focus();
  }

  async #save(comment, body) {
    try {
      const { comment: data } = await calls.edit(comment.data, body, this.#token(comment));
      ownstore.rewrite(this.#guest, comment.id, body);
      if (comment.slot.querySelector(".ft-sending")) comment.close(); // else the reader is typing
      this.#show(comment, data);
      this.#thread.pages.listing.point(comment);
      this.#thread.events.send("say", comment.isPending ? widgetText("pending") : t("saved"));
    } catch (error) {
      if (error.status === 412) await this.#catchUp(comment, error);
      throw error;
    }
  }

  /** Get the revision of a concurrent edit, such as one in another tab. Keep the typed text. */
  async #catchUp(comment, error) {
    const { comment: data } = await calls.read(comment.id);
    this.#show(comment, data);
    error.message = t("overtaken");
  }

  async #remove(comment, control, host) {
    if (isBusy(control)) return;
    const finish = showBusy(control, t("deleting"));
    host.textContent = "";
    try {
      await calls.retract(comment.id, this.#token(comment));
      ownstore.forget(this.#guest, comment.id);
      this.#show(comment, { status: "removed", author: null, html: "" });
      this.#removeFromList(comment);
    } catch (error) {
      host.textContent = error.message;
    } finally {
      finish();
    }
  }

  /** Show a comment's new data. Correct the total, which does not include pending comments. */
  #show(comment, data) {
    const { pages } = this.#thread;
    const wasPending = comment.isPending;
    comment.show({ ...comment.data, ...data });
    pages.countMore(Number(wasPending) - Number(comment.isPending));
  }

  #removeFromList(comment) {
    const { pages, header } = this.#thread;
    pages.countMore(-removeDeleted(pages.listing, comment));
    if (!isTyping()) (comment.element.isConnected ? comment.element : header.title).focus();
    this.#thread.events.send("say", t("deleted"));
  }

  #token(comment) {
    return this.#guest.own(comment.id)?.token;
  }
}
