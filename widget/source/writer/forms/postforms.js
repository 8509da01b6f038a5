/**
 * The forms that post comments: one at the top of a thread, and one below a comment for a reply.
 * Loads when the reader begins to write.
 */

import { Composer } from "./composer.js";
import { button, el } from "../../shared/dom.js";
import { Draft } from "../base/drafts.js";
import { addPart } from "../identity/optionalparts.js";
import { quotation } from "./formatting.js";
import { logHint } from "./hints.js";
import * as ownstore from "../base/ownstore.js";
import { offer as offerMail } from "./notify.js";
import { showPosted } from "../comments/owncomments.js";
import { Proofs } from "../identity/proof.js";
import { offer as offerSignIn } from "../identity/signin.js";
import { preview } from "./preview.js";
import { stub } from "../../reader/stub.js";
import { t as widgetText } from "../../shared/words.js";
import { t } from "../base/writertexts.js";
import * as calls from "../base/calls.js";

/** @typedef {import("../../reader/comments/comment.js").Comment} Comment */

/** States of the thread for this reader, by the code of a refused post. */
const REFUSALS = {
  __proto__: null,
  "thread-closed": "closed",
  "read-only": "read-only",
  "author-banned": "banned",
};

export class PostForms {
  #guest;
  #place;
  #thread;
  #events;

  /**
   * @param {import("../../reader/guest.js").Guest} guest
   * @param {Place} place
   * @param {import("../../reader/thread.js").Thread} thread
   */
  constructor(guest, place, thread) {
    this.#guest = guest;
    this.#place = place;
    this.#thread = thread;
    this.#events = thread.events;
  }

