/**
 * Unsent text, and the attempt to send it.
 *
 * An attempt binds an idempotency key to one content. If a response is lost and the reader sends the
 * same content again, even after a reload, the request has the same key and token, so the server
 * stores the comment only once. Different content starts a new attempt.
 */

import * as memory from "../../shared/memory.js";
import { randomKey } from "./random.js";

export class Draft {
  #key;
  /** @type {Attempt | null} */
  #attempt;
  /** @type {string | undefined} the text that this tab last read or wrote */
  #known;

  /** `spot` is unique for each site, thread and answered comment. */
  constructor(spot) {
    this.#key = `draft:${spot}`;
    this.#attempt = memory.load(this.#key)?.attempt ?? null;
    this.#known = this.values?.body;
  }

  /**
   * Return the typed values, or null.
   *
   * @returns {Values | null}
   */
  get values() {
    return memory.load(this.#key)?.values ?? null;
  }

  write(values) {
    this.#known = values.body;
    if (values.body === "") memory.drop(this.#key);
    else memory.save(this.#key, { __proto__: null, values, attempt: this.#attempt });
  }

  /**
   * Return the attempt for these values. A new attempt uses `token`.
   *
   * @param {Values} values
   * @param {string | null} token
   * @returns {Attempt}
   */
  attempt(values, token) {
    const content = Object.values(values).join("\0");
    const known = this.#attempt?.content === content ? this.#attempt : null;
    const attempt = known ?? { __proto__: null, content, key: randomKey(), token };
    this.#attempt = attempt;
    this.#keep(values);
    return attempt;
  }

  /** Drop an attempt that the server refused. Nothing was stored, so the next attempt is new. */
  dropAttempt(values) {
    this.#attempt = null;
    this.#keep(values);
  }

  /** Store the draft, unless another tab has stored a different text since then. */
  #keep(values) {
    const { body = this.#known } = this.values ?? {};
    if (body === this.#known) this.write(values);
  }

  drop() {
    this.#attempt = null;
    memory.drop(this.#key);
  }

  /** Drop the draft of a sent text, unless another tab has changed the draft since then. */
  dropSent(values) {
    if (this.values?.body === values.body) this.drop();
    this.#attempt = null;
  }
}
