/**
 * The elements for comments that a page contains, from the beginning or later.
 *
 * An element starts when it comes near the viewport, so that a page whose comments nobody reads
 * costs no request. With `data-load="now"`, or if the URL names a comment, it starts at once. One
 * observer of the whole document finds elements that are inserted later, and stops those that are
 * removed: this works with every framework, and costs one lookup of an id for each batch of
 * changes.
 */

import { reserve } from "./frame.js";
import { wantedComment } from "./request.js";

const ELEMENTS = "#flatthread"; // a page may contain several, although ids should be unique
const NEAR = "100% 0px"; // starts one viewport early, so that readers rarely see it load

/**
 * Start each element once, and again if it was removed and inserted.
 *
 * @param {{
 *   mayStart: (host: HTMLElement) => boolean,
 *   start: (host: HTMLElement) => void,
 *   stop: (host: HTMLElement) => void,
 * }} actions
 */
export function watch({ mayStart, start, stop }) {
  const found = new Set();
  const known = new WeakSet();

  const begin = (host) => {
    near.unobserve(host);
    waiting.delete(host);
    start(host);
  };
  const waiting = new Set();
  const near = new IntersectionObserver(
    (entries) => {
      for (const { isIntersecting, target } of entries) if (isIntersecting) begin(target);
    },
    { __proto__: null, rootMargin: NEAR },
  );
  const look = () => {
    for (const host of found) {
      if (host.isConnected) continue;
      found.delete(host);
      waiting.delete(host);
      near.unobserve(host);
      stop(host);
    }
    for (const host of /** @type {NodeListOf<HTMLElement>} */ (
      document.querySelectorAll(ELEMENTS)
    )) {
      // An element with a shadow root belongs to a caller of `mount`, or to another copy of this
      // file.
      if (found.has(host) || (host.shadowRoot && !known.has(host)) || !mayStart(host)) continue;
      found.add(host);
      known.add(host);
      reserve(host);
      if (host.dataset.load === "now" || wantedComment()) begin(host);
      else {
        waiting.add(host);
        near.observe(host);
      }
    }
  };
  addEventListener("hashchange", () => {
    if (wantedComment()) for (const host of [...waiting]) begin(host);
  });
  new MutationObserver(look).observe(document, { __proto__: null, childList: true, subtree: true });
  look();
}
