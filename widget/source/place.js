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
  const said = { __proto__: null, ...host.dataset, ...options };
  const { site = script.site(), thread, page, categories = "", account = "" } = said;
  // An element named "title" on the page can shadow document.title.
  const title = typeof document.title === "string" ? document.title : "";
  const url = page ?? canonicalUrl();
  return {
    site: site ?? "",
    spot: `${site}:${thread ?? url ?? address().href}`,
    query: thread ? { thread } : { page: url ?? address().href },
    order: [remembered(), said.order].find((order) => ORDERS.includes(order ?? "")) ?? "",
    title: title.replace(/\s+/g, " ").slice(0, 300),
    // The query may identify the reader, so send it only if the page's URL names the thread. Then
    // the server drops all parameters that do not identify a page.
    url: url ?? (thread ? address().origin + address().pathname : address().href),
    categories: categories.split(",").filter((name) => name.trim()),
    account,
  };
}

/** Tell whether the page embeds the widget in this element, and does not call `mount` itself. */
export function isEmbedded(host) {
  return host.dataset.site !== undefined || script.own() !== undefined;
}

/** Return the order that the reader chose, which memory.js stores as `order`. */
function remembered() {
  try {
    return JSON.parse(localStorage.getItem("flatthread:order") ?? "null");
  } catch {
    return null; // storage is forbidden, or the value is damaged
  }
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
