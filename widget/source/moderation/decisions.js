/**
 * A moderator's decisions in the thread.
 *
 * The thread's held comments appear at their places, or above the list if their places are not
 * shown. Each decision is sent at once and can be undone, so no confirmation is needed.
 */

import * as api from "../shared/api.js";
import { elementAfter } from "./heldplaces.js";
import * as moderator from "./moderator.js";
import { DecisionBox } from "./decisionbox.js";
import { t } from "../writer/base/writertexts.js";
import { read } from "../writer/base/calls.js";

/** @typedef {import("../reader/comments/comment.js").Comment} Comment */
/** @typedef {import("./moderator.js").ModeratedComment} ModeratedComment */
/** @typedef {import("./moderator.js").Verb} Verb */

/** Verbs that undo a decision; "restore" undoes all others. @type {Partial<Record<Verb, Verb>>} */
const UNDO = { pin: "unpin", unpin: "pin" };

export class Decisions {
  #guest;
  #place;
  #thread;
  #session;
  /** @type {Map<string, ModeratedComment>} the held comments of the thread */
  #held = new Map();
  /** @type {Map<string, CommentData>} what readers see in the places of some held comments */
  #tombstones = new Map();
  /** @type {Map<Comment, DecisionBox>} */
  #boxes = new Map();
  /** @type {Set<string>} ids of comments about which a decision is being sent */
  #busy = new Set();
  /** Whether there are held comments that the server did not list. */
  hasMore = false;

  /**
   * The session's token() returns the token or "", changed() shows the number of held comments, and
   * refused(error) ends the session if the server refuses it, and returns whether it does.
   *
   * @param {import("../reader/guest.js").Guest} guest
   * @param {Place} place
   * @param {import("../reader/thread.js").Thread} thread
   * @param {{
   *   token: () => string,
   *   refused: (error: any) => boolean,
   *   changed: () => void,
   * }} session
   */
  constructor(guest, place, thread, session) {
    this.#guest = guest;
    this.#place = place;
    this.#thread = thread;
    this.#session = session;
  }

  /** The number of held comments. */
  get count() {
    return this.#held.size;
  }

