/**
 * The pages of a thread: which of them are loaded, and how the next ones come.
 *
 * Owns the list of comments, its title with the number of all comments, and the buttons that load
 * more. Adds what only its author sees, and what others posted while the reader wrote.
 */

import * as api from "./api.js";
import { button, el, isBusy, setBusy } from "./dom.js";
import { Listing } from "./listing.js";
import { t } from "./words.js";

/** @typedef {import("./comment.js").Comment} Comment */

export class Pages {
  #place;
  #guest;
  #signal;
  #thread;
  /** @type {string | null} */
  #cursor = null;
  /** @type {UncountedComment[]} */
  #own = [];
  #total = 0;
  /** @type {Position} */
  #start = null; // of the first page: null, or {around}
  #latest = 0; // when the thread last changed, as far as is known here
  #whole = el("div", { class: "ft-whole" });
  #none = el("p", { class: "ft-none" }, t("no-comments"));
  #foot = el("div", { class: "ft-foot" });
  listing = new Listing();
  title = el("h2", { class: "ft-title", tabindex: "-1" });

  /**
   * `signal` is aborted when the thread is closed. `thread` answers make(data), a comment, and
   * context() to draw it in; it is told shown(comment) of each that a page brings, replaced() when
   * other comments are shown instead, and to say(text).
   *
   * @param {Place} place
   * @param {import("./guest.js").Guest} guest
   * @param {AbortSignal} signal
   * @param {{
   *   make: (data: CommentData) => Comment,
   *   context: () => import("./comment.js").Context,
   *   shown: (comment: Comment) => void,
   *   replaced: () => void,
   *   say: (text: string) => void,
   * }} thread
   */
  constructor(place, guest, signal, thread) {
    this.#place = place;
    this.#guest = guest;
    this.#signal = signal;
    this.#thread = thread;
  }

