/** The form that reports a comment to the moderators. Loads on first use. */

import { call, part } from "../../shared/api.js";
import { button, el, isBusy, isTyping } from "../../shared/dom.js";
import { Proofs } from "../identity/proof.js";
import { showBusy } from "../base/busy.js";
import { t } from "../base/writertexts.js";

const REASONS = ["spam", "abuse", "off-topic", "other"];
let count = 0; // makes the names of radio groups unique in their shadow root

export class Report {
  #guest;
  #site;

  constructor(guest, site) {
    this.#guest = guest;
    this.#site = site;
  }

  /** Ask for the reason below a comment. `say` announces that the report was sent. */
  ask(comment, say) {
    const name = `ft-reason-${++count}`;
    const choices = REASONS.map((reason) => {
      const input = el("input", { type: "radio", name, value: reason, class: "ft-box" });
      return {
        input,
        element: el("label", { class: "ft-choice" }, input, " ", t(`reason-${reason}`)),
      };
    });
    const error = el("p", { class: "ft-error", role: "alert" });
    const send = button("ft-submit", t("report-send"), async () => {
      const reason = choices.find(({ input }) => input.checked)?.input.value;
      if (isBusy(send)) return;
      if (!reason) {
        error.textContent = t("report-choose");
        choices[0].input.focus();
        return;
      }
      error.textContent = "";
      const finish = showBusy(send, t("sending"));
      try {
        await this.#send(comment.id, reason);
        comment.slot.replaceChildren(el("p", { class: "ft-hint" }, t("reported")));
        if (!isTyping()) comment.element.focus();
        say(t("reported"));
      } catch (problem) {
        error.textContent = problem.message;
      }
      finish();
    });
    const cancel = button("ft-cancel", t("cancel"), () => comment.leave());
    const box = el(
      "fieldset",
      { class: "ft-report" },
      el("legend", { class: "ft-label" }, t("report-question", { name: comment.name })),
      ...choices.map(({ element }) => element),
      error,
      el("div", { class: "ft-buttons" }, cancel, send),
    );
    box.addEventListener("keydown", (event) => {
      event.stopPropagation(); // pages bind shortcuts to letters
      if (event.key === "Escape") comment.leave();
    });
    comment.slot.replaceChildren(box);
    choices[0].input.focus();
  }

  /** Send a report. A reader without a token sends a proof of work. */
  async #send(id, reason) {
    const { token } = this.#guest;
    const post = (proved) =>
      call("POST", `comments/${part(id)}/report`, {
        __proto__: null,
        body: { __proto__: null, reason, ...proved },
        token,
      });
    return token ? post({}) : new Proofs(this.#site, null, "report").send(post);
  }
}
