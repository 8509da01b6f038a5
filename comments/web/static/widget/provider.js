/**
 * Signing in through a provider: in a window of the server's own, which tells this page a code.
 *
 * Loaded when a guest begins to write, where the site offers providers. The window belongs to the
 * server's origin, so cookies of other sites are not needed. It comes back with a code that is worth
 * something together with the verifier only, which stays here. Where windows are blocked, or the
 * window loses this page on its way, the reader types the code it shows.
 *
 * Heard is one message alone: from that very window, of that very origin, that is a code.
 */

import { button, el } from "./dom.js";
import { language } from "./words.js";
import { t } from "./writing.js";
import { signInByProvider } from "./writingcalls.js";

const CODE = /^[a-z2-7]{4} [a-z2-7]{4}$/;
const SIZE = "popup,width=480,height=640";
const either = new Intl.ListFormat(language, { type: "disjunction" });
let stop = new AbortController(); // of whoever listens: one window at a time

/**
 * Put the offer into `box`. `place` is {form, site, url, providers}, `ui` is {show, field} of
 * signin.js; `entered` is told {token, expires, name, account}.
 */
export async function offer(box, place, ui, entered) {
  if (!globalThis.crypto?.subtle) return; // a page of plain http has no digests
  // Made before they are needed: a window that is not opened at once is blocked.
  let next = await secrets();
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

/** Wait for the code of a window, as long as its offer is on the page. */
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

/** {verifier, challenge}: 256 random bits, and their digest, as in RFC 7636. */
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
