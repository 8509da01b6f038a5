/**
 * Proofs of work, with the ALTCHA protocol (https://altcha.org).
 *
 * A post may need a proof, which is computed while the reader writes. A reader's first vote may
 * need an easier proof, which is computed after the vote is shown. The module loads at that time.
 *
 * Hashes are computed in slices of a few milliseconds, so that the page stays responsive. A worker
 * is not possible: its script must come from the page's own origin or from a blob, and a strict
 * policy forbids blobs. The SHA-256 code is here because browsers offer none to plain http pages.
 */

import { Problem } from "../../shared/api.js";
import { Tokens } from "./turnstile.js";
import { t } from "../../shared/words.js";
import * as calls from "../base/calls.js";

const SLICE = 8; // milliseconds
const FRESH = 45 * 60_000; // milliseconds; the server accepts a challenge for an hour
const STALE = [
  "proof-required",
  "proof-invalid",
  "proof-expired",
  "proof-spent",
  "too-fast",
  "turnstile-required",
  "turnstile-refused",
];

/** Tell whether the server refused the proof, so that a new proof may be accepted. */
export function isStale(error) {
  return STALE.includes(error.code);
}

/** Proofs for the posts from one form, or for first votes. */
export class Proofs {
  #site;
  #form;
  #purpose;
  /** @type {Tokens | null} */
  #tokens = null;
  /** @type {Promise<{ proof: string, ready: number, tokens: Tokens | null }> | null} */
  #next = null;
  #since = 0;

  constructor(site, form, purpose = "post") {
    this.#site = site;
    this.#form = form;
    this.#purpose = purpose;
  }

  /** Start to compute a proof before it is needed. */
  prepare() {
    if (this.#next !== null) return this.#next;
    this.#since = Date.now();
    this.#next = this.#make();
    this.#next.catch(() => {}); // take() reports the error
    return this.#next;
  }

  /** Return an unused {proof, turnstile}, as the server requires. Wait until it may be sent. */
  async take() {
    if (Date.now() - this.#since > FRESH) this.#next = null;
    const isEarly = this.#next !== null;
    // Try again to compute a proof that failed while the reader was writing.
    const next = this.prepare().catch((error) => {
      if (!isEarly) throw error;
      this.#next = null;
      return this.prepare();
    });
    const { proof, ready, tokens } = await next.finally(() => {
      this.#next = null;
    });
    await pause(ready - Date.now());
    const turnstile = await tokens?.take();
    return { __proto__: null, ...(proof && { proof }), ...(turnstile && { turnstile }) };
  }

  async #make() {
    const task = await calls.challenge(this.#site, this.#purpose);
    const [solution, tokens] = await Promise.all([makeProof(task), this.#tokensOf(task.turnstile)]);
    return { ...solution, tokens };
  }

  async #tokensOf(key) {
    if (!key) return null;
    return (this.#tokens ??= new Tokens(key, this.#form));
  }

  /** Send with a proof. If the server refuses the proof, send once more with a new one. */
  async send(post) {
    try {
      return await post(await this.take());
    } catch (error) {
      if (!isStale(error)) throw error;
      return post(await this.take());
    }
  }
}

async function makeProof(task) {
  const ready = Date.now() + task.wait * 1000;
  if (!task.maxnumber) return { proof: "", ready };
  const { algorithm, challenge, salt, signature } = task;
  const number = await solve(task);
  const solution = { __proto__: null, algorithm, challenge, number, salt, signature };
  return { proof: btoa(JSON.stringify(solution)), ready };
}

/** Find the number for which `salt` and the number together have the hash `challenge`. */
export async function solve({ challenge, salt, maxnumber }) {
  const start = new TextEncoder().encode(salt);
  const wanted = Array.from(
    { length: 8 },
    (_, at) => parseInt(challenge.slice(8 * at, 8 * at + 8), 16) | 0,
  );
  let number = 0;
  while (number <= maxnumber) {
    const end = performance.now() + SLICE;
    for (; number <= maxnumber; number++) {
      if (sha256(start, String(number)).every((word, at) => word === wanted[at])) return number;
      if (number % 64 === 0 && performance.now() > end) break;
    }
    if (number <= maxnumber) number++;
    await yieldToBrowser();
  }
  throw new Problem(0, t("unreachable"));
}

function pause(milliseconds) {
  return milliseconds > 0 ? new Promise((done) => setTimeout(done, milliseconds)) : null;
}

// Wait with a message, because browsers delay timers in hidden tabs.
function yieldToBrowser() {
  return new Promise((/** @type {(_?: void) => void} */ done) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      done();
    };
    port2.postMessage(null);
  });
}

// FIPS 180-4: the first 32 bits of the fractional parts of square and cube roots of primes.
const [ROOTS, CUBES] = constants();
const W = new Int32Array(64);

function constants() {
  const primes = [];
  for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
  const bits = (x) => ((x - Math.floor(x)) * 2 ** 32) | 0;
  return [
    Int32Array.from(primes.slice(0, 8), (p) => bits(p ** (1 / 2))),
    Int32Array.from(primes, (p) => bits(Math.cbrt(p))),
  ];
}

function sha256(start, digits) {
  const length = start.length + digits.length;
  const bytes = new Uint8Array(((length + 8) >> 6) * 64 + 64);
  bytes.set(start);
  for (let at = 0; at < digits.length; at++) bytes[start.length + at] = digits.charCodeAt(at);
  bytes[length] = 0x80;
  const view = new DataView(bytes.buffer);
  view.setUint32(bytes.length - 4, length * 8);
  const state = Array.from(ROOTS);
  for (let at = 0; at < bytes.length; at += 64) compress(state, view, at);
  return state;
}

function compress(state, view, from) {
  for (let i = 0; i < 16; i++) W[i] = view.getInt32(from + 4 * i);
  for (let i = 16; i < 64; i++) {
    const x = W[i - 15];
    const y = W[i - 2];
    const low = rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3);
    const high = rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10);
    W[i] = W[i - 16] + low + W[i - 7] + high;
  }
  let [a, b, c, d, e, f, g, h] = state;
  for (let i = 0; i < 64; i++) {
    const chosen = (e & f) ^ (~e & g);
    const more =
      (h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + chosen + CUBES[i] + W[i]) | 0;
    const most = (a & b) ^ (a & c) ^ (b & c);
    const less = ((rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + most) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + more) | 0;
    d = c;
    c = b;
    b = a;
    a = (more + less) | 0;
  }
  [a, b, c, d, e, f, g, h].forEach((word, at) => {
    state[at] = (state[at] + word) | 0;
  });
}

function rotate(word, bits) {
  return (word >>> bits) | (word << (32 - bits));
}
