/** The thread to show, as the element, the script and the page describe it. */

import * as script from "./script.js";

const ORDERS = ["thread", "recent", "best", "oldest", "newest"];

/**
 * @param {HTMLElement} host
 * @param {object} options
 * @returns {Place}
 */
export function placeOf(host, options) {
  /** @type {Record<string, string | undefined>} */
  const attributes = { __proto__: null, ...host.dataset, ...options };
  const { site = script.siteId() ?? "", thread, page, categories = "", account = "" } = attributes;
  // An element named "title" on the page can shadow document.title.
  const title = typeof document.title === "string" ? document.title : "";
  /** @type {HTMLLinkElement | null} */
  const canonical = document.querySelector('link[rel~="canonical"][href]');
  /** @type {HTMLMetaElement | null} */
  const graph = document.querySelector('meta[property="og:url"]');
  // Many themes declare the home page on every page, so the home page is left out.
  const shared = graph?.content.match(/^https?:..[^\/ ]+\/[^#]+/)?.[0];
  const address = page ?? canonical?.href ?? shared;
  const here = cut(location.href);
  const url = address === undefined ? here : cut(address);
  return {
    site,
    spot: `${site}:${thread ?? url}`,
    query: thread ? { thread } : { page: url },
    // The page's own address, if its canonical address is another page.
    here: thread || page || pageOf(here) === pageOf(url) ? undefined : here,
    order: [storedOrder(), attributes.order].find((order) => ORDERS.includes(order)) ?? "",
    title: title.replace(/\s+/g, " ").slice(0, 300),
    // The query may identify the reader, so send it only if the page's URL names the thread. Then
    // the server drops all parameters that do not identify a page.
    url: thread && !address ? url.split("?")[0] : url,
    categories: categories.split(",").filter((name) => name.trim()),
    account,
  };
}

/**
 * Return an address without its fragment and without long parameters.
 *
 * Servers refuse long requests, and a long parameter cannot be part of a thread's id. The server
 * ignores parameters that do not identify a page, and refuses U+FFFD in the others, so a cut
 * parameter never names a different page.
 */
function cut(address) {
  return address.split("#")[0].replace(/([?&][^&]{1200})[^&]{1800,}/g, "$1\ufffd");
}

/** Return an address without its scheme and query, which rarely tell pages apart. */
function pageOf(address) {
  return address.replace(/^\w+:|\?.*/g, "");
}

/** Tell whether the page embeds the widget in this element, and does not call `mount` itself. */
export function isEmbedded(host) {
  return host.dataset.site !== undefined || script.ownElement() !== undefined;
}

/** Return the order that the reader chose, which memory.js stores as `order`. */
function storedOrder() {
  try {
    return JSON.parse(localStorage.getItem("flatthread:order") ?? "null");
  } catch {
    return null; // storage is forbidden, or the value is damaged
  }
}