  /** Complete the form at the top of the thread. */
  main(unusedForm) {
    return this.#makeForm({
      stub: unusedForm,
      submit: t("post"),
      parent: null,
      draft: new Draft(this.#place.spot),
      cancel: null,
    });
  }

  /**
   * Open the form below a comment, or focus it if it is open.
   *
   * @param {Comment} comment
   */
  reply(comment) {
    if (!comment.slot.contains(comment.composer?.element ?? null)) this.#openReply(comment);
    comment.composer?.focus();
  }

  /**
   * Open the form below a comment if the reader has a draft of a reply.
   *
   * @param {Comment} comment
   */
  reopen(comment) {
    if (this.draftBelow(comment.id).values) this.#openReply(comment);
  }

  draftBelow(id) {
    return new Draft(`${this.#place.spot}:${id}`);
  }

  /** @param {Comment} comment */
  #openReply(comment) {
    const quote = button("ft-quote", t("quote"), () => {
      const { body } = comment;
      if (body) composer.insert(quotation(selectionIn(body) || body.innerText));
    });
    const composer = this.#makeForm({
      stub: stub(widgetText("reply-to", { name: comment.name }), t("reply-here")),
      submit: t("post-reply"),
      parent: comment.id,
      draft: this.draftBelow(comment.id),
      cancel: () => comment.leave(),
      aside: [
        el("p", { class: "ft-answering" }, t("replying-to", { name: comment.name }), " ", quote),
      ],
    });
    comment.composer = composer;
    comment.slot.replaceChildren(composer.element);
  }

  /** @param {{ parent: string | null, draft: Draft } & Record<string, any>} options */
  #makeForm({ parent, draft, ...shown }) {
    /** @type {Awaited<ReturnType<import("./notify.js").offer>> | undefined} */
    let notify;
    /** @type {Proofs | null} */
    let proofs = null;
    const { images, website } = this.#thread.options;
    const { staff } = this.#guest;
    const isGuest = this.#guest.name === null;
    const composer = new Composer({
      .../** @type {any} */ (shown),
      fields: isGuest ? ["body", "name", ...(website ? ["website"] : [])] : ["body"],
      account: this.#guest.name,
      isStaff: staff !== null,
      values: this.#guest.profile,
      draft,
      send: async (values, subject) =>
        staff
          ? this.#postAsStaff({ values, subject, parent }, draft, staff)
          : this.#post({ values, subject, parent }, draft, notify, proofsForReader()),
      preview: (body) => preview(this.#place.site, body, images),
    });
    const form = composer.element;
    const onFirstUse = () => {
      if (staff) return;
      addPart(form, t("no-mail"), async () => {
        notify = await offerMail(form, this.#place);
      });
      if (parent !== null || !isGuest) return;
      addPart(form, t("no-sign-in"), () =>
        offerSignIn(form, this.#place.site, (member) => this.#events.send("entered", member)),
      );
    };
    const proofsForReader = () =>
      this.#guest.name === null // members need no proof
        ? (proofs ??= new Proofs(this.#place.site, form))
        : null;
    let isWarned = false;
    // Other errors may be over when the reader posts.
    const warnEarly = (error) => {
      if (isWarned || error.code !== "origin-not-allowed") return;
      isWarned = true;
      composer.warn(error);
      logHint(error, this.#place);
    };
    const begin = () => proofsForReader()?.prepare().catch(warnEarly);
    form.addEventListener("focusin", onFirstUse, { __proto__: null, once: true });
    form.addEventListener("focusin", begin);
    form.addEventListener("input", begin);
    if (form.matches(":focus-within")) {
      form.dispatchEvent(new FocusEvent("focusin"));
    }
    return composer;
  }

  async #post({ values, subject, parent }, draft, notify, proofs) {
    const wanted = notify?.wanted;
    const { name } = this.#guest;
    const content = name === null ? values : { ...values, name };
    const body = { ...content, ...(parent && { parent }), ...(subject && { subject }) };
    const send = (attempt) => {
      const post = (proved) => calls.post(this.#place, { ...body, ...proved }, attempt);
      return proofs ? proofs.send(post) : post();
    };
    const answer = await this.#send(send, draft, values).catch((error) => {
      this.#noteRefusal(error);
      logHint(error, this.#place);
      throw error;
    });
    ownstore.keep(this.#guest, answer.comment, values, answer.token, answer.expires);
    const comment = this.#showPosted(answer.comment, parent);
    if (wanted) notify.ask(wanted, answer.token, comment.slot);
  }

  /**
   * Show a newly posted comment, and return it.
   *
   * @param {UncountedComment} data
   * @param {string | null} parent
   */
  #showPosted(data, parent) {
    const pages = this.#thread.pages;
    const above = pages.listing.get(parent);
    if (above?.slot.querySelector(".ft-sending")) above.close(); // unless the reader types on
    const comment = this.#thread.make({ replies: 0, ...data });
    showPosted(pages, comment);
    this.#events.send("posted", data);
    this.#events.send("say", comment.isPending ? widgetText("pending") : widgetText("posted"));
    pages.catchUp().catch(() => {}); // the reader's own comment is visible
    return comment;
  }

  /** Tell the thread if it takes no more comments from this reader. */
  #noteRefusal({ code = "" }) {
    if (Object.hasOwn(REFUSALS, code)) this.#events.send("refused", REFUSALS[code]);
  }

  async #postAsStaff({ values, subject, parent }, draft, staff) {
    const { name } = staff;
    const sent = { ...values, name, ...(parent && { parent }), ...(subject && { subject }) };
    try {
      const { comment } = await staff.post(sent, draft.attempt(values, null).key);
      this.#showPosted(comment, parent);
    } catch (error) {
      if (!staff.refused(error)) this.#noteRefusal(error);
      throw error;
    }
  }

  /** Send an attempt. If the server no longer accepts the token, send it again without a token. */
  async #send(send, draft, values) {
    const { name, token } = this.#guest;
    if (name !== null) {
      // An account's token is not part of the attempt: the key and the account identify a retry.
      return send({ ...draft.attempt(values, null), token });
    }
    const attempt = draft.attempt(values, token);
    try {
      return await send(attempt);
    } catch (error) {
      if (error.status !== 401 || !attempt.token) throw error;
      ownstore.dropToken(this.#guest);
      draft.dropAttempt(values);
      return send(draft.attempt(values, null));
    }
  }
}

/** Return the text that the reader has selected in an element, or "". */
function selectionIn(element) {
  const root = element.getRootNode();
  // Chromium selects across shadow roots only through the root's own method.
  const selection = root.getSelection?.() ?? document.getSelection();
  if (!selection || selection.isCollapsed || !element.contains(selection.anchorNode)) return "";
  return selection.toString();
}
