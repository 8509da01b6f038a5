/**
 * Find the elements for comments on the page, including those that are inserted later.
 *
 * An element starts when it comes near the viewport, so that a page whose comments nobody reads
 * costs no request. With `data-load="now"`, or if the URL names a comment, it starts at once. One
 * observer of the whole document finds elements that are inserted later, and stops those that are
 * removed. This works with every framework, and costs one lookup by id for each batch of changes.
 */

import { reserve } from "./frame.js";
import { wantedComment } from "../shared/request.js";

const ELEMENTS = "#flatthread"; // a page may contain several, although ids should be unique
const NEAR = "100% 0px"; // starts one viewport early, so that readers rarely see it load

/** @type {Set<HTMLElement>} */
const managed = new Set(); // elements on the page that start automatically
/** @type {Set<HTMLElement>} */
const waiting = new Set(); // elements that are not near the viewport yet
/** @type {WeakSet<HTMLElement>} */
const known = new WeakSet(); // all elements that were ever in `managed`
/** @type {(host: HTMLElement) => void} */
let start;

const near = new IntersectionObserver(
  (entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting) begin(/** @type {HTMLElement} */ (target));
    }
  },
  { __proto__: null, rootMargin: NEAR },
);

/**
 * Start each element once, and again if it was removed and inserted.
 *
 * @param {{
 *   mayStart: (host: HTMLElement) => boolean,
 *   start: (host: HTMLElement) => void,
 *   stop: (host: HTMLElement) => void,
 * }} actions
 */
export function watch(actions) {
  start = actions.start;
  const look = () => {
    for (const host of managed) {
      if (host.isConnected) continue;
      forget(host);
      actions.stop(host);
    }
    /** @type {NodeListOf<HTMLElement>} */
    const hosts = document.querySelectorAll(ELEMENTS);
    for (const host of hosts) if (isNew(host) && actions.mayStart(host)) add(host);
  };
  addEventListener("hashchange", () => {
    if (wantedComment()) for (const host of [...waiting]) begin(host);
  });
  new MutationObserver(look).observe(document, { __proto__: null, childList: true, subtree: true });
  look();
}

/** Leave an element to the caller of `mount`, which also decides when the thread closes. */
export function release(host) {
  forget(host);
  known.delete(host);
}

// An element with a shadow root belongs to a caller of `mount`, or to another copy of this file.
function isNew(host) {
  return !managed.has(host) && (!host.shadowRoot || known.has(host));
}

function add(host) {
  managed.add(host);
  known.add(host);
  reserve(host);
  if (host.dataset.load === "now" || wantedComment()) begin(host);
  else {
    waiting.add(host);
    near.observe(host);
  }
}

function begin(host) {
  waiting.delete(host);
  near.unobserve(host);
  start(host);
}

function forget(host) {
  managed.delete(host);
  waiting.delete(host);
  near.unobserve(host);
}
