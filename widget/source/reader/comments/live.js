/**
 * Polling for new comments while the page is visible.
 *
 * The time between two polls doubles while nothing changes or the server does not respond, up to
 * `SLOWEST` times the site's value. It is reset when the reader returns to the page.
 */

const SLOWEST = 16;

export class Live {
  #poll;
  #seconds;
  #signal;
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
    this.#signal = signal;
    const wake = () => {
      this.#factor = 1;
      this.#plan();
    };
    document.addEventListener("visibilitychange", wake, { signal });
    addEventListener("online", wake, { signal });
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
    this.#plan();
  }

  /** Replace the planned poll, so that there is never more than one. */
  #plan() {
    clearTimeout(this.#timer);
    if (this.#signal.aborted || document.visibilityState !== "visible") return;
    this.#timer = setTimeout(() => this.#run(), this.#seconds * this.#factor * 1000);
  }

  async #run() {
    const isChanged = await this.#poll();
    this.#factor = isChanged ? 1 : Math.min(this.#factor * 2, SLOWEST);
    this.#plan();
  }
}
