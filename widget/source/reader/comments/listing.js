/**
 * The visible comments as one flat list, in the server's order.
 *
 * Each comment is shown once. A page may contain comments that the reader just posted and that are
 * already visible. Appending the page moves them to the server's position.
 */

import { el, isTyping } from "../../shared/dom.js";

/** @typedef {import("./comment.js").Comment} Comment */

export class Listing {
  /** @type {Map<string, Comment>} */
  #comments = new Map();
  /** The ids of comments by those in permalinks, where they differ: the website has moved. */
  former = new Map();
  /** The reader's new comments that start a discussion, newest first, above the others. */
  aside = el("ol", { class: "ft-list ft-aside", role: "list" });
  element = el("ol", { class: "ft-list", role: "list" });

  [Symbol.iterator]() {
    return this.#comments.values();
  }

  /**
   * @param {string | null | undefined} id
   * @returns {Comment | undefined}
   */
  get(id) {
    return this.#comments.get(this.former.get(id) ?? id);
  }

  /** The comments from top to bottom. */
  *inOrder() {
    for (const item of this.element.children) {
      const comment = this.get(/** @type {HTMLElement} */ (item).dataset.id);
      if (comment) yield comment;
    }
  }

  get size() {
    return this.#comments.size;
  }

  get last() {
    return this.element.lastElementChild;
  }

  clear() {
    this.#comments.clear();
    this.element.replaceChildren();
    this.aside.replaceChildren();
  }

  append(comment) {
    this.take(comment);
    this.element.append(comment.element);
  }

  /** Insert a comment after all replies to its parent, which is its place in the thread. */
  insert(comment) {
    const isNew = this.take(comment);
    const above = this.parentOf(comment);
    if (above) this.#lastBelow(above).after(comment.element);
    else this.element.append(comment.element);
    if (isNew) this.countReplies(comment, 1);
    return isNew;
  }

  /** Insert a comment before an element in the list, or at the end. */
  put(comment, next) {
    this.#comments.set(comment.id, comment);
    this.element.insertBefore(comment.element, next);
  }

  drop(comment) {
    this.#comments.delete(comment.id);
    comment.element.remove();
  }

  /** Highlight a comment, and unless the reader is typing, focus it and scroll to it. */
  point(comment) {
    for (const { element } of this.#comments.values()) element.classList.remove("ft-target");
    comment.element.classList.add("ft-target");
    if (isTyping()) return;
    // Where it is depends on the sizes of all comments above it.
    this.element.classList.add("ft-laid-out");
    comment.element.focus({ preventScroll: true });
    comment.element.scrollIntoView({ block: "center" });
  }

  /** @returns {Comment | undefined} */
  parentOf({ data }) {
    return this.get(data.parent) ?? this.get(data.reply_to);
  }

  /** Return the comments below a comment. */
  below(comment) {
    /** @type {Comment[]} */
    const comments = [];
    let next = this.after(comment);
    while (next && next.level > comment.level) {
      comments.push(next);
      next = this.after(next);
    }
    return comments;
  }

  /** Return the comment below another one in the list. */
  after(comment) {
    return this.get(comment.element.nextElementSibling?.dataset.id);
  }

  /** Make a comment part of the list. Return whether it is new. */
  take(comment) {
    const known = this.get(comment.id);
    known?.element.remove();
    this.#comments.set(comment.id, comment);
    return !known;
  }

  #lastBelow(above) {
    return (this.below(above).at(-1) ?? above).element;
  }

  /** Update the number of replies of all comments above a new or removed comment. */
  countReplies(comment, change) {
    let above = this.get(comment.data.parent);
    while (above) {
      above.data.replies += change;
      above.countReplies();
      above = this.get(above.data.parent);
    }
  }
}
