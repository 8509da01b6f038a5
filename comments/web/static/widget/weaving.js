/**
 * Updates the comments shown from a page that was loaded again. Loads after a post.
 *
 * Elements that keep their position are not moved, because moving an element takes its focus.
 */

/**
 * Show the comments of a page in its order: add new ones, remove those that are gone, and redraw
 * those that changed. `make(data)` makes a comment and `context` draws one. `stays(comment)` says
 * whether a comment that is not on the page is shown to this reader only. `isStart` and `isEnd` say
 * that the page is the first or the last of the thread.
 */
export function weave(listing, page, { make, context, stays, isStart, isEnd }) {
  const ids = new Set(page.map(({ id }) => id));
  const isOn = ({ dataset }) => ids.has(dataset.id);
  const items = [...listing.element.children];
  const from = isStart ? 0 : Math.max(items.findIndex(isOn), 0);
  const to = isEnd ? items.length : Math.max(items.findLastIndex(isOn), 0);
  const before = items[from - 1];
  for (const item of items.slice(from, to)) {
    const comment = listing.get(item.dataset.id);
    if (!isOn(item) && !stays(comment)) listing.drop(comment);
  }
  let next = before ? before.nextElementSibling : listing.element.firstElementChild;
  for (const data of page) {
    const known = listing.get(data.id);
    if (known) renew(known, data, context);
    // A comment that only this reader sees stays after the same comment as before.
    while (known && next && !isOn(next)) next = next.nextElementSibling;
    if (known && next === known.element) next = next.nextElementSibling;
    else listing.put(known ?? make(data), next);
  }
}

/** Redraw a comment if it changed, but not while it is being edited. */
function renew(comment, data, context) {
  if (comment.isBeingEdited) return;
  if (comment.data.revision === data.revision) comment.data.replies = data.replies;
  else comment.show(data, context);
}
