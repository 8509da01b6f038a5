/**
 * Brings the comments that are shown up to a page of the thread that was read anew.
 *
 * Loaded by who posts. Elements that stay where they are are not moved: that would take the focus
 * from them.
 */

/**
 * Show what a page says, in its order: what is new comes, what is gone goes, and what changed is
 * drawn anew. `make(data)` makes a comment, `context` is for drawing one; `stays(comment)` says
 * whether one that the page lacks is shown to this reader alone. `isStart` and `isEnd` say that
 * nothing of the thread comes before the page, or after it.
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
    // What only this reader sees stays behind what it stood behind.
    while (known && next && !isOn(next)) next = next.nextElementSibling;
    if (known && next === known.element) next = next.nextElementSibling;
    else listing.put(known ?? make(data), next);
  }
}

/** Draw a comment anew if it changed; not while its author writes at it. */
function renew(comment, data, context) {
  if (comment.isBeingEdited) return;
  if (comment.data.revision === data.revision) comment.data.replies = data.replies;
  else comment.show(data, context);
}