  /** Load the held comments and show them. */
  async load() {
    const token = this.#session.token();
    const { comments, more } = await moderator.heldComments(this.#place, token);
    if (token !== this.#session.token()) return; // the session has ended in the meantime
    const loaded = new Map(comments.map((moderated) => [moderated.comment.id, moderated]));
    for (const id of this.#held.keys()) if (!loaded.has(id)) this.#forget(this.#listing.get(id));
    this.#held = loaded;
    this.hasMore = more;
    this.place();
    this.#session.changed();
  }

  /** Show the held comments at their places, after any change of the list. */
  place() {
    const before = this.#listing.size;
    for (const moderated of this.#held.values()) this.#showHeld(moderated);
    if (this.#listing.size > before) this.#thread.pages.countMore(0);
  }

  /** Return to the readers' view of the list. */
  clear() {
    this.#held.clear();
    for (const comment of [...this.#listing]) this.#forget(comment);
    this.#boxes.clear();
    this.#thread.pages.countMore(0);
  }

  /**
   * Return what a moderator can do with a comment.
   *
   * @param {Comment} comment
   * @returns {import("../writer/base/menu.js").Item[]}
   */
  choices(comment) {
    const { author, pinned } = comment.data;
    /** @type {Verb[]} */
    const verbs = comment.isPending
      ? ["approve", "reject", "spam"]
      : ["hide", "spam", pinned ? "unpin" : "pin"];
    const choices = verbs.map((verb) => ({
      label: t(`decide-${verb}`),
      act: () => this.#decide(comment, verb),
    }));
    if (author?.kind === "staff") return choices;
    const ban = {
      label: t("ban", { name: comment.name }),
      class: "ft-danger",
      act: () => this.#ban(comment),
    };
    return [...choices, ban];
  }

  /**
   * Go to the next held comment after `from`, or to the first one. Return whether there is one.
   *
   * @param {Comment} [from]
   */
  goOn(from) {
    const waiting = [...this.#boxes.values()]
      .map(({ element }) => element)
      .filter((element) => element.isConnected && element.matches(".ft-held"))
      .sort((one, other) => (isBefore(one, other) ? -1 : 1));
    const next = waiting.find((element) => from && isBefore(from.element, element)) ?? waiting[0];
    if (!next) return false;
    this.#thread.pages.point(this.#listing.get(next.parentElement?.dataset.id));
    next.focus({ preventScroll: true });
    return true;
  }

  get #listing() {
    return this.#thread.pages.listing;
  }

  /** @param {ModeratedComment} moderated */
  #showHeld(moderated) {
    const { comment: data } = moderated;
    const comment = this.#findOrAdd(data);
    if (comment.isHeld && comment.isPending && comment.data.revision === data.revision) return;
    if (comment.isRemoved) this.#tombstones.set(data.id, comment.data);
    comment.isHeld = true;
    this.#draw(comment, data);
    this.#showChoices(comment, moderated);
  }

  /** Show the buttons to decide. They replace the menu of a comment by somebody else. */
  #showChoices(comment, moderated) {
    comment.element.classList.toggle("ft-reviewed", this.#guest.own(comment.id) === null);
    this.#boxOf(comment).hold(moderated, this.choices(comment));
  }

  /** Return the comment of the list. If it is missing, add it at its place or above the list. */
  #findOrAdd(data) {
    const known = this.#listing.get(data.id);
    const next = elementAfter(this.#listing, data);
    const isMisplaced = known?.isHeld && known.isAside && next !== undefined;
    if (known && !isMisplaced) return known;
    if (known?.element.matches(":focus-within")) return known;
    if (known) this.#listing.drop(known);
    const comment = this.#thread.make({ replies: 0, ...data });
    this.#listing.put(comment, next ?? null);
    comment.isAside = next === undefined;
    if (comment.isAside) this.#listing.aside.append(comment.element);
    return comment;
  }

  /** @param {Comment} comment @param {Partial<CommentData>} data */
  #draw(comment, data) {
    // A newer score may contain the moderator's own vote, which is added to the score of the page.
    const score = comment.data.score ?? data.score;
    comment.show({ ...comment.data, ...data, score });
    if (comment.isAside) comment.indent(0);
  }

  #boxOf(comment) {
    const box = this.#boxes.get(comment) ?? new DecisionBox(comment);
    this.#boxes.set(comment, box);
    return box;
  }

  /** Return to the readers' view of a comment. */
  #forget(comment) {
    if (!comment) return;
    const isOwn = this.#guest.own(comment.id) !== null;
    const isGone = comment.isHeld ? !isOwn : comment.isRemoved && comment.data.replies === 0;
    const tombstone = this.#tombstones.get(comment.id);
    this.#boxes.get(comment)?.remove();
    this.#boxes.delete(comment);
    this.#tombstones.delete(comment.id);
    comment.element.classList.remove("ft-decided", "ft-reviewed");
    comment.isHeld = false;
    if (tombstone) this.#draw(comment, tombstone);
    else if (isGone) this.#listing.drop(comment);
  }

  /** @param {Comment} comment @param {Verb} verb */
  #decide(comment, verb) {
    const { name, isHeld } = comment;
    return this.#send(comment, async (token) => {
      this.#apply(comment, await moderator.decide(comment.data, verb, token));
      const box = this.#sayDecision(comment, t(`did-${verb}`, { name }), async (token) => {
        const undo = UNDO[verb] ?? "restore";
        this.#apply(comment, await moderator.decide(comment.data, undo, token));
      });
      if (!isHeld || !this.goOn(comment)) box.focusUndo();
    });
  }

  /** @param {Comment} comment */
  #ban(comment) {
    return this.#send(comment, async (token) => {
      await moderator.ban(comment.id, token);
      const text = t("did-ban", { name: comment.name });
      const undo = (token) => moderator.unban(comment.id, token);
      this.#sayDecision(comment, text, undo).focusUndo();
    });
  }

  /** Say what was decided, with a button that calls `undo(token)`. */
  #sayDecision(comment, text, undo) {
    const box = this.#boxOf(comment);
    box.say(text, () =>
      this.#send(comment, async (token) => {
        await undo(token);
        this.#sayUndone(comment, box);
      }),
    );
    this.#thread.events.send("say", text);
    return box;
  }

  #sayUndone(comment, box) {
    this.#thread.events.send("say", t("undone"));
    box.unsay();
    if (comment.isHeld) {
      box.element.focus();
      return;
    }
    box.remove();
    this.#boxes.delete(comment);
    comment.element.focus();
  }

  /** Send one change at a time for each comment, and show a failure next to the comment. */
  async #send(comment, action) {
    if (this.#busy.has(comment.id)) return;
    this.#busy.add(comment.id);
    try {
      await action(this.#session.token());
    } catch (error) {
      if (!this.#session.refused(error)) await this.#showFailure(comment, error);
    } finally {
      this.#busy.delete(comment.id);
    }
  }

  /** Say that a decision failed. If the comment has changed in the meantime, show its new state. */
  async #showFailure(comment, error) {
    const isOvertaken = error.status === 412 || error.status === 404;
    if (isOvertaken) await this.#catchUp(comment).catch(() => {});
    const text = isOvertaken ? t("moderate-overtaken") : error.message;
    if (comment.element.isConnected) this.#boxOf(comment).fail(text);
    else this.#thread.events.send("say", text, { isVisible: true });
  }

  async #catchUp(comment) {
    await this.load();
    if (!this.#held.has(comment.id)) this.#draw(comment, (await read(comment.id)).comment);
  }

  /**
   * Show what a decision made of a comment, and count it among the visible ones or not.
   *
   * @param {Comment} comment
   * @param {ModeratedComment} moderated
   */
  #apply(comment, moderated) {
    const { comment: data } = moderated;
    const before = comment.data;
    const change = Number(data.status === "approved") - Number(before.status === "approved");
    const box = this.#boxOf(comment);
    comment.isHeld = data.status === "pending";
    this.#draw(comment, data);
    comment.element.classList.toggle("ft-decided", comment.isRemoved);
    if (comment.isHeld) {
      this.#held.set(comment.id, moderated);
      this.#showChoices(comment, moderated);
    } else {
      this.#held.delete(comment.id);
      box.release();
      comment.element.classList.remove("ft-reviewed");
    }
    this.#listing.countReplies(comment, change);
    this.#thread.pages.countMore(change);
    this.#session.changed();
    if (before.pinned || data.pinned) this.#showPins();
  }

  /** Reload the pinned comments. If that fails, the next page load shows them. */
  async #showPins() {
    const page = await api.list(this.#place).catch(() => null);
    if (page) this.#thread.pages.pin(page.pinned);
  }
}

/** @param {Node} one @param {Node} other */
function isBefore(one, other) {
  return Boolean(one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING);
}
