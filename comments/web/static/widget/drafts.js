/**
 * Unsent text, kept until it is sent, and the attempt to send it.
 *
 * An attempt binds an idempotency key to one content. When the answer was lost, sending the same
 * content again repeats the same request - key and speaker alike, even after a reload - so the
 * server stores it once. Other content is another attempt.
 */

import * as memory from "./memory.js";

export class Draft {
  #key;
  /** @type {Attempt | null} */
  #attempt;

  /** `spot` says where the text will go, and is unique per site, thread and answered comment. */
  constructor(spot) {
    this.#key = `draft:${spot}`;
    this.#attempt = memory.load(this.#key)?.attempt ?? null;
  }

  /**
   * What was typed, or null.
   *
   * @returns {Values | null}
   */
  get values() {
    return memory.load(this.#key)?.values ?? null;
  }

  write(values) {
    if (values.body === "") memory.drop(this.#key);
    else memory.save(this.#key, { __proto__: null, values, attempt: this.#attempt });
  }

  /**
   * The attempt for these values. `token` is who speaks if it is a new one.
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
    this.write(values);
    return attempt;
  }

  /** The server refused the attempt: nothing is stored, the next one starts afresh. */
  refused(values) {
    this.#attempt = null;
    this.write(values);
  }

  drop() {
    this.#attempt = null;
    memory.drop(this.#key);
  }

  /** The text has arrived. A tab that meanwhile typed something else here keeps its draft. */
  sent(values) {
    if (this.values?.body === values.body) this.drop();
    this.#attempt = null;
  }
}

/** 128 random bits in hex. (crypto.randomUUID is missing on pages served by plain http.) */
export function randomKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
