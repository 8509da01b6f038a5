/**
 * The file that pages embed. It finds the element for the comments and shows a thread in it.
 *
 *     <script type="module" src="https://HOST/widget/flatthread.js" data-site="SITE" async></script>
 *     <div id="flatthread"></div>
 *
 * docs/embedding.md lists the element's attributes, the options of `mount`, and the events.
 *
 * Pages load this file again after some minutes, so it contains only what cannot wait. It starts
 * the request for the comments, the reader bundle and the strings at once and in parallel. The
 * module defines no globals.
 */

import * as files from "./files.js";
import * as finder from "./finder.js";
import * as frame from "./frame.js";
import * as languages from "./languages.js";
import { isEmbedded, placeOf } from "./place.js";
import * as request from "../shared/request.js";

/**
 * @typedef {{
 *   site?: string, thread?: string, page?: string, lang?: string, order?: string, theme?: string,
 *   account?: string, categories?: string,
 * }} Options
 */

const PATIENCE = 2000; // milliseconds to wait for the texts of a failure

/** Identifies this release: the digests of its files. */
export const release = JSON.stringify(DIGESTS);

/** @type {WeakMap<HTMLElement, View>} */
const views = new WeakMap();
/** @type {typeof import("./entry.js") | null} */
let successor = null;

/**
 * Show a thread in `host` at once. The `options` override the attributes.
 *
 * The promise resolves when the first page or an error is visible.
 *
 * @param {HTMLElement} host
 * @param {Options} [options]
 */
export function mount(host, options = {}) {
  finder.release(host);
  return start(host, options);
}

/** Show a different thread in the same element, for single-page applications. */
export function update(host, options) {
  return mount(host, options);
}

/** Remove the thread, so that the element shows its own content again. */
export function destroy(host) {
  finder.release(host);
  stop(host);
}

function stop(host) {
  if (successor) successor.destroy(host);
  views.get(host)?.close();
  views.delete(host);
  host.removeAttribute("aria-busy");
  frame.clear(host);
}

/**
 * Start a thread. If `isRetry` (after a click on "Try again"), then focus the thread, or the next
 * such button, because the clicked button is gone.
 *
 * @param {HTMLElement} host
 * @param {Options} [options]
 */
async function start(host, options = {}, isRetry = false) {
  stop(host);
  if (successor) return successor.mount(host, options);
  const view = new View();
  views.set(host, view);
  frame.reserve(host);
  host.setAttribute("aria-busy", "true");
  try {
    await show(host, options, view);
  } catch {
    if (!view.isClosed) await recover(host, options, view);
  }
  if (view.isClosed) return;
  host.removeAttribute("aria-busy");
  if (isRetry) frame.focus(host);
}

/** A thread in an element, from `mount` to `destroy`. */
class View {
  isClosed = false;
  /** @type {(() => void) | null} */
  onclose = null;
  /** The texts for a failure; English until the strings arrive. */
  failure = FAILURE;
  /** Settled when `failure` is in the page's language, or stays English. */
  told;

  close() {
    this.isClosed = true;
    this.onclose?.();
  }
}

/**
 * @param {HTMLElement} host
 * @param {Options} options
 * @param {View} view
 */
async function show(host, options, view) {
  const place = placeOf(host, options);
  if (options.theme) host.dataset.theme = options.theme;
  const first = request.firstPage(place);
  const chosen = languages.choose(options.lang ?? host.dataset.lang, first);
  const texts = chosen.then(async (language) => {
    const strings = await files.loadStrings(language);
    view.failure = { ...strings.widget, language };
    return strings;
  });
  view.told = texts.catch(() => {});
  const [reader, language, strings] = await Promise.all([
    files.loadScript("widget"),
    chosen,
    texts,
  ]);
  if (view.isClosed) return;
  reader.prepare(language, strings.widget, {
    __proto__: null,
    script: files.loadScript,
    writing: () => files.loadWriting(language),
  });
  await reader.show(host, place, {
    __proto__: null,
    first,
    view,
    again: () => start(host, options, true),
  });
}

/**
 * Recover from a failure to load the widget's own files. If a new release has replaced the files
 * that this entry names, let the new entry show the thread. Otherwise show an error.
 */
async function recover(host, options, view) {
  const late = new Promise((done) => setTimeout(done, PATIENCE));
  const [fresh] = await Promise.all([loadNewest(), Promise.race([view.told, late])]);
  if (view.isClosed) return;
  if (fresh) {
    successor = fresh;
    await start(host, options);
    return;
  }
  frame.apologize(host, view.failure, () => start(host, options, true));
  const detail = { code: "not-loaded", status: 0 };
  host.dispatchEvent(new CustomEvent("flatthread:error", { bubbles: true, detail }));
}

/** Return the entry of a newer release, or null. */
async function loadNewest() {
  const url = new URL(import.meta.url);
  url.searchParams.set("at", String(Date.now()));
  const fresh = await import(url.href).catch(() => null);
  return fresh && fresh.release !== release ? fresh : null;
}

finder.watch({ mayStart: isEmbedded, start, stop });