  /** What shows below the title and the form. */
  get elements() {
    return [this.#whole, this.listing.element, this.#none, this.#foot];
  }

  async openFirst() {
    this.#replace(await api.list(this.#place), null);
  }

  /** Load the page that holds a comment; the first one where the thread has no such comment. */
  async openAround(id) {
    try {
      const start = { around: id };
      this.#replace(await api.list(this.#place, start), start);
      this.#offerWhole();
    } catch (error) {
      if (error.status !== 404 && error.status !== 400) throw error;
      await this.openFirst();
    }
  }

  /** Show a comment of this thread, loading the page that holds it where needed. */
  async goTo(id) {
    if (id === null) return;
    if (!this.listing.get(id)) await this.#try(() => this.openAround(id));
    const comment = this.listing.get(id);
    if (comment) this.listing.point(comment);
  }

  /**
   * Put a comment just posted in its place, and count it unless it waits for approval.
   *
   * @param {Comment} comment
   */
  insert(comment) {
    const isNew = this.listing.insert(comment);
    const isCounted = isNew && !comment.isPending;
    this.#hear({
      changed: isCounted ? comment.data.created : null,
      total: this.#total + (isCounted ? 1 : 0),
    });
    this.listing.point(comment);
  }

  /** Correct the number of all comments. */
  countMore(change) {
    this.#count(this.#total + change);
  }

  /**
   * Show what others did while the reader wrote a comment: on the page that was loaded first, and
   * in the number. Without an answer, or with one that a cache kept from before, all stays as it is.
   *
   * @param {Comment} posted
   */
  async catchUp(posted) {
    const start = this.#start;
    const asked = Promise.all([api.list(this.#place, start), import("./weaving.js")]);
    const [page, weaving] = await asked.catch(() => [null, null]);
    if (page === null || weaving === null) return;
    const isNew = Date.parse(page.changed) >= this.#latest;
    if (!isNew || start !== this.#start || this.#signal.aborted) return;
    const isHere = posted.element.matches(":focus");
    weaving.weave(this.listing, page.comments, {
      make: this.#thread.make,
      context: this.#thread.context(),
      stays: (comment) => comment.isPending || this.#guest.own(comment.id) !== null,
      isStart: start === null,
      isEnd: page.cursor === null,
    });
    this.#hear(page);
    this.#offerRest(page.cursor);
    if (isHere) this.listing.point(posted);
  }

  /**
   * @param {CommentPage} page
   * @param {Position} start
   */
  #replace(page, start) {
    this.#start = start;
    this.listing.clear();
    this.#own = [];
    this.#append(page);
    this.#thread.replaced();
    this.#showHeld();
    this.#whole.replaceChildren();
  }

  /** @param {CommentPage} page */
  #append(page) {
    this.#cursor = page.cursor;
    for (const data of page.comments) {
      const comment = this.#thread.make(data);
      this.listing.append(comment);
      this.#thread.shown(comment);
    }
    this.#hear(page);
    this.#insertOwn();
    this.#showMore();
  }

  /** Put what the reader wrote and only he sees in its places. Without an answer there is none. */
  async #showHeld() {
    const { token } = this.#guest;
    if (!token) return;
    const { comments } = await api.held(this.#place, token).catch(() => ({ comments: [] }));
    this.#own = comments;
    this.#insertOwn();
  }

  /** What is no longer pending comes with its page, so it is put in when all pages are there. */
  #insertOwn() {
    const isWhole = this.#cursor === null && this.listing.size >= this.#total;
    const isDue = (data) => data.status === "pending" || isWhole;
    for (const data of this.#own.filter(isDue)) {
      if (this.listing.get(data.id)) continue;
      this.listing.insert(this.#thread.make({ replies: 0, ...data }));
    }
    this.#own = this.#own.filter((data) => !isDue(data));
    this.#count(this.#total);
  }

  /** A page from the middle says how many there are in all, not how many come before it. */
  #offerWhole() {
    if (this.listing.size >= this.#total) return;
    this.#whole.replaceChildren(button("ft-show-whole", t("whole"), () => this.#showWhole()));
  }

  /** Offer what is not shown, where nothing was left to be shown until now. */
  #offerRest(cursor) {
    const shown = [...this.listing].filter((comment) => !comment.isPending);
    if (this.#cursor === null && shown.length < this.#total) {
      this.#cursor = cursor;
      this.#showMore();
    }
    if (this.#start !== null) this.#offerWhole();
  }

  /** Take over what a page says of the whole thread. */
  #hear({ changed, total }) {
    this.#latest = Math.max(this.#latest, Date.parse(changed) || 0);
    this.#count(total);
  }

  #count(total) {
    this.#total = total;
    this.title.textContent = t("title", { count: total });
    this.#none.hidden = this.listing.size > 0;
  }

  #showMore() {
    this.#foot.replaceChildren();
    if (this.#cursor === null) return;
    this.#foot.append(button("ft-more", t("more"), (event) => this.#loadMore(event.target)));
  }

  async #loadMore(control) {
    if (isBusy(control)) return;
    setBusy(control, true);
    this.#thread.say(t("loading"));
    const before = this.listing.last;
    const done = await this.#try(async () => {
      const page = await api.list(this.#place, { cursor: this.#cursor });
      this.#append(page);
      this.#thread.say(t("loaded", { count: page.comments.length }));
    });
    setBusy(control, false);
    const next = /** @type {HTMLElement | null | undefined} */ (before?.nextElementSibling);
    if (done) next?.focus({ preventScroll: true });
  }

  async #showWhole() {
    history.replaceState(history.state, "", location.href.split("#")[0]);
    if (await this.#try(() => this.openFirst())) this.title.focus();
  }

  /** Do something that needs no form; whether it worked. What went wrong shows below the list. */
  async #try(action) {
    for (const old of this.#foot.querySelectorAll(".ft-error")) old.remove();
    try {
      await action();
      return true;
    } catch (error) {
      this.#thread.say("");
      this.#foot.append(el("p", { class: "ft-error", role: "alert" }, error.message));
      return false;
    }
  }
}
