/**
 * What an element shows before its comments: its own content above gray placeholders, and the error
 * message of a failed start.
 *
 * The height is reserved at once, so that less of the page moves when the comments appear. The
 * page's own style for the element takes precedence.
 */

import failed from "./failed.css";
import loading from "./loading.css";

/** Show the element's own content, and reserve the height of some comments. */
export function reserve(host) {
  const shape = document.createElement("div");
  shape.setAttribute("aria-hidden", "true");
  fill(host, loading, shape);
}

/** Show only the element's own content. */
export function clear(host) {
  if (host.shadowRoot) fill(host, "");
}

/** Say that the widget's own files could not be loaded, with a button to try again. */
export function apologize(host, texts, again) {
  const message = document.createElement("p");
  const button = document.createElement("button");
  message.setAttribute("role", "alert");
  message.lang = texts.language;
  message.dir = "auto";
  button.type = "button";
  button.textContent = texts.again;
  button.addEventListener("click", again);
  message.append(`${texts.failed} `, button);
  fill(host, failed, message);
}

/** Focus the heading of the thread, or the button that tries again. */
export function focus(host) {
  const options = { __proto__: null, preventScroll: true };
  host.shadowRoot?.querySelector("[role=alert] button, h2")?.focus(options);
}

// Every style-src policy allows constructed style sheets, because they are not inline styles.
function fill(host, css, ...nodes) {
  const root = host.shadowRoot ?? host.attachShadow({ __proto__: null, mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  root.adoptedStyleSheets = [sheet];
  root.replaceChildren(document.createElement("slot"), ...nodes);
}
