/** The places of held comments in the list of visible comments. */

/** @typedef {import("../reader/comments/listing.js").Listing} Listing */

/**
 * Return the element before which a comment belongs (null for the end of the list), or undefined if
 * its place is not shown: its parent is missing, or it would be on a page that is not loaded.
 *
 * A held comment comes after all visible replies to its parent. A comment without a parent has a
 * place only if the list is in chronological order.
 *
 * @param {Listing} listing
 * @param {CommentData} comment
 */
export function elementAfter(listing, { id, parent, created }) {
  if (parent !== null) {
    const above = listing.get(parent);
    if (!above || above.isAside) return undefined;
    return (listing.below(above).at(-1) ?? above).element.nextElementSibling;
  }
  const roots = [...listing.element.children]
    .map((item) => listing.get(/** @type {HTMLElement} */ (item).dataset.id))
    .filter((comment) => comment && comment.level === 0 && comment.id !== id);
  const times = roots.map((comment) => comment?.data.created ?? "");
  const isUp = times.every((time, at) => at === 0 || times[at - 1] <= time);
  const isDown = times.every((time, at) => at === 0 || times[at - 1] >= time);
  if (!isUp && !isDown) return undefined;
  const at = times.findIndex((time) => (isUp ? time > created : time < created));
  const hasMore = listing.element.parentElement?.querySelector(".ft-more, .ft-show-whole");
  return roots[at]?.element ?? (hasMore ? undefined : null);
}
