/**
 * The file that pages embed. It finds the element for the comments and shows a thread in it.
 *
 *     <script type="module" src="https://HOST/widget/flatthread.js" data-site="SITE" async></script>
 *     <div id="flatthread"></div>
 *
 * The element may have these attributes. `data-thread` is an id chosen by the site that names the
 * thread. Without it, the URL in `data-page` names the thread, or otherwise the page's canonical
 * URL. `data-categories` contains the page's categories, separated by commas; the first comment
 * sends them to the server. `data-account` is a token that signs in the site's reader
 * (docs/people.md). `data-theme` (light or dark) sets colors that do not depend on the page.
 *
 * Single-page applications import this module and call `mount`, `update` and `destroy`. The module
 * defines no globals.
 *
 * Pages load this file again after some minutes. It is small, and starts the request for the
 * comments, the reader bundle and the strings at once and in parallel.
 */

import * as files from "./files.js";
import { languageOf } from "./languages.js";
import { placeOf } from "./place.js";
import * as request from "./request.js";

const ID = "flatthread";
const threads = new WeakMap();

/**
 * Show a thread in `host`. The `options` {site, thread, page} override the attributes.
 *
 * The promise resolves when the first page or an error is visible.
 *
 * @param {HTMLElement} host
 * @param {{ site?: string, thread?: string, page?: string }} [options]
 */
export async function mount(host, options = {}) {
  destroy(host);
  /** @type {{ close: () => void }} */
  const view = { close() {} };
  threads.set(host, view);
  host.setAttribute("aria-busy", "true");
  const isCurrent = () => threads.get(host) === view;
  try {
    await show(host, options, view, isCurrent);
  } catch {
    if (isCurrent()) apologize(host, options);
  }
  if (isCurrent()) host.removeAttribute("aria-busy");
}

/** Show a different thread in the same element, for single-page applications. */
export function update(host, options) {
  return mount(host, options);
}

/** Remove the thread, so that the element shows its own content again. */
export function destroy(host) {
  threads.get(host)?.close();
  threads.delete(host);
  host.shadowRoot?.replaceChildren(document.createElement("slot"));
}

async function show(host, options, view, isCurrent) {
  const place = placeOf(host, options);
  const first = request.firstPage(place);
  const language = languageOf();
  const [reader, strings] = await Promise.all([
    files.script("widget"),
    files.strings("strings", language),
  ]);
  // A different thread was mounted here while this one was loading.
  if (!isCurrent()) return;
  reader.prepare(language, strings.widget, {
    __proto__: null,
    script: files.script,
    strings: (stem) => files.strings(stem, language),
  });
  await reader.show(host, place, {
    __proto__: null,
    first,
    view,
    isCurrent,
    again: () => mount(host, options),
  });
}

/** Say that the widget's own files could not be loaded. */
function apologize(host, options) {
  const [failed, again] = FAILURE[languageOf()];
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const said = document.createElement("p");
  const button = document.createElement("button");
  said.setAttribute("role", "alert");
  button.type = "button";
  button.textContent = again;
  button.addEventListener("click", () => mount(host, options));
  said.append(`${failed} `, button);
  root.replaceChildren(document.createElement("slot"), said);
}

function start() {
  const host = document.getElementById(ID);
  if (host && !threads.has(host)) mount(host);
}

if (document.readyState === "loading")
  addEventListener("DOMContentLoaded", start, { __proto__: null, once: true });
else start();
