/**
 * The loaded pages of a thread, and loading of more pages.
 *
 * This class contains the list of comments, the pinned comments above it, and the buttons that load
 * more. It adds the reader's pending comments, and polls for new ones by other authors.
 */

import * as api from "../../shared/api.js";
import { button, el, isBusy, isTyping, setBusy } from "../../shared/dom.js";
import { Listing } from "./listing.js";
import { card } from "./pins.js";
import { t } from "../../shared/words.js";

/** @typedef {import("./comment.js").Comment} Comment */

export class Pages {
  #place;
  #guest;
  #signal;
  #thread;
  /** @type {string | null} */
  #cursor = null;
  /** @type {UncountedComment[]} */
  #ownPending = [];
  #total = 0;
  /** @type {number | null} */
  #lastTotal = null; // the total that the last event told the page
  /** @type {Position} */
  #start = null; // position of the page that was loaded first: null, or {around}
  /** @type {string | undefined} */
  #order; // of the loaded pages
  #chosen = ""; // the order to ask for
  #latest = 0; // time of the last change that is shown
  #announced = 0; // time of the last change that a poll has announced
  #wholeBox = el("div", { class: "ft-whole" });
  #pins = el("div", { class: "ft-pins" });
  #emptyNote = el("p", { class: "ft-none" }, t("no-comments"));
  #foot = el("div", { class: "ft-foot" });
  listing = new Listing();
  /** Above the list: failures, and new comments. */
  bar = el("div", { class: "ft-bar" });

  /**
   * `signal` is aborted when the thread is closed.
   *
   * @param {Place} place
   * @param {import("../guest.js").Guest} guest
   * @param {AbortSignal} signal
   * @param {import("../thread.js").Thread} thread
   */
  constructor(place, guest, signal, thread) {
    this.#place = place;
    this.#guest = guest;
    this.#signal = signal;
    this.#thread = thread;
    this.events = thread.events;
    this.events.listen({ goTo: (id) => this.goTo(id) });
    this.#chosen = place.order;
  }

  /** Return the elements below the form; `back` is shown above the list. */
  elements(back) {
    return [
      this.bar,
      this.listing.aside,
      this.#pins,
      this.#wholeBox,
      back,
      this.listing.element,
      this.#emptyNote,
      this.#foot,
    ];
  }

  async openFirst(request = this.#list(null)) {
    this.#replace(await request, null);
  }

