/**
 * The visible comments as one flat list, in the server's order.
 *
 * Each comment is shown once. A page may contain comments that the reader just posted and that are
 * already visible. Appending the page moves them to the server's position.
 */

import { el } from "./dom.js";

export class Listing {
  /** @type {Map<string, import("./comment.js").Comment>} */
  #comments = new Map();
  element = el("ol", { class: "ft-list", role: "list" });

  [Symbol.iterator]() {
    return this.#comments.values();
  }

  /** @param {string | null | undefined} id */
  get(id) {
    return id ? this.#comments.get(id) : undefined;
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
  }

  append(comment) {
    this.#take(comment);
    this.element.append(comment.element);
  }

  /** Insert a newly posted comment after all replies to its parent. Return whether it is new. */
  insert(comment) {
    const isNew = this.#take(comment);
    const { parent, reply_to: answered } = comment.data;
    const above = this.get(parent) ?? this.get(answered);
    if (above) this.#lastBelow(above).after(comment.element);
    else this.element.append(comment.element);
    if (isNew) this.#countReplies(comment, 1);
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

  /**
   * Remove a deleted comment and the tombstones above it that have no other replies. Do not remove
   * a comment that has replies. Return the number of removed comments.
   */
  bury(comment) {
    let gone = 0;
    for (let rest = comment; rest?.isRemoved && rest.data.replies === 0; gone += 1) {
      const above = this.get(rest.data.parent);
      this.#countReplies(rest, -1);
      this.drop(rest);
      rest = above;
    }
    return gone;
  }

  /** Highlight and focus a comment, and scroll to it. */
  point(comment) {
    for (const { element } of this.#comments.values()) element.classList.remove("ft-target");
    comment.element.classList.add("ft-target");
    comment.element.focus({ preventScroll: true });
    comment.element.scrollIntoView({ block: "center" });
  }

  #take(comment) {
    const known = this.get(comment.id);
    known?.element.remove();
    this.#comments.set(comment.id, comment);
    return !known;
  }

  #lastBelow(above) {
    let last = above.element;
    for (;;) {
      const next = this.get(last.nextElementSibling?.dataset.id);
      if (!next || next.level <= above.level) return last;
      last = next.element;
    }
  }

  #countReplies(comment, change) {
    let above = this.get(comment.data.parent);
    while (above) {
      above.data.replies += change;
      above = this.get(above.data.parent);
    }
  }
}
