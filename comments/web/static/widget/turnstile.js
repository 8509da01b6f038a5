/**
 * Turnstile, where the site asks for it: https://developers.cloudflare.com/turnstile/
 *
 * Loaded when somebody begins to write there, and Cloudflare's script by it. What that shows, if
 * anything, stands in a slot of the form, outside of the shadow root, where its script looks for it.
 * A page that enforces Trusted Types allows its address through the policy "flatthread-turnstile".
 */

import * as api from "./api.js";
import { el } from "./dom.js";

const SCRIPT = "https://challenges.cloudflare.com/turnstile/v0/api.js?render=explicit";
const ACTION = "comment";
const PATIENCE = 60_000; // milliseconds; somebody may have to click
const FAILED = "Turnstile, which this site asks for, could not be reached. Please try again.";

let loading = null;
let policy = null;
let count = 0;

/** Tokens for the posts of one form, each for one post. */
export class Tokens {
  #key;
  #form;
  #host;
  #widget = null;
  #next = null;

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
    this.#await();
    turnstile.reset(id);
    return token;
  }

  #ready() {
    this.#widget ??= this.#render();
    this.#widget.catch(() => (this.#widget = null)); // tried again by who takes a token next
    return this.#widget;
  }

  async #render() {
    const turnstile = await load();
    this.#form.getRootNode().host?.append(this.#host);
    this.#await();
    const id = turnstile.render(this.#host, {
      sitekey: this.#key,
      action: ACTION,
      callback: (token) => this.#next.give(token),
      // It tries again by itself, and so does whoever is told.
      "error-callback": () => this.#fail(),
      "expired-callback": () => this.#await(),
    });
    return { turnstile, id };
  }

  #fail() {
    const { fail } = this.#next;
    this.#await();
    fail(new api.Problem(0, FAILED));
  }

  #await() {
    const next = {};
    next.given = new Promise((give, fail) => Object.assign(next, { give, fail }));
    next.given.catch(() => {}); // whoever waits is told
    this.#next = next;
  }
}

function late() {
  return new Promise((_, fail) => setTimeout(fail, PATIENCE, new api.Problem(0, FAILED)));
}

function load() {
  loading ??= new Promise((done, fail) => {
    if (window.turnstile) return done(window.turnstile);
    const script = document.createElement("script");
    script.src = addressed(SCRIPT);
    script.async = true;
    script.onload = () => done(window.turnstile);
    script.onerror = () => {
      loading = null; // tried again with the next form
      fail(new api.Problem(0, FAILED));
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
