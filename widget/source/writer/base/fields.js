/** Small forms: fields, a button that calls the server, and errors. */

import { button, el, isBusy } from "../../shared/dom.js";
import { showBusy } from "./busy.js";
import { t } from "./writertexts.js";

let count = 0; // makes element ids unique in their shadow root

/** @typedef {{ input: HTMLInputElement, element: HTMLElement }} Field */

/**
 * Show elements and fields in `box`, a button that calls `act`, and errors above the button. If
 * `cancel` is given, also show a button that calls it. Return the action of the first button.
 *
 * @param {HTMLElement} box
 * @param {string} label
 * @param {(Field | HTMLElement)[]} parts
 * @param {() => Promise<void>} act
 * @param {() => void} [cancel]
 */
export function show(box, label, parts, act, cancel) {
  const error = el("p", { class: "ft-error", role: "alert" });
  const inputs = parts.flatMap((part) => ("input" in part ? part.input : []));
  const run = async () => {
    if (isBusy(submit)) return;
    error.textContent = "";
    const missing = inputs.find((input) => !input.checkValidity());
    if (missing) {
      error.textContent = t("field-needed");
      missing.focus();
      return;
    }
    const finish = showBusy(submit, t("sending"));
    try {
      await act();
    } catch (problem) {
      error.textContent = problem.message;
    }
    finish();
  };
  const submit = button("ft-submit", label, run);
  for (const input of inputs) {
    input.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter" && !event.isComposing) run();
      if (event.key === "Escape") cancel?.();
    });
  }
  const nodes = parts.map((part) => ("input" in part ? part.element : part));
  const quit = cancel ? button("ft-cancel", t("cancel"), cancel) : null;
  box.replaceChildren(...nodes, error, el("div", { class: "ft-buttons" }, submit, quit));
  inputs[0].focus();
  return run;
}

/**
 * Make a text field with its label.
 *
 * @returns {Field}
 */
export function field(label, attributes) {
  const id = `ft-field-${++count}`;
  const input = el("input", { id, class: "ft-input", required: true, ...attributes });
  const named = el("label", { for: id, class: "ft-label" }, label);
  return { input, element: el("div", { class: "ft-field" }, named, input) };
}
