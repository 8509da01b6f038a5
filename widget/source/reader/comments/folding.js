/**
 * Collapsed comments and "Continue this thread": which comments of the flat list are visible.
 *
 * Collapsed comments are remembered for the visit, in sessionStorage. Beyond a depth that depends
 * on the width, replies are behind a button that shows one discussion alone.
 */

import { button, el } from "../../shared/dom.js";
import * as memory from "../../shared/memory.js";
import { t } from "../../shared/words.js";

/** @typedef {import("./comment.js").Comment} Comment */

const KEY = "collapsed";
const MOST = 200; // collapsed comments to remember
const DEEPEST = 8; // levels shown below the first one
const DEEPEST_ON_PHONES = 5;
const PHONE = 480; // pixels

export class Folding {
  #listing;
  #host;
  /** @type {string | null} the comment that is shown alone with its replies */
  #alone = null;
  #collapsed = new Set(memory.loadVisit(KEY) ?? []);
  back = el("div", { class: "ft-back-box" });

  /**
   * `host` is the element whose width decides how many levels are shown.
   *
   * @param {import("./listing.js").Listing} listing
   * @param {HTMLElement} host
   * @param {import("../events.js").Events} events
   */
  constructor(listing, host, events) {
    this.#listing = listing;
    this.#host = host;
    events.listen({
      toggle: (comment) => this.#toggle(comment),
      reveal: (comment) => this.#reveal(comment),
      replaced: () => (this.#alone = null),
    });
  }

  /** Collapse or expand a comment. */
  #toggle(comment) {
    if (this.#collapsed.has(comment.id)) this.#collapsed.delete(comment.id);
    else this.#collapsed.add(comment.id);
    memory.saveVisit(KEY, [...this.#collapsed].slice(-MOST));
    this.apply();
    comment.element.scrollIntoView({ block: "nearest" });
  }

  /** Make a comment visible: expand what hides it. */
  #reveal(comment) {
    for (let above = comment; above; above = this.#listing.get(above.data.parent)) {
      this.#collapsed.delete(above.id);
    }
    if (this.#alone !== null) this.#alone = null;
    this.apply();
    if (comment.element.hidden) this.#showAlone(this.#listing.get(comment.data.parent) ?? comment);
  }

  /** Hide and indent the comments, after any change of the list. */
  apply() {
    const deepest = this.#host.clientWidth < PHONE ? DEEPEST_ON_PHONES : DEEPEST;
    const alone = this.#listing.get(this.#alone);
    const base = alone?.level ?? 0;
    let hiddenBelow = Infinity; // level of the comment that hides the next ones
    let isBelow = !alone; // whether the current comment belongs to the one shown alone
    for (const comment of this.#listing.inOrder()) {
      if (comment.level <= hiddenBelow) hiddenBelow = Infinity;
      if (alone) isBelow = comment === alone || (isBelow && comment.level > base);
      const isHidden = !isBelow || comment.level > hiddenBelow;
      comment.element.hidden = isHidden;
      comment.indent(comment.level - base);
      const isCollapsed = this.#collapsed.has(comment.id);
      if (comment.isCollapsed !== isCollapsed) comment.collapse(isCollapsed);
      const isDeep = comment.level - base >= deepest && comment.data.replies > 0;
      this.#offer(comment, isDeep && !isCollapsed);
      if (!isHidden && (isCollapsed || isDeep)) hiddenBelow = comment.level;
    }
    this.back.replaceChildren(
      ...(alone ? [button("ft-back", t("back-to-all"), () => this.#showAll(alone))] : []),
    );
  }

  #offer(comment, isDeep) {
    comment.offer(
      isDeep &&
        button("ft-continue", t("continue-thread", { count: comment.data.replies }), () =>
          this.#showAlone(comment),
        ),
    );
  }

  #showAlone(comment) {
    this.#alone = comment.id;
    this.apply();
    this.#listing.point(comment);
  }

  #showAll(comment) {
    this.#alone = null;
    this.apply();
    this.#listing.point(this.#nearestVisible(comment));
  }

  #nearestVisible(comment) {
    let ancestor = comment;
    while (ancestor?.element.hidden) ancestor = this.#listing.get(ancestor.data.parent);
    return ancestor ?? comment;
  }
}
