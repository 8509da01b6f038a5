/**
 * The comments that are shown, in the server's order.
 *
 * Items stand flat in one list. Each comment shows exactly once: a page of the thread is appended
 * even if some of its comments stand here already, because the reader just posted them, and then
 * those move to the place the server gives them.
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

  /** Put a comment just posted after everything below the one it belongs to; whether it is new. */
  insert(comment) {
    const isNew = this.#take(comment);
    const { parent, reply_to: answered } = comment.data;
    const above = this.get(parent) ?? this.get(answered);
    if (above) this.#lastBelow(above).after(comment.element);
    else this.element.append(comment.element);
    if (isNew) this.#countReplies(comment, 1);
    return isNew;
  }

  /** Put a comment before an element of the list, or at the end. */
  put(comment, next) {
    this.#comments.set(comment.id, comment);
    this.element.insertBefore(comment.element, next);
  }

  drop(comment) {
    this.#comments.delete(comment.id);
    comment.element.remove();
  }

  /**
   * Take out a removed comment without replies, and the tombstones that only it kept; how many
   * went. With replies it stays, and nothing goes.
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

  /** Mark a comment, bring it into view and give it the focus. */
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
