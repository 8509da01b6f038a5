/**
 * Votes: a comment's two vote buttons, the score between them, and the reader's own votes.
 *
 * The server sends the same page to all readers and counts a vote some seconds later. The visible
 * score is therefore the page's score plus the reader's own later change. Votes are sent
 * sequentially, because a guest's first vote returns the token for the next ones. A first vote may
 * need a proof of work, which is computed after the button shows the vote.
 */

import * as api from "./api.js";
import { button, el, isBusy, setBusy } from "./dom.js";
import { randomKey } from "./random.js";
import { icon } from "./icons.js";
import * as lazy from "./lazy.js";
import { language, t } from "./words.js";

export class Votes {
  #guest;
  #place;
  #mine = new Map();
  #counted = new Map();
  #controls = new Map();
  #attempts = new Map();
  /** @type {import("./proof.js").Proofs | null} */
  #proofs = null;
  #turn = Promise.resolve();

  constructor(guest, place) {
    this.#guest = guest;
    this.#place = place;
  }

  /** Load the reader's votes. If that fails, no button is pressed, and voting still works. */
  async load() {
    const found = new Map();
    const counted = new Map();
    const token = this.#guest.token;
    try {
      for (let cursor = token && ""; cursor !== null;) {
        const page = await api.ownVotes(this.#place, token, cursor);
        for (const [id, value] of Object.entries(page.votes)) {
          found.set(id, value);
          counted.set(id, value);
        }
        for (const [id, missing] of Object.entries(page.uncounted ?? {}))
          counted.set(id, (found.get(id) ?? 0) - missing);
        cursor = page.cursor;
      }
    } catch {
      return;
    }
    this.#mine = found;
    this.#counted = counted;
    for (const control of this.#controls.values()) control.refresh();
  }

  /** Return the elements that show a comment's votes, with buttons only if the reader may vote. */
  elements(comment, mayVote) {
    const score = el("span", { class: "ft-score", "aria-hidden": "true" });
    const group = el("div", { class: "ft-votes", role: "group" }, score);
    const error = el("p", { class: "ft-error", role: "alert" });
    const buttons = new Map();
    const refresh = () => {
      const shown = comment.data.score + this.#of(comment.id) - this.#countedOf(comment.id);
      score.textContent = shown.toLocaleString(language);
      group.setAttribute("aria-label", t("score", { score: shown }));
      for (const [value, control] of buttons) {
        control.setAttribute("aria-pressed", String(this.#of(comment.id) === value));
      }
    };
    if (mayVote) {
      const press = (value) => this.#press(comment.id, value, { group, error, refresh });
      buttons.set(
        1,
        voteButton("up", t("upvote", { name: comment.name }), () => press(1)),
      );
      buttons.set(
        -1,
        voteButton("down", t("downvote", { name: comment.name }), () => press(-1)),
      );
      score.before(buttons.get(1));
      score.after(buttons.get(-1));
    }
    this.#controls.set(comment.id, { refresh });
    refresh();
    return [group, error];
  }

  #of(id) {
    return this.#mine.get(id) ?? 0;
  }

  #countedOf(id) {
    return this.#counted.get(id) ?? 0;
  }

  /** Vote, or withdraw the vote if the button is already pressed. */
  async #press(id, pressed, { group, error, refresh }) {
    if (isBusy(group)) return;
    setBusy(group, true);
    const before = this.#of(id);
    const value = before === pressed ? 0 : pressed;
    error.textContent = "";
    this.#mine.set(id, value);
    refresh();
    try {
      await this.#inTurn(() => this.#send(id, value));
    } catch (problem) {
      this.#mine.set(id, before);
      refresh();
      error.textContent = problem.message;
    }
    setBusy(group, false);
  }

  #inTurn(send) {
    const sent = this.#turn.then(send);
    this.#turn = sent.catch(() => {});
    return sent;
  }

  async #send(id, value) {
    try {
      const { token, expires } = await this.#call(id, value);
      this.#guest.meet(token, expires);
      this.#attempts.delete(id);
    } catch (problem) {
      if (problem.status !== 401 || !this.#guest.token || this.#guest.name !== null) throw problem;
      // The server no longer accepts the token. A vote without a token returns a new one.
      this.#guest.leave();
      await this.#send(id, value);
    }
  }

  async #call(id, value) {
    const { token } = this.#guest;
    if (!value) return api.withdraw(id, token);
    // Use the same attempt until an answer arrives, so that a retried vote counts only once.
    const attempt = this.#attempts.get(id) ?? {
      key: randomKey(),
      proof: token ? "" : await this.#proof(),
    };
    this.#attempts.set(id, attempt);
    try {
      return await api.vote(id, value, { ...attempt, token });
    } catch (problem) {
      if (token || !(await lazy.writer()).isStale(problem)) throw problem;
      attempt.proof = await this.#proof();
      return api.vote(id, value, { ...attempt, token });
    }
  }

  async #proof() {
    const { Proofs } = await lazy.writer();
    this.#proofs ??= new Proofs(this.#place.site, null, "vote");
    return (await this.#proofs.take()).proof;
  }
}

/** @param {"up" | "down"} way */
function voteButton(way, label, onclick) {
  return button(`ft-vote ft-vote-${way}`, icon(way), onclick, { "aria-label": label });
}
