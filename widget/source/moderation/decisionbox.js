/**
 * The moderator's box below a comment: why the comment is held, the decision buttons, the last
 * decision with its Undo button, and errors.
 *
 * The box stays when the comment is redrawn.
 */

import { button, el } from "../shared/dom.js";
import { icon } from "../shared/icons.js";
import { t as ofWidget, language, texts } from "../shared/words.js";
import { reasonTexts, t } from "../writer/base/writertexts.js";

/** @typedef {import("../reader/comments/comment.js").Comment} Comment */

/** What holds comments, besides rules and spam checks (classifiers, Turnstile, plain forms). */
const KINDS = ["moderator", "policy", "reports"];

export class DecisionBox {
  #comment;
  #reason = el("div", { class: "ft-why" });
  #choices = el("div", { class: "ft-buttons" });
  #outcome = el("p", { class: "ft-said" });
  #error = el("p", { class: "ft-error", role: "alert" });

  /** @param {Comment} comment */
  constructor(comment) {
    this.#comment = comment;
    this.element = el(
      "div",
      { class: "ft-ruling", role: "group", tabindex: "-1" },
      this.#outcome,
      this.#reason,
      this.#choices,
      this.#error,
    );
    comment.element.append(this.element);
  }

  /**
   * Show why the comment is held, and the buttons to decide.
   *
   * @param {import("./moderator.js").ModeratedComment} moderated
   * @param {import("../writer/base/menu.js").Item[]} choices
   */
  hold(moderated, choices) {
    this.element.setAttribute("aria-label", t("held-comment", { name: this.#comment.name }));
    this.element.classList.add("ft-held");
    this.#reason.replaceChildren(icon("lock"), el("span", {}, reasonText(moderated)));
    const [first, ...rest] = choices.map(({ label, act, class: kind }, at) =>
      button(at === 0 ? "ft-submit" : `ft-choose ${kind ?? ""}`.trim(), label, act),
    );
    this.#choices.replaceChildren(first, ...rest);
  }

  /** Remove the decision buttons: the comment is no longer held. */
  release() {
    this.element.setAttribute("aria-label", t("decision"));
    this.element.classList.remove("ft-held");
    this.#reason.replaceChildren();
    this.#choices.replaceChildren();
  }

  /** Say what was decided; with `undo`, offer to undo it. */
  say(text, undo) {
    this.#error.textContent = "";
    this.#outcome.replaceChildren(text, " ", button("ft-undo", t("undo"), undo));
  }

  /** Remove the last decision, which was undone. */
  unsay() {
    this.#error.textContent = "";
    this.#outcome.replaceChildren();
  }

  fail(text) {
    this.#error.textContent = text;
  }

  /** Focus the button that undoes the decision. */
  focusUndo() {
    this.#outcome.querySelector("button")?.focus();
  }

  remove() {
    this.element.remove();
  }
}

/**
 * Say by which rule and for what reason a comment is held. Reasons without a code, and codes that
 * this release does not know, are shown as the server's sentence.
 */
function reasonText({ rule, reason: sentence, reasons }) {
  const by = holderText(rule);
  const isKnown =
    reasons.length > 0 && reasons.every(({ code }) => Object.hasOwn(reasonTexts, code));
  const clauses = isKnown
    ? reasons.map(({ code, params }) => texts(reasonTexts).parts(code, params).join(""))
    : [sentence];
  const reason = new Intl.ListFormat(language).format(clauses);
  return reason ? t("held-because", { by, reason }) : by;
}

/** Name what held a comment. An undone decision may leave a comment without a rule. */
function holderText(rule) {
  const [kind, detail = ""] = rule.split(":");
  if (!kind) return ofWidget("waiting");
  if (kind === "rule") return t("held-rule", { rule: detail });
  return t(`held-by-${KINDS.includes(kind) ? kind : "check"}`);
}
