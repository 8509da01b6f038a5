/**
 * Votes: a comment's two vote buttons and the score between them.
 *
 * The server sends the same page to all readers and counts a vote some seconds later. The visible
 * score is therefore the page's score plus the reader's own later change. A button shows a vote at
 * once, while the module that sends it (votesender.js) may still be loading.
 */

import { button, el, isBusy, setBusy } from "../../shared/dom.js";
import { icon } from "../../shared/icons.js";
import { number, t } from "../../shared/words.js";

export class Votes {
  #send;
  /** The reader's votes by comment id, and the part of each that the page's score contains. */
  #mine = new Map();
  #counted = new Map();
  /** The votes that are being sent: votes that were loaded meanwhile may lack them. */
  #pending = new Map();
  #controls = new Map();

  /** @param {(id: string, value: number) => Promise<void>} send 1, -1, or 0 to withdraw */
  constructor(send) {
    this.#send = send;
  }

  /**
   * Show the reader's own votes.
   *
   * @param {Map<string, number>} mine
   * @param {Map<string, number>} counted
   */
  replace(mine, counted) {
    this.#mine = new Map([...mine, ...this.#pending]);
    this.#counted = counted;
    for (const refresh of this.#controls.values()) refresh();
  }

  /** Return the elements that show a comment's votes, with buttons only if the reader may vote. */
  elements(comment, mayVote) {
    const { id, name } = comment;
    const score = el("span", { class: "ft-score", "aria-hidden": "true" });
    const group = el("div", { class: "ft-votes", role: "group" }, score);
    const error = el("p", { class: "ft-error", role: "alert" });
    const buttons = new Map();
    const refresh = () => {
      const shown = comment.data.score + this.#voteOf(id) - (this.#counted.get(id) ?? 0);
      score.textContent = number(shown);
      group.setAttribute("aria-label", t("score", { score: shown }));
      for (const [value, control] of buttons) {
        control.setAttribute("aria-pressed", String(this.#voteOf(id) === value));
      }
    };
    if (mayVote) {
      const press = (value) => this.#press(id, value, { group, error, refresh });
      buttons.set(
        1,
        voteButton("up", t("upvote", { name }), () => press(1)),
      );
      buttons.set(
        -1,
        voteButton("down", t("downvote", { name }), () => press(-1)),
      );
      score.before(buttons.get(1));
      score.after(buttons.get(-1));
    }
    this.#controls.set(id, refresh);
    refresh();
    return [group, error];
  }

  #voteOf(id) {
    return this.#mine.get(id) ?? 0;
  }

  /** Vote, or withdraw the vote if the button is already pressed. */
  async #press(id, pressed, { group, error, refresh }) {
    if (isBusy(group)) return;
    setBusy(group, true);
    const before = this.#voteOf(id);
    const value = before === pressed ? 0 : pressed;
    error.textContent = "";
    this.#mine.set(id, value);
    this.#pending.set(id, value);
    refresh();
    try {
      await this.#send(id, value);
    } catch (problem) {
      this.#mine.set(id, before);
      refresh();
      error.textContent = problem.message;
    }
    this.#pending.delete(id);
    setBusy(group, false);
  }
}

/** @param {"up" | "down"} way */
function voteButton(way, label, onclick) {
  return button(`ft-vote ft-vote-${way}`, icon(way), onclick, { "aria-label": label });
}
