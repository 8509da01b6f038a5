/**
 * Sign-in through a provider, in a pop-up window that sends a code to this page.
 *
 * Loads when a guest begins to write and the site has providers. The window is on the server's
 * origin, so third-party cookies are not needed. The code is useless without the verifier, which
 * the window never gets. If windows are blocked, or the window loses its connection to this page,
 * the reader types the code that the window shows.
 *
 * This page accepts only one message: a code from that window and from the server's origin.
 */

import { button, el } from "./dom.js";
import { language } from "./words.js";
import { t } from "./writing.js";
import { signInByProvider } from "./writingcalls.js";

const CODE = /^[a-z2-7]{4} [a-z2-7]{4}$/;
const SIZE = "popup,width=480,height=640";
let stop = new AbortController(); // stops the current listener; only one window is used at a time

/**
 * Add the button to `box`. `place` is {form, site, url, providers}, and `ui` is {show, field} from
 * signin.js. `entered` is called with {token, expires, name, account}.
 */
export async function offer(box, place, ui, entered) {
  if (!globalThis.crypto?.subtle) return; // plain http pages have no digest function
  // Made in advance: browsers block a window that does not open immediately after the click.
  let next = await secrets();
  const either = new Intl.ListFormat(language, { type: "disjunction" });
  const titles = place.providers.map(({ title }) => title);
  const begin = () => {
    const mine = next;
    secrets().then((made) => (next = made));
    open(box, place, mine, ui, entered);
  };
  box.append(
    button("ft-sign-in-open", t("continue-with", { providers: either.format(titles) }), begin),
  );
}

function open(box, { form, site, url }, { verifier, challenge }, { show, field }, entered) {
  const address = new URL(url);
  address.searchParams.set("origin", location.origin);
  address.searchParams.set("challenge", challenge);
  const opened = window.open(address, "", SIZE);
  const told = el(
    "p",
    { class: "ft-hint", role: "status" },
    opened ? t("window-hint") : t("window-blocked"),
  );
  const link = { href: address.href, target: "_blank", rel: "noopener", class: "ft-sign-in-link" };
  const by = opened ? [] : [el("a", link, t("open-window"))];
  const code = field(t("code"), { autocomplete: "one-time-code", maxlength: "40" });
  const name = field(t("provider-name"), {
    autocomplete: "nickname",
    maxlength: "80",
    dir: "auto",
    required: false,
  });
  name.input.value = form.querySelector("input[name=name]")?.value ?? "";
  const run = show(box, t("sign-in"), [told, ...by, code, name], async () => {
    const sent = { __proto__: null, verifier, code: code.input.value, name: name.input.value };
    const member = await signInByProvider(site, sent);
    stop.abort();
    entered(member);
  });
  if (!opened) return;
  listen(opened, address.origin, box, (given) => {
    code.input.value = given;
    run();
  });
}

/** Wait for a code from a window while the window's button is on the page. */
function listen(opened, origin, box, tell) {
  stop.abort();
  stop = new AbortController();
  const own = stop;
  const hear = ({ source, origin: from, data }) => {
    if (!box.isConnected) own.abort();
    if (own.signal.aborted || source !== opened || from !== origin) return;
    const code = codeOf(data);
    if (code === null) return;
    own.abort();
    opened.close();
    tell(code);
  };
  addEventListener("message", hear, { signal: own.signal });
}

function codeOf(data) {
  if (data === null || typeof data !== "object" || !Object.hasOwn(data, "code")) return null;
  const { code } = data;
  return typeof code === "string" && CODE.test(code) ? code : null;
}

/** Make {verifier, challenge}: 256 random bits and their digest (RFC 7636). */
async function secrets() {
  const verifier = base64url(crypto.getRandomValues(new Uint8Array(32)));
  const bytes = new TextEncoder().encode(verifier);
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  return { verifier, challenge: base64url(new Uint8Array(digest)) };
}

function base64url(bytes) {
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