  /** Load the page that contains a comment; the first page if the comment is not in the thread. */
  async openAround(id, request = api.list(this.#place, { around: id })) {
    try {
      const page = await request;
      this.#replace(page, { around: id });
      this.listing.former.set(id, page.around);
      this.#offerWhole();
    } catch (error) {
      if (error.status !== 404 && error.status !== 400) throw error;
      await this.openFirst();
    }
  }

  /** Load the first page again. */
  reload() {
    return this.attempt("page", () => this.openFirst());
  }

  /** Load the first page in a different order. */
  sort(order) {
    return this.attempt("page", async () => {
      await this.openFirst(api.list(this.#place, { order }));
      this.#chosen = order;
    });
  }

  /** Show a comment at its place in this thread, and load its page if necessary. */
  async goTo(id) {
    if (id === null) return;
    await this.attempt("page", async () => {
      const known = this.listing.get(id);
      if (!known || known.isAside) await this.openAround(id);
      this.point(this.listing.get(id));
    });
  }

  /** @param {Comment | undefined} comment */
  point(comment) {
    if (!comment) return;
    this.events.send("reveal", comment);
    this.listing.point(comment);
  }

  /**
   * Change the total number of comments. `changed` is the time of a change that is shown.
   *
   * @param {number} change
   * @param {string} [changed]
   */
  countMore(change, changed) {
    this.#update({ changed, total: this.#total + change });
    this.events.send("changed");
  }

  /**
   * Show the pinned comments above the list.
   *
   * @param {CommentData[]} [pinned]
   */
  pin(pinned = []) {
    this.#pins.replaceChildren(
      ...pinned.map((data) => card(data, this.#thread.prose(data.html), () => this.goTo(data.id))),
    );
  }

  /**
   * Show changes by others: reload the page that was loaded first, and update the total. If a cache
   * returns an older page, change nothing.
   */
  async catchUp() {
    const start = this.#start;
    const [page, writer] = await Promise.all([this.#list(start), this.#thread.loadWriter()]);
    // The page's scores may contain own votes that an earlier page's scores did not.
    await this.#thread.loadVotes();
    const isNew = Date.parse(page.changed) >= this.#latest;
    if (!isNew || start !== this.#start || this.#signal.aborted) return;
    writer.mergePage(this.listing, page.comments, {
      make: (data) => this.#thread.make(data),
      stays: (comment) => comment.isPending || this.#guest.own(comment.id) !== null,
      isStart: start === null,
      isEnd: page.cursor === null,
    });
    this.#update(page);
    this.#offerRest(page.cursor);
    this.events.send("changed");
  }

  /** Check for new comments, and offer to show them. Return whether there are any. */
  async poll() {
    const start = this.#start;
    const page = await this.#list(start);
    const changed = Date.parse(page.changed);
    if (!(changed > Math.max(this.#latest, this.#announced))) return false;
    const { announce } = await this.#thread.loadWriter();
    if (start !== this.#start || this.#signal.aborted) return false;
    this.#announced = changed;
    this.events.send("loaded", page);
    announce(this, page.comments, page.total - this.#total);
    return true;
  }

  /** Whether new discussions appear among the loaded comments, instead of on a later page. */
  get isOpenEnded() {
    return this.#start === null && (this.#cursor === null || this.#order !== "thread");
  }

  /** @param {Position} start */
  #list(start) {
    // A poll repeats the first request exactly, so the browser adds the ETag (If-None-Match).
    return api.list(this.#place, start ?? (this.#chosen ? { order: this.#chosen } : null));
  }

  /**
   * @param {CommentPage} page
   * @param {Position} start
   */
  #replace(page, start) {
    this.#start = start;
    this.#order = page.order ?? this.#order;
    this.listing.clear();
    this.#ownPending = [];
    this.bar.querySelector(".ft-show-new")?.remove();
    this.events.send("loaded", page);
    this.pin(page.pinned);
    this.#append(page);
    this.events.send("replaced");
    this.loadOwn();
    this.#wholeBox.replaceChildren();
  }

  /** @param {CommentPage} page */
  #append(page) {
    this.#cursor = page.cursor;
    for (const data of page.comments) {
      const comment = this.#thread.make(data);
      this.listing.append(comment);
      this.events.send("shown", comment);
    }
    this.#update(page);
    this.#insertOwn();
    this.#showMore();
    this.events.send("changed");
  }

  /** Load the reader's votes and pending comments. A reader whose token is refused has none. */
  loadOwn() {
    return this.attempt("own", async () => {
      await Promise.all([this.#thread.loadVotes(), this.#showHeld()]).catch((error) => {
        if (!error.isFinal) throw new Error(t("own-missing"));
      });
    });
  }

  async #showHeld() {
    const { token, member } = this.#guest;
    if (!token) return;
    const { ownHeldComments, noteOwn } = await this.#thread.loadWriter();
    const { comments } = await ownHeldComments(this.#place, token, member);
    const isNews = noteOwn(this.#guest, comments, member);
    this.#ownPending = comments;
    this.#insertOwn();
    this.events.send(isNews ? "redraw" : "changed");
  }

  /** Insert own pending comments, and after the last page the others, which pages may contain. */
  #insertOwn() {
    const isWhole = this.#cursor === null && this.listing.size >= this.#total;
    const isDue = (data) => data.status === "pending" || isWhole;
    for (const data of this.#ownPending.filter(isDue)) {
      if (this.listing.get(data.id)) continue;
      this.listing.insert(this.#thread.make({ replies: 0, ...data }));
    }
    this.#ownPending = this.#ownPending.filter((data) => !isDue(data));
    this.#showCount(this.#total);
  }

  /** Offer the first page, unless the page around a comment contains all comments. */
  #offerWhole() {
    if (this.listing.size >= this.#total) return;
    this.#wholeBox.replaceChildren(button("ft-show-whole", t("whole"), () => this.#showWhole()));
  }

  /** Offer more pages if all comments were visible until now. */
  #offerRest(cursor) {
    const shown = [...this.listing].filter((comment) => !comment.isPending);
    if (this.#cursor === null && shown.length < this.#total) {
      this.#cursor = cursor;
      this.#showMore();
    }
    if (this.#start !== null) this.#offerWhole();
  }

  /** Update the data about the whole thread from a page. */
  #update({ changed, total }) {
    this.#latest = Math.max(this.#latest, Date.parse(changed) || 0);
    this.#showCount(total);
  }

  #showCount(total) {
    if (total !== this.#lastTotal) this.events.send("total", total);
    this.#lastTotal = this.#total = total;
    const waiting = [...this.listing].filter(
      (comment) => comment.isPending && !comment.isHeld,
    ).length;
    this.events.send("counted", total, waiting);
    this.#emptyNote.hidden = this.listing.size > 0;
  }

  #showMore() {
    this.#foot.replaceChildren();
    if (this.#cursor === null) return;
    this.#foot.append(button("ft-more", t("more"), (event) => this.#loadMore(event.target)));
  }

  async #loadMore(control) {
    if (isBusy(control)) return;
    setBusy(control, true);
    control.textContent = t("loading");
    this.events.send("say", t("loading"));
    const before = this.listing.last;
    for (const old of this.#foot.querySelectorAll(".ft-error")) old.remove();
    try {
      const page = await api.list(this.#place, {
        ...(this.#order && { order: this.#order }),
        cursor: this.#cursor,
      });
      this.#append(page);
      this.events.send("say", t("loaded", { count: page.comments.length }));
      const next = /** @type {HTMLElement | null | undefined} */ (before?.nextElementSibling);
      if (!isTyping()) next?.focus({ preventScroll: true });
    } catch (error) {
      // The thread has another tree now, so no cursor leads on from the comments that are shown.
      if (error.status === 410) return this.sort(this.#order);
      this.events.send("say", "");
      this.#foot.append(el("p", { class: "ft-error", role: "alert" }, error.message));
    }
    control.textContent = t("more");
    setBusy(control, false);
  }

  async #showWhole() {
    history.replaceState(history.state, "", location.href.split("#")[0]);
    if (await this.reload()) this.events.send("say", t("whole-shown"));
  }

  /**
   * Try an action. On failure, say why above the list, with a button that tries again. Return
   * whether the action succeeded. An action with the same name replaces the sentence.
   *
   * @param {string} name
   * @param {() => Promise<unknown>} action
   */
  async attempt(name, action) {
    const old = this.bar.querySelector(`[data-of=${name}]`);
    const isUsed = old?.matches(":focus-within");
    old?.remove();
    try {
      await action();
      return true;
    } catch (error) {
      const again = button("ft-again", t("again"), () => this.attempt(name, action));
      const text = `${error.message} `;
      this.bar.append(el("p", { class: "ft-error", role: "alert", "data-of": name }, text, again));
      if (isUsed && !isTyping()) again.focus(); // the clicked button is gone
      return false;
    }
  }
}
