/** The reader's own comments in the list: new and deleted ones. Loads when the reader writes. */

import { button, el } from "../../shared/dom.js";
import { t } from "../../shared/words.js";

/** @typedef {import("../../reader/comments/comment.js").Comment} Comment */
/** @typedef {import("../../reader/comments/listing.js").Listing} Listing */

/**
 * Show a newly posted comment first among the replies to its parent, or above the thread, and count
 * it unless it awaits approval.
 *
 * @param {import("../../reader/comments/pages.js").Pages} pages
 * @param {Comment} comment
 */
export function showPosted(pages, comment) {
  const { listing } = pages;
  const isNew = listing.take(comment);
  const above = listing.parentOf(comment);
  if (above) above.element.after(comment.element);
  else listing.aside.prepend(comment.element);
  const isElsewhere = above
    ? (listing.after(comment)?.level ?? 0) > above.level
    : listing.element.childElementCount > 0;
  comment.isAside = isElsewhere || !above;
  const go = button("ft-go", t("view-in-thread"), () => pages.goTo(comment.id));
  markPosted(comment, isElsewhere && !comment.isPending ? go : null);
  if (isNew) listing.countReplies(comment, 1);
  if (isNew && !comment.isPending) pages.countMore(1, comment.data.created);
  else pages.countMore(0);
  listing.point(comment);
}

/** Mark a comment that the reader just posted, and show a button that goes to its place. */
function markPosted({ element, main, slot, isPending }, go) {
  element.classList.add("ft-own");
  for (const old of main.querySelectorAll(".ft-note-own")) old.remove();
  const text = isPending ? t("pending") : t("posted");
  slot.before(el("p", { class: "ft-note-own" }, text, go && " ", go));
}

/**
 * Remove a deleted comment and the tombstones above it that have no other replies. Do not remove a
 * comment that has replies. Return the number of removed comments.
 *
 * @param {Listing} listing
 * @param {Comment} comment
 */
export function removeDeleted(listing, comment) {
  let removed = 0;
  /** @type {Comment | undefined} */
  let rest = comment;
  for (; rest?.isRemoved && rest.data.replies === 0; removed += 1) {
    const above = listing.get(rest.data.parent);
    listing.countReplies(rest, -1);
    listing.drop(rest);
    rest = above;
  }
  return removed;
}
