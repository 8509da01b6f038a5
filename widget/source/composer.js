/**
 * The form for writing and editing a comment.
 *
 * It is used at the top of a thread and below a comment, for replies and edits. Text is never lost:
 * the draft stores it from the first letter until the server has confirmed it. An error appears
 * next to the field that it names.
 */

import { button, el, isBusy, setBusy } from "./dom.js";
import { t } from "./words.js";

let count = 0; // makes element ids unique in their shadow root

export class Composer {
  #form;
  #draft;
  #send;
  #preview;
  #inputs = {};
  #errors = {};
  #submit;
  #glance;
  #subject;

  /**
   * `label` names the form, and `submit` its button. `fields` lists the fields to show: body, name
   * and website. `values` fill the fields that the draft leaves empty. `send(values, subject)` and
   * `preview(body)` return promises. `cancel` is null for a form that cannot be closed. `note`
   * contains nodes to show above the buttons.
   */
  constructor({ label, submit, fields, values, draft, send, preview, cancel, note }) {
    this.#draft = draft;
    this.#send = send;
    this.#preview = preview;
    this.#glance = el("div", { class: "ft-preview ft-prose", role: "region", hidden: true });
    this.#glance.setAttribute("aria-label", t("preview-of"));
    this.#submit = el("button", { type: "submit", class: "ft-submit" }, submit);
    // A honeypot: people do not see this field, so only bots fill it in.
    this.#subject = el("input", { ...KINDS.subject, name: "subject", class: "ft-subject" });
    const controls = fields.map((field) => this.#field(field, values));
    const [body, ...about] = controls;
    this.#errors.form = el("p", { class: "ft-error", role: "alert" });
    this.#form = el(
      "form",
      { class: "ft-form", "aria-label": label, novalidate: true },
      body,
      this.#glance,
      about.length ? el("div", { class: "ft-about" }, ...about, this.#subject) : null,
      note ? el("p", { class: "ft-hint ft-as", dir: "auto" }, ...note) : null,
      this.#errors.form,
      el(
        "div",
        { class: "ft-buttons" },
        this.#submit,
        button("ft-show-preview", t("preview"), () => this.#showPreview()),
        cancel && button("ft-cancel", t("cancel"), () => this.#discard(cancel)),
      ),
    );
    this.#listen(cancel);
  }

  get element() {
    return this.#form;
  }

  focus() {
    const { body } = this.#inputs;
    body.focus();
    body.setSelectionRange(body.value.length, body.value.length);
  }

  get #values() {
    const entries = Object.entries(this.#inputs).map(([name, input]) => [name, input.value]);
    return Object.assign(Object.create(null), Object.fromEntries(entries));
  }

  #field(name, values) {
    const id = `ft-${name}-${++count}`;
    const input = el(name === "body" ? "textarea" : "input", {
      ...KINDS[name],
      id,
      name,
      class: `ft-input ft-input-${name}`,
      dir: "auto",
      "aria-describedby": name === "body" ? `${id}-hint ${id}-error` : `${id}-error`,
    });
    input.value = this.#draft.values?.[name] || values[name] || "";
    this.#inputs[name] = input;
    this.#errors[name] = el("p", { class: "ft-error", id: `${id}-error`, role: "alert" });
    return el(
      "div",
      { class: `ft-field ft-field-${name}` },
      el("label", { for: id, class: "ft-label" }, t(`field-${name}`)),
      input,
      this.#errors[name],
      name === "body" ? el("p", { class: "ft-hint", id: `${id}-hint` }, t("body-hint")) : null,
    );
  }

  #listen(cancel) {
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submitOnce();
    });
    this.#form.addEventListener("input", () => {
      this.#glance.hidden = true;
      this.#draft.write(this.#values);
    });
    for (const type of ["keydown", "keypress", "keyup"]) {
      // Pages bind shortcuts to letters, and cannot tell that a field in the shadow root has focus.
      this.#form.addEventListener(type, (event) => event.stopPropagation());
    }
    this.#form.addEventListener("keydown", (event) => {
      if (event.isComposing) return;
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.#form.requestSubmit();
      if (event.key === "Escape" && cancel) cancel();
    });
  }

  async #submitOnce() {
    if (isBusy(this.#submit)) return;
    this.#clearErrors();
    const values = this.#values;
    setBusy(this.#submit, true);
    try {
      await this.#send(values, this.#subject.value);
      this.#draft.sent(values);
      if (this.#inputs.body.value === values.body) this.#inputs.body.value = "";
      this.#glance.hidden = true;
    } catch (error) {
      if (error.isFinal) this.#draft.refused(this.#values);
      this.#showError(error);
    } finally {
      setBusy(this.#submit, false);
    }
  }

  /** Close the form and drop the draft. (Escape closes the form and keeps the draft.) */
  #discard(cancel) {
    this.#draft.drop();
    cancel();
  }

  async #showPreview() {
    this.#clearErrors();
    const { body } = this.#inputs;
    const shown = body.value;
    try {
      const nodes = await this.#preview(shown);
      if (body.value !== shown) return;
      this.#glance.replaceChildren(nodes);
      this.#glance.hidden = false;
    } catch (error) {
      this.#showError(error);
    }
  }

  #clearErrors() {
    for (const place of Object.values(this.#errors)) place.textContent = "";
    for (const input of Object.values(this.#inputs)) input.removeAttribute("aria-invalid");
  }

  #showError({ field, message }) {
    const input = Object.hasOwn(this.#inputs, field) ? this.#inputs[field] : null;
    this.#errors[input ? field : "form"].textContent = message;
    input?.setAttribute("aria-invalid", "true");
    input?.focus();
  }
}

const KINDS = {
  subject: { tabindex: "-1", autocomplete: "off", "aria-hidden": "true" },
  body: { rows: "4", required: true },
  name: { autocomplete: "nickname", required: true },
  website: { type: "url", autocomplete: "url", inputmode: "url", placeholder: "https://" },
};
