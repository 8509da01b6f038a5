/**
 * Polling for new comments while the page is visible.
 *
 * The time between two polls doubles while nothing changes or the server does not answer, up to
 * `SLOWEST` times the site's value, and begins again when the reader returns to the page.
 */

const SLOWEST = 16;

export class Live {
  #poll;
  #seconds;
  #factor = 1;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer;

  /**
   * `poll` returns whether something changed. `seconds` is the shortest time between two polls.
   *
   * @param {() => Promise<boolean>} poll
   * @param {number} seconds
   * @param {AbortSignal} signal
   */
  constructor(poll, seconds, signal) {
    this.#poll = poll;
    this.#seconds = seconds;
    document.addEventListener("visibilitychange", () => this.#wake(), { signal });
    addEventListener("online", () => this.#wake(), { signal });
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
    this.#plan();
  }

  #wake() {
    clearTimeout(this.#timer);
    this.#factor = 1;
    if (document.visibilityState === "visible") this.#plan();
  }

  #plan() {
    this.#timer = setTimeout(() => this.#run(), this.#seconds * this.#factor * 1000);
  }

  async #run() {
    if (document.visibilityState !== "visible") return;
    const isChanged = await this.#poll().catch(() => false);
    this.#factor = isChanged ? 1 : Math.min(this.#factor * 2, SLOWEST);
    this.#plan();
  }
}
