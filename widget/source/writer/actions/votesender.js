/**
 * Sending votes, and loading the reader's own votes.
 *
 * Calls are made sequentially: a guest's first vote returns the token for the next ones, and votes
 * that are loaded must contain those that were sent before. A first vote may need a proof of work.
 */

import * as ownstore from "../base/ownstore.js";
import { Proofs, isStale } from "../identity/proof.js";
import { randomKey } from "../base/random.js";
import * as calls from "../base/calls.js";

export class VoteSender {
  #guest;
  #place;
  #attempts = new Map();
  /** @type {Proofs | null} */
  #proofs = null;
  /** @type {Promise<void>} */
  #turn = Promise.resolve();

  constructor(guest, place) {
    this.#guest = guest;
    this.#place = place;
  }

  /**
   * Return the reader's votes in the thread by comment id, and the part of each that the page's
   * score contains.
   *
   * @returns {Promise<[Map<string, number>, Map<string, number>]>}
   */
  load() {
    return this.#queue(() => this.#load());
  }

  /** Vote 1 or -1, or withdraw the vote (0), after all earlier calls. */
  send(id, value) {
    return this.#queue(() => this.#send(id, value));
  }

  /**
   * @template T
   * @param {() => Promise<T>} call
   * @returns {Promise<T>}
   */
  #queue(call) {
    const result = this.#turn.then(call);
    this.#turn = result.then(
      () => {},
      () => {},
    );
    return result;
  }

  /** @returns {Promise<[Map<string, number>, Map<string, number>]>} */
  async #load() {
    /** @type {Map<string, number>} */
    const mine = new Map();
    const counted = new Map();
    const token = this.#guest.token;
    for (let cursor = token && ""; cursor !== null;) {
      const page = await calls.ownVotesPage(this.#place, token, cursor);
      for (const [id, value] of Object.entries(page.votes)) {
        mine.set(id, value);
        counted.set(id, value);
      }
      for (const [id, missing] of Object.entries(page.uncounted ?? {}))
        counted.set(id, (mine.get(id) ?? 0) - missing);
      cursor = page.cursor;
    }
    return [mine, counted];
  }

  async #send(id, value) {
    try {
      const { token, expires } = await this.#call(id, value);
      this.#guest.keepToken(token, expires);
      this.#attempts.delete(id);
    } catch (problem) {
      if (problem.status !== 401 || !this.#guest.token || this.#guest.name !== null) throw problem;
      // The server no longer accepts the token. A vote without a token returns a new one.
      ownstore.dropToken(this.#guest);
      await this.#send(id, value);
    }
  }

  async #call(id, value) {
    const { token } = this.#guest;
    if (!value) return calls.withdraw(id, token);
    // Use the same attempt until a response arrives, so that a retried vote counts only once.
    const attempt = this.#attempts.get(id) ?? {
      key: randomKey(),
      proof: token ? "" : await this.#proof(),
    };
    this.#attempts.set(id, attempt);
    try {
      return await calls.vote(id, value, { ...attempt, token });
    } catch (problem) {
      if (token || !isStale(problem)) throw problem;
      attempt.proof = await this.#proof();
      return calls.vote(id, value, { ...attempt, token });
    }
  }

  async #proof() {
    this.#proofs ??= new Proofs(this.#place.site, null, "vote");
    return (await this.#proofs.take()).proof;
  }
}
