/** The thread to show: what the element, the script and the page say about it. */

/**
 * @param {HTMLElement} host
 * @param {object} options
 * @returns {Place}
 */
export function placeOf(host, options) {
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
