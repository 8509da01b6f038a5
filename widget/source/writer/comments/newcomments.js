/** Announcements of comments that a poll has found. Loads when a poll finds a change. */

import { button, setBusy } from "../../shared/dom.js";
import { t } from "../../shared/words.js";

/** @typedef {import("../../reader/comments/comment.js").Comment} Comment */
/** @typedef {import("../../reader/comments/pages.js").Pages} Pages */

/**
 * Announce new comments: all of them in a bar above the list, and new replies at the comments that
 * they answer. `total` is the number of new comments.
 *
 * A comment's number of replies includes indirect replies. New replies are therefore announced only
 * at their nearest visible ancestor.
 *
 * @param {Pages} pages
 * @param {CommentData[]} page
 * @param {number} total
 */
export function announce(pages, page, total) {
  const counts = new Map();
  for (const { id, replies } of page) {
    const comment = pages.listing.get(id);
    if (comment) counts.set(comment, Math.max(replies - comment.data.replies, 0));
  }
  for (const [comment, count] of counts) {
    let own = count;
    for (const [other, below] of counts) if (other.data.parent === comment.id) own -= below;
    const label = own > 0 ? t("new-replies", { count: own }) : "";
    offerButton(comment.main, "ft-news", label, () => showInPlace(pages, comment), comment.slot);
  }
  const label = total > 0 ? t("new-comments", { count: total }) : "";
  offerButton(pages.bar, "ft-show-new", label, () => showAll(pages), pages.bar.firstChild);
  if (label) pages.events.send("say", label);
}

/** Show a button for an action in `host`, before `next`. With an empty label, remove the button. */
function offerButton(host, name, label, act, next) {
  const known = host.querySelector(`.${name}`);
  if (label && known) known.textContent = label;
  else known?.remove();
  if (!label || known) return;
  const control = button(name, label, async () => {
    setBusy(control, true);
    await act();
    setBusy(control, false);
  });
  next ? next.before(control) : host.append(control);
}

/** Show the comments that a poll has found, and go to the first one. */
async function showAll(pages) {
  if (pages.isOpenEnded) await showInPlace(pages);
  // In this order, the newest discussions are at the end, on a page that is not loaded.
  else if (await pages.sort("recent")) pages.point([...pages.listing.inOrder()][0]);
}

/**
 * Show new comments at their places, and go to the first one, or to the first reply to a comment.
 *
 * @param {Pages} pages
 * @param {Comment} [above]
 */
function showInPlace(pages, above) {
  const { listing } = pages;
  const before = new Set(listing);
  return pages.attempt("page", async () => {
    await pages.catchUp();
    pages.bar.querySelector(".ft-show-new")?.remove();
    for (const { main } of listing) main.querySelector(".ft-news")?.remove();
    const all = above ? listing.below(above) : [...listing.inOrder()];
    pages.point(all.find((comment) => !before.has(comment)));
  });
}
