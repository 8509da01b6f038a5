/**
 * The entry module. It finds the element for the comments and shows a thread in it.
 *
 *     <script type="module" src="https://HOST/widget/flatthread.js" data-site="SITE" async></script>
 *     <div id="flatthread">shown until the comments have loaded</div>
 *
 * The element may have these attributes. `data-thread` is an id chosen by the site that names the
 * thread. Without it, the URL in `data-page` names the thread, or otherwise the page's canonical
 * URL. `data-categories` contains the page's categories, separated by commas; the first comment
 * sends them to the server. `data-account` is a token that signs in the site's reader
 * (docs/people.md). `data-theme` (light or dark) sets colors that do not depend on the page.
 *
 * Single-page applications import this module and call `mount`, `update` and `destroy`. The module
 * defines no globals.
 */

import * as api from "./api.js";
import { button, el } from "./dom.js";
import { Thread } from "./thread.js";
import { t } from "./words.js";
// Also imported here, so that the browser requests all modules at once instead of level by level.
import "./comment.js";
import "./composer.js";
import "./drafts.js";
import "./guest.js";
import "./listing.js";
import "./memory.js";
import "./pages.js";
import "./postforms.js";
import "./prose.js";
import "./strings.js";
import "./times.js";
import "./votes.js";

const ID = "flatthread";
const threads = new WeakMap();
const styled = style();

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
  const place = placeOf(host, options);
  const thread = new Thread(place);
  threads.set(host, thread);
  host.setAttribute("aria-busy", "true");
  const failure = await Promise.all([thread.open(), styled]).then(
    () => null,
    (error) => error,
  );
  // A different thread was mounted here while this one was loading.
  if (threads.get(host) !== thread) return;
  host.removeAttribute("aria-busy");
  await fill(host, failure ? apology(host, options, failure) : [thread.element]);
  if (!failure) thread.arrive();
}

/** Show a different thread in the same element, for single-page applications. */
export function update(host, options) {
  return mount(host, options);
}

/** Remove the thread, so that the element shows its own content again. */
export function destroy(host) {
  threads.get(host)?.close();
  threads.delete(host);
  host.shadowRoot?.replaceChildren(el("slot"));
}

async function fill(host, nodes) {
  // The element's own content stays visible until comments or an error can replace it.
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  root.adoptedStyleSheets = [await styled];
  root.replaceChildren(...nodes);
}

function apology(host, options, error) {
  return [
    el("slot"),
    el(
      "p",
      { class: "ft-error", role: "alert" },
      `${t("not-loaded", { why: error.message })} `,
      button("ft-again", t("again"), () => mount(host, options)),
    ),
  ];
}

// Every style-src policy allows constructed style sheets, because they are not inline styles.
async function style() {
  const sheet = new CSSStyleSheet();
  const text = await api.styles().catch(() => "");
  sheet.replaceSync(text);
  return sheet;
}

/** @returns {Place} */
function placeOf(host, options) {
  /** @type {Record<string, string | undefined>} */
  const said = { __proto__: null, ...host.dataset, ...options };
  const { site = script()?.dataset.site, thread, page, categories = "", account = "" } = said;
  // An element named "title" on the page can shadow document.title.
  const title = typeof document.title === "string" ? document.title : "";
  const url = page ?? canonicalUrl();
  return {
    site: site ?? "",
    query: thread ? { thread } : { page: url ?? address().href },
    title: title.replace(/\s+/g, " ").slice(0, 300),
    // The query may identify the reader, so send it only if the page's URL names the thread. Then
    // the server drops all parameters that do not identify a page.
    url: url ?? (thread ? address().origin + address().pathname : address().href),
    categories: categories.split(",").filter((name) => name.trim()),
    account,
  };
}

function canonicalUrl() {
  /** @type {HTMLLinkElement | null} */
  const link = document.querySelector('link[rel~="canonical"][href]');
  return link?.href.split("#")[0];
}

function address() {
  const url = new URL(location.href);
  url.hash = "";
  return url;
}

function script() {
  /** @type {HTMLScriptElement[]} */
  const all = Array.from(document.querySelectorAll("script[data-site]"));
  return all.find((node) => node.src === import.meta.url) ?? all[0];
}

function start() {
  const host = document.getElementById(ID);
  if (host && !threads.has(host)) mount(host);
}

if (document.readyState === "loading")
  addEventListener("DOMContentLoaded", start, { __proto__: null, once: true });
else start();
