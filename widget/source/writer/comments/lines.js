/** The lines beside a comment, one for each comment above it in the thread. */

/** @typedef {import("../../reader/comments/comment.js").Comment} Comment */

/**
 * Return the comment whose line is at `x` in the gutter beside another comment.
 *
 * @param {import("../../reader/comments/listing.js").Listing} listing
 * @param {HTMLElement} gutter
 * @param {number} x in pixels from the left of the window
 * @returns {Comment | undefined}
 */
export function commentOfLine(listing, gutter, x) {
  const item = /** @type {HTMLElement} */ (gutter.parentElement);
  const comment = listing.get(item.dataset.id);
  if (!comment) return undefined;
  const { left, right, width } = gutter.getBoundingClientRect();
  const isLtr = getComputedStyle(gutter).direction === "ltr";
  const shown = Number(item.style.getPropertyValue("--level"));
  const at = Math.floor(((isLtr ? x - left : right - x) / width) * shown);
  const level = comment.level - shown + Math.min(at, shown - 1);
  /** @type {Comment | undefined} */
  let ancestor = comment;
  while (ancestor && ancestor.level > level) ancestor = listing.get(ancestor.data.parent);
  return ancestor;
}
