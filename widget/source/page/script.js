/** The script element by which a page embeds the widget. */

const FILE = import.meta.url.split("?")[0];

/** Return the element that loads this file, or undefined if the page imports the file instead. */
export function ownElement() {
  /** @type {NodeListOf<HTMLScriptElement>} */
  const all = document.querySelectorAll("script[src]");
  return [...all].find((node) => node.src.split("?")[0] === FILE);
}

/** Return the site's id that the page's script names. */
export function siteId() {
  /** @type {HTMLScriptElement | null} */
  const first = document.querySelector("script[data-site]");
  return ownElement()?.dataset.site ?? first?.dataset.site;
}
