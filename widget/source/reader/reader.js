/** The bundle with all code that a reader needs: show a thread in an element. */

import { Problem } from "../shared/api.js";
import { button, el } from "../shared/dom.js";
import css from "./flatthread.css";
import * as lazy from "../shared/lazy.js";
import * as surroundings from "./surroundings.js";
import { Thread } from "./thread.js";
import { direction, language, t, use } from "../shared/words.js";

export { texts } from "../shared/words.js"; // a test fills all texts with it

// Every style-src policy allows constructed style sheets, because they are not inline styles.
const style = new CSSStyleSheet();
style.replaceSync(css);

let isPrepared = false;

/** Set the language, its strings, and the loader of later files. Only the first call has an effect. */
export function prepare(chosen, entries, loader) {
  if (isPrepared) return;
  isPrepared = true;
  use(chosen, entries);
  lazy.connect(loader);
}

/**
 * Show a thread, or an error with a button to try again.
 *
 * @param {HTMLElement} host
 * @param {Place} place
 * @param {{
 *   first: Promise<Response>,
 *   view: { isClosed: boolean, onclose: (() => void) | null },
 *   again: () => void,
 * }} options `first` is the response with the first page; the thread closes with `view`
 */
export async function show(host, place, { first, view, again }) {
  const tell = (name, detail) => {
    host.dispatchEvent(new CustomEvent(`flatthread:${name}`, { bubbles: true, detail }));
  };
  const thread = new Thread(place, first, tell);
  view.onclose = () => thread.close();
  const failure = place.site
    ? await thread.open().catch((error) => error)
    : new Problem(0, t("no-site"), { code: "no-site" });
  await new Promise((done) => setTimeout(done)); // let the browser handle input on slow devices
  if (view.isClosed) return;
  // The element's own content stays visible until comments or an error can replace it.
  const root = /** @type {ShadowRoot} */ (host.shadowRoot);
  thread.element.lang = language;
  thread.element.dir = direction(language);
  root.adoptedStyleSheets = [style];
  root.replaceChildren(...(failure ? apology(failure, again) : [thread.element]));
  if (failure) {
    tell("error", { code: failure.code ?? "", status: failure.status ?? 0 });
    lazy.writer().then(
      (writer) => writer.logHint(failure, place),
      () => {},
    );
    surroundings.watchPage(host, root.lastElementChild, thread.signal);
    addEventListener("online", again, { signal: thread.signal });
    return;
  }
  thread.arrive();
  tell("ready", {});
}

function apology(error, again) {
  // There is no such site: nothing to try again, and the element's own content links to nothing.
  if (error.code === "site-not-found")
    return [el("p", { class: "ft-failure ft-none" }, error.message)];
  return [
    el("slot"),
    el(
      "p",
      { class: "ft-failure ft-error", role: "alert" },
      `${t("not-loaded", { why: error.message })} `,
      button("ft-again", t("again"), again),
    ),
  ];
}
