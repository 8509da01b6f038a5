/**
 * Turnstile, where the site asks for it: https://developers.cloudflare.com/turnstile/
 *
 * Loaded when somebody begins to write there, and Cloudflare's script by it. What that shows, if
 * anything, stands in a slot of the form, outside of the shadow root, where its script looks for it.
 * A page that enforces Trusted Types allows its address through the policy "flatthread-turnstile".
 */

import { Problem } from "./api.js";
import { el } from "./dom.js";
import { t } from "./writing.js";

const SCRIPT = "https://challenges.cloudflare.com/turnstile/v0/api.js?render=explicit";
const ACTION = "comment";
const PATIENCE = 60_000; // milliseconds; somebody may have to click
const FAILED = t("turnstile-failed");

/** @type {Promise<Turnstile> | null} */
let loading = null;
/** @type {{ createScriptURL: (url: string) => string } | null} */
let policy = null;
let count = 0;

/** Tokens for the posts of one form, each for one post. */
export class Tokens {
  #key;
  #form;
  #host;
  /** @type {Promise<{ turnstile: Turnstile, id: string }> | null} */
  #widget = null;
  #next = pending();

  constructor(key, form) {
    const name = `ft-turnstile-${++count}`;
    form.append(el("slot", { name, class: "ft-turnstile" }));
    this.#host = el("div", { slot: name });
    this.#key = key;
    this.#form = form;
    this.#ready();
  }

  /** A token that nobody has used. */
  async take() {
    const { turnstile, id } = await this.#ready();
    const token = await Promise.race([this.#next.given, late()]);
    this.#next = pending();
    turnstile.reset(id);
    return token;
  }

  #ready() {
    const widget = (this.#widget ??= this.#render());
    widget.catch(() => (this.#widget = null)); // tried again by who takes a token next
    return widget;
  }

  async #render() {
    const turnstile = await load();
    this.#form.getRootNode().host?.append(this.#host);
    this.#next = pending();
    const id = turnstile.render(this.#host, {
      sitekey: this.#key,
      action: ACTION,
      callback: (token) => this.#next.give(token),
      // It tries again by itself, and so does whoever is told.
      "error-callback": () => this.#fail(),
      "expired-callback": () => (this.#next = pending()),
    });
    return { turnstile, id };
  }

  #fail() {
    const { fail } = this.#next;
    this.#next = pending();
    fail(new Problem(0, FAILED));
  }
}

/**
 * A token that is still to come, and how to give it or to fail.
 *
 * @typedef {{
 *   given: Promise<string>,
 *   give: (token: string) => void,
 *   fail: (why: Error) => void,
 * }} Pending
 */
function pending() {
  const next = /** @type {Pending} */ ({});
  next.given = new Promise((give, fail) => Object.assign(next, { give, fail }));
  next.given.catch(() => {}); // whoever waits is told
  return next;
}

function late() {
  return new Promise((_, fail) => setTimeout(fail, PATIENCE, new Problem(0, FAILED)));
}

function load() {
  loading ??= new Promise((done, fail) => {
    const arrived = () => done(/** @type {Turnstile} */ (window.turnstile));
    if (window.turnstile) return arrived();
    const script = document.createElement("script");
    script.src = addressed(SCRIPT);
    script.async = true;
    script.onload = arrived;
    script.onerror = () => {
      loading = null; // tried again with the next form
      fail(new Problem(0, FAILED));
    };
    document.head.append(script);
  });
  return loading;
}

function addressed(url) {
  policy ??= makePolicy();
  return policy.createScriptURL(url);
}

// Once: a page that lists policies allows each to be made once.
function makePolicy() {
  const plain = { createScriptURL: (url) => url };
  try {
    return window.trustedTypes?.createPolicy("flatthread-turnstile", plain) ?? plain;
  } catch {
    return plain; // the page forbids it, and the browser says so
  }
}
