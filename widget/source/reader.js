/** Show a thread in an element: the bundle with everything that a reader needs. */

import { button, el } from "./dom.js";
import css from "./flatthread.css";
import * as lazy from "./lazy.js";
import { Thread } from "./thread.js";
import { t, use } from "./words.js";

// Every style-src policy allows constructed style sheets, because they are not inline styles.
const style = new CSSStyleSheet();
style.replaceSync(css);

/** Set the language, its texts, and the loader of everything else. The first call counts. */
export function prepare(language, entries, loader) {
  if (isPrepared) return;
  isPrepared = true;
  use(language, entries);
  lazy.connect(loader);
}

let isPrepared = false;

/**
 * Show a thread, or an error with a button to try again.
 *
 * @param {HTMLElement} host
 * @param {Place} place
 * @param {{
 *   first: Promise<Response>,
 *   view: { close: () => void },
 *   isCurrent: () => boolean,
 *   again: () => void,
 * }} options `first` is the answer with the first page; the thread closes with `view`
 */
export async function show(host, place, { first, view, isCurrent, again }) {
  const thread = new Thread(place, first);
  view.close = () => thread.close();
  const failure = await thread.open().then(
    () => null,
    (error) => error,
  );
  if (!isCurrent()) return;
  // The element's own content stays visible until comments or an error can replace it.
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  root.adoptedStyleSheets = [style];
  root.replaceChildren(...(failure ? apology(failure, again) : [thread.element]));
  if (!failure) thread.arrive();
}

function apology(error, again) {
  return [
    el("slot"),
    el(
      "p",
      { class: "ft-error", role: "alert" },
      `${t("not-loaded", { why: error.message })} `,
      button("ft-again", t("again"), again),
    ),
  ];
}
