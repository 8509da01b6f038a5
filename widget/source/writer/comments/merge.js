/**
 * Updates of the visible comments from a reloaded page. Loads after a post.
 *
 * Elements that keep their position are not moved, because a moved element loses its focus.
 */

/**
 * Show the comments of a page in the page's order: add new comments, remove missing ones, and
 * redraw changed ones. `make(data)` returns a comment. `stays(comment)` tells whether to keep a
 * comment that is not on the page, such as a pending one.
 * `isStart` and `isEnd` mean that the page is the first or the last page of the thread.
 */
export function mergePage(listing, page, { make, stays, isStart, isEnd }) {
  const ids = new Set(page.map(({ id }) => id));
  // A comment that is shown near the form stays there until the next full load.
  const isOnPage = ({ dataset }) => ids.has(dataset.id) && !listing.get(dataset.id)?.isAside;
  const items = [...listing.element.children];
  const from = isStart ? 0 : Math.max(items.findIndex(isOnPage), 0);
  const to = isEnd ? items.length : Math.max(items.findLastIndex(isOnPage), 0);
  const before = items[from - 1];
  for (const item of items.slice(from, to)) {
    const comment = listing.get(item.dataset.id);
    if (!isOnPage(item) && !stays(comment)) listing.drop(comment);
  }
  let next = before ? before.nextElementSibling : listing.element.firstElementChild;
  for (const data of page) {
    const known = listing.get(data.id);
    if (known) redrawChanged(known, data);
    if (known?.isAside) continue;
    // A kept comment that is not on the page stays after the same comment as before.
    while (known && next && !isOnPage(next)) next = next.nextElementSibling;
    if (known && next === known.element) next = next.nextElementSibling;
    else listing.put(known ?? make(data), next);
  }
}

/** Redraw a changed comment unless the reader is editing it. */
function redrawChanged(comment, data) {
  if (comment.isBeingEdited) return;
  if (comment.data.revision === data.revision) {
    comment.data.replies = data.replies;
    comment.countReplies();
  } else comment.show(data);
}
