/**
 * The pages of a thread that are loaded, and loading of more.
 *
 * Contains the list of comments, its title with the number of all comments, and the buttons that
 * load more. Adds the reader's pending comments, and what others posted while the reader wrote.
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
  #latest = 0; // the last known change of the thread
  #whole = el("div", { class: "ft-whole" });
  #none = el("p", { class: "ft-none" }, t("no-comments"));
  #foot = el("div", { class: "ft-foot" });
  listing = new Listing();
  title = el("h2", { class: "ft-title", tabindex: "-1" });

  /**
   * `signal` is aborted when the thread is closed. The thread's make(data) returns a comment, and
   * context() what it is drawn with. shown(comment) is called for each comment of a page,
   * replaced() when all comments were replaced, and say(text) for a status message.
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

  /** The elements below the title and the form. */
  get elements() {
    return [this.#whole, this.listing.element, this.#none, this.#foot];
  }

  async openFirst() {
    this.#replace(await api.list(this.#place), null);
  }

  /** Load the page that contains a comment, or the first page if the thread has no such comment. */
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

  /** Show a comment of this thread. Load its page if it is not loaded. */
  async goTo(id) {
    if (id === null) return;
    if (!this.listing.get(id)) await this.#try(() => this.openAround(id));
    const comment = this.listing.get(id);
    if (comment) this.listing.point(comment);
  }

  /**
   * Insert a comment just posted, and count it unless it awaits approval.
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

  /** Change the number of all comments. */
  countMore(change) {
    this.#count(this.#total + change);
  }

  /**
   * Show what others did while the reader wrote a comment: on the page that was loaded first, and
   * in the number. If the call fails or a cache answers with an older page, nothing changes.
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

  /** Insert the reader's pending comments. If the call fails, show none. */
  async #showHeld() {
    const { token } = this.#guest;
    if (!token) return;
    const { comments } = await api.held(this.#place, token).catch(() => ({ comments: [] }));
    this.#own = comments;
    this.#insertOwn();
  }

  /** Insert own comments. One that was approved comes with its page, so it waits for all pages. */
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

  /** Offer the first page. A page from the middle says only how many comments there are in all. */
  #offerWhole() {
    if (this.listing.size >= this.#total) return;
    this.#whole.replaceChildren(button("ft-show-whole", t("whole"), () => this.#showWhole()));
  }

  /** Offer more pages, if all comments were shown until now. */
  #offerRest(cursor) {
    const shown = [...this.listing].filter((comment) => !comment.isPending);
    if (this.#cursor === null && shown.length < this.#total) {
      this.#cursor = cursor;
      this.#showMore();
    }
    if (this.#start !== null) this.#offerWhole();
  }

  /** Take over a page's statements about the whole thread. */
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

  /** Try an action and return whether it succeeded. Errors are shown below the list. */
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
