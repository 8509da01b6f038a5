/**
 * Cloudflare Turnstile, for sites that use it: https://developers.cloudflare.com/turnstile/
 *
 * Loads when the reader begins to write, and then loads Cloudflare's script. That script does not
 * work inside shadow roots, so its element is outside and appears in a slot of the form. A page
 * that enforces Trusted Types must allow the policy "flatthread-turnstile" for the script's URL.
 */

import { Problem } from "../../shared/api.js";
import { el } from "../../shared/dom.js";
import { t } from "../base/writertexts.js";

const SCRIPT = "https://challenges.cloudflare.com/turnstile/v0/api.js?render=explicit";
const ACTION = "comment";
const PATIENCE = 60_000; // milliseconds; the reader may have to click

/** @type {Promise<Turnstile> | null} */
let loading = null;
/** @type {{ createScriptURL: (url: string) => string } | null} */
let policy = null;
let count = 0;

/** Tokens for the posts from one form. Each post needs its own token. */
export class Tokens {
  #key;
  #form;
  #host;
  /** @type {Promise<{ turnstile: Turnstile, id: string }> | null} */
  #widget = null;
  #next = newPending();

  constructor(key, form) {
    const name = `ft-turnstile-${++count}`;
    form.append(el("slot", { name, class: "ft-turnstile" }));
    this.#host = el("div", { slot: name });
    this.#key = key;
    this.#form = form;
    this.#ready();
  }

  /** Return an unused token. */
  async take() {
    const { turnstile, id } = await this.#ready();
    const token = await Promise.race([this.#next.given, timeout()]);
    this.#next = newPending();
    turnstile.reset(id);
    return token;
  }

  #ready() {
    const widget = (this.#widget ??= this.#render());
    widget.catch(() => (this.#widget = null)); // the next call tries again
    return widget;
  }

  async #render() {
    const turnstile = await load();
    this.#form.getRootNode().host?.append(this.#host);
    this.#next = newPending();
    const id = turnstile.render(this.#host, {
      sitekey: this.#key,
      action: ACTION,
      callback: (token) => this.#next.give(token),
      // Turnstile retries automatically. The reader can also post again.
      "error-callback": () => this.#fail(),
      "expired-callback": () => (this.#next = newPending()),
    });
    return { turnstile, id };
  }

  #fail() {
    const { fail } = this.#next;
    this.#next = newPending();
    fail(new Problem(0, t("turnstile-failed")));
  }
}

/**
 * A promise for a token, with the functions that settle it.
 *
 * @typedef {{
 *   given: Promise<string>,
 *   give: (token: string) => void,
 *   fail: (why: Error) => void,
 * }} Pending
 */
function newPending() {
  const next = /** @type {Pending} */ ({});
  next.given = new Promise((give, fail) => Object.assign(next, { give, fail }));
  next.given.catch(() => {}); // take() reports the error
  return next;
}

function timeout() {
  return new Promise((_, fail) =>
    setTimeout(fail, PATIENCE, new Problem(0, t("turnstile-failed"))),
  );
}

function load() {
  loading ??= new Promise((done, fail) => {
    const arrived = () => done(/** @type {Turnstile} */ (window.turnstile));
    if (window.turnstile) return arrived();
    const script = document.createElement("script");
    script.src = scriptUrl(SCRIPT);
    script.async = true;
    script.onload = arrived;
    script.onerror = () => {
      loading = null; // the next form tries again
      fail(new Problem(0, t("turnstile-failed")));
    };
    document.head.append(script);
  });
  return loading;
}

function scriptUrl(url) {
  policy ??= makePolicy();
  return policy.createScriptURL(url);
}

// Create the policy only once: a page that lists its policies allows each of them only once.
function makePolicy() {
  const plain = { createScriptURL: (url) => url };
  try {
    return window.trustedTypes?.createPolicy("flatthread-turnstile", plain) ?? plain;
  } catch {
    return plain; // the page forbids the policy, and the browser reports that
  }
}
