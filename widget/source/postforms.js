/**
 * The forms that post comments: one at the top of a thread, and one below a comment for a reply.
 *
 * When the reader begins to write, this module loads the modules that only writers need: mail,
 * sign-in and proofs of work.
 */

import * as api from "./api.js";
import { Composer } from "./composer.js";
import { Draft } from "./drafts.js";
import * as lazy from "./lazy.js";
import { t } from "./words.js";

/** @typedef {import("./comment.js").Comment} Comment */

export class PostForms {
  #guest;
  #place;
  #thread;

  /**
   * The thread's note() returns nodes that name the account. Its posted(data, parent) shows a
   * comment and returns it. This class calls entered(member) when the reader has signed in.
   *
   * @param {import("./guest.js").Guest} guest
   * @param {Place} place
   * @param {{
   *   note: () => (Node | string)[] | null,
   *   preview: (body: string) => Promise<Node>,
   *   posted: (data: UncountedComment, parent: string | null) => Comment,
   *   entered: (member: Member) => void,
   * }} thread
   */
  constructor(guest, place, thread) {
    this.#guest = guest;
    this.#place = place;
    this.#thread = thread;
  }

  /** Make the form for the top of the thread. */
  main() {
    return this.#make({
      label: t("write"),
      submit: t("post"),
      parent: null,
      draft: new Draft(this.#spot),
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
    return new Draft(`${this.#spot}:${id}`);
  }

  get #spot() {
    const { site, query } = this.#place;
    return `${site}:${query.thread ?? query.page}`;
  }

  /** @param {Comment} comment */
  #openReply(comment) {
    const composer = this.#make({
      label: t("reply-to", { name: comment.name }),
      submit: t("post-reply"),
      parent: comment.id,
      draft: this.draftBelow(comment.id),
      cancel: () => comment.leave(),
    });
    comment.composer = composer;
    comment.slot.replaceChildren(composer.element);
  }

  #make({ label, submit, parent, draft, cancel }) {
    /** @type {Awaited<ReturnType<import("./notify.js").offer>> | undefined} */
    let notify;
    /** @type {Promise<import("./proof.js").Proofs | null> | null} */
    let proofs = null;
    const composer = new Composer({
      label,
      submit,
      fields: this.#guest.name === null ? ["body", "name", "website"] : ["body"],
      note: this.#thread.note(),
      values: this.#guest.profile,
      draft,
      send: async (values, subject) =>
        this.#post({ values, subject, parent }, draft, notify, await proving()),
      preview: this.#thread.preview,
      cancel,
    });
    const form = composer.element;
    const used = async () => {
      const writer = await lazy.writer().catch(() => null);
      notify = await writer?.offerMail(form, this.#place);
      if (parent !== null || this.#guest.name !== null) return;
      writer?.offerSignIn(form, this.#place.site, this.#thread.entered);
    };
    const proving = () => {
      if (this.#guest.name !== null) return null; // members need no proof
      return (proofs ??= lazy.writer().then(
        ({ Proofs }) => new Proofs(this.#place.site, form),
        () => (proofs = null), // the next call tries again; the server names what is missing
      ));
    };
    const begin = async () => (await proving())?.prepare();
    form.addEventListener("focusin", used, { __proto__: null, once: true });
    form.addEventListener("focusin", begin);
    form.addEventListener("input", begin);
    return composer;
  }

  async #post({ values, subject, parent }, draft, notify, proofs) {
    const wanted = notify?.wanted;
    const { name } = this.#guest;
    const said = name === null ? values : { ...values, name };
    const body = { ...said, ...(parent && { parent }), ...(subject && { subject }) };
    const send = (attempt) => {
      const post = (proved) => api.post(this.#place, { ...body, ...proved }, attempt);
      return proofs ? proofs.send(post) : post();
    };
    const answer = await this.#send(send, draft, values);
    this.#guest.keep(answer.comment.id, values, answer.token, answer.expires);
    const comment = this.#thread.posted(answer.comment, parent);
    if (wanted) notify.ask(wanted, answer.token, comment.slot);
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
      this.#guest.leave();
      draft.refused(values);
      return send(draft.attempt(values, null));
    }
  }
}
