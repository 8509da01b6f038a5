/**
 * Windows of the service that send a code to this page: for sign-in through a provider, and for
 * moderation.
 *
 * The window is on the server's origin, so third-party cookies are not needed. The code is useless
 * without the verifier, which the window never gets. If the browser blocks windows, or the window
 * loses its connection to this page, the reader types the code that the window shows.
 *
 * This page accepts only one message: a code from that window and from the server's origin.
 */

import { el } from "../../shared/dom.js";
import { field, show } from "../base/fields.js";
import { t } from "../base/writertexts.js";

const CODE = /^[a-z2-7]{4} [a-z2-7]{4}$/;
const SIZE = "popup,width=480,height=640";
let stop = new AbortController(); // stops the current listener; only one window is used at a time

/** Tell whether this page can make a challenge. Pages on plain HTTP have no digest function. */
export function isPossible() {
  return Boolean(globalThis.crypto?.subtle);
}

/**
 * Open the window at `address`, and ask for its code in `box`. The button labeled `submit` calls
 * `use(code)`. `more` contains further fields; `blocked` and `link` are shown if the browser blocks
 * the window.
 *
 * @param {HTMLElement} box
 * @param {URL} address
 * @param {string} challenge
 * @param {{
 *   submit: string,
 *   blocked: string,
 *   link: string,
 *   more?: import("../base/fields.js").Field[],
 *   use: (code: string) => Promise<void>,
 *   cancel?: () => void,
 * }} options
 */
export function ask(box, address, challenge, { submit, blocked, link, more = [], use, cancel }) {
  address.searchParams.set("origin", location.origin);
  address.searchParams.set("challenge", challenge);
  const opened = window.open(address, "", SIZE);
  const hint = el("p", { class: "ft-hint", role: "status" }, opened ? t("window-hint") : blocked);
  const attributes = {
    href: address.href,
    target: "_blank",
    rel: "noopener",
    class: "ft-sign-in-link",
  };
  const links = opened ? [] : [el("a", attributes, link)];
  const code = field(t("code"), { autocomplete: "one-time-code", maxlength: "40" });
  const act = async () => {
    await use(code.input.value);
    stop.abort();
  };
  const run = show(box, submit, [hint, ...links, code, ...more], act, cancel);
  if (!opened) return;
  listen(opened, address.origin, box, (received) => {
    code.input.value = received;
    run();
  });
}

/** Wait for a code from a window while the window's button is on the page. */
function listen(opened, origin, box, useCode) {
  stop.abort();
  stop = new AbortController();
  const own = stop;
  const onMessage = ({ source, origin: from, data }) => {
    if (!box.isConnected) own.abort();
    if (own.signal.aborted || source !== opened || from !== origin) return;
    const code = codeOf(data);
    if (code === null) return;
    own.abort();
    opened.close();
    useCode(code);
  };
  addEventListener("message", onMessage, { signal: own.signal });
}

function codeOf(data) {
  if (data === null || typeof data !== "object" || !Object.hasOwn(data, "code")) return null;
  const { code } = data;
  return typeof code === "string" && CODE.test(code) ? code : null;
}

/** Make {verifier, challenge}: 256 random bits and their digest (RFC 7636). */
export async function secrets() {
  const verifier = base64url(crypto.getRandomValues(new Uint8Array(32)));
  const bytes = new TextEncoder().encode(verifier);
  const digest = await crypto.subtle.digest("SHA-256", bytes);
  return { verifier, challenge: base64url(new Uint8Array(digest)) };
}

function base64url(bytes) {
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}
