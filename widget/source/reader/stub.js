/**
 * An unused form: a one-line text field. The composer adds the rest around it, so that the
 * text, the cursor and the focus stay while the code for writing loads.
 */

import { el } from "../shared/dom.js";
import { t } from "../shared/words.js";

/** @typedef {{ form: HTMLFormElement, box: HTMLElement, body: HTMLTextAreaElement }} Stub */

let count = 0; // makes element ids unique in their shadow root

/**
 * @param {string} label names the form
 * @param {string} placeholder is shown in the empty text
 * @returns {Stub}
 */
export function stub(label, placeholder) {
  const id = `ft-body-${++count}`;
  const body = el("textarea", {
    id,
    name: "body",
    class: "ft-input ft-input-body",
    rows: "1",
    required: true,
    dir: "auto",
    placeholder,
    "aria-describedby": `${id}-error`,
  });
  const name = el("label", { for: id, class: "ft-hidden" }, t("field-body"));
  const box = el("div", { class: "ft-box-text" }, el("div", { class: "ft-field" }, name, body));
  const form = el("form", { class: "ft-form", "aria-label": label, novalidate: true }, box);
  form.addEventListener("submit", (event) => event.preventDefault());
  for (const type of ["keydown", "keypress", "keyup"]) {
    // Pages bind shortcuts to letters, and cannot tell that a field in the shadow root has focus.
    form.addEventListener(type, (event) => event.stopPropagation());
  }
  return { form, box, body };
}
