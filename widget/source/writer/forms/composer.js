/**
 * The form for writing and editing a comment.
 *
 * It is used at the top of a thread and below a comment, for replies and edits. It is one line
 * until the reader uses it. Text is never lost: the draft stores it from the first letter until the
 * server has confirmed it. An error appears next to the field that it names.
 */

import { button, el, isBusy, webUrl } from "../../shared/dom.js";
import { formattedText, FORMATS } from "./formatting.js";
import { icon } from "../../shared/icons.js";
import { t as widgetText } from "../../shared/words.js";
import { showBusy } from "../base/busy.js";
import { t } from "../base/writertexts.js";

let count = 0; // makes element ids unique in their shadow root

/** @typedef {import("../../reader/stub.js").Stub} Stub */

export class Composer {
  #form;
  #draft;
  #send;
  #preview;
  /** @type {Record<string, HTMLInputElement | HTMLTextAreaElement>} */
  #inputs = {};
  #errors = {};
  #submit;
  #previewBox;
  #subject;
  #tabs;
  #nameFields;
  #identity;

  /**
   * Complete the form `stub`. `submit` is the label of its button. `fields` lists the fields to
   * show: body, name and website. `values` fill the fields that the draft leaves empty.
   * `send(values, subject)` and `preview(body)` return promises. `cancel` is null for a form that
   * cannot be closed. `account` is the name of a signed-in reader, or null; `isStaff` says that this
   * is a moderator. `aside` are elements to show above the text.
   *
   * @param {{ stub: Stub } & Record<string, any>} options
   */
  constructor({
    stub: { form, box, body },
    submit,
    fields,
    values,
    draft,
    send,
    preview,
    cancel,
    account,
    isStaff = false,
    aside = [],
  }) {
    this.#form = form;
    this.#draft = draft;
    this.#send = send;
    this.#preview = preview;
    this.#previewBox = el("div", {
      class: "ft-preview ft-prose",
      role: "region",
      dir: "auto",
      hidden: true,
    });
    this.#previewBox.setAttribute("aria-label", t("preview-of"));
    this.#submit = el("button", { type: "submit", class: "ft-submit" }, submit);
    // A honeypot: people do not see this field, so only bots fill it in.
    this.#subject = el("input", { ...KINDS.subject, name: "subject", class: "ft-subject" });
    this.#inputs.body = body;
    this.#errors.body = el("p", { class: "ft-error", id: `${body.id}-error`, role: "alert" });
    this.#errors.form = el("p", { class: "ft-error", role: "alert" });
    const about = fields.slice(1).map((field) => this.#field(field, values));
    this.#nameFields = about.length
      ? el("div", { class: "ft-about" }, ...about, this.#subject)
      : null;
    this.#tabs = [
      button("ft-tab", t("write-tab"), () => this.#showText(), { "aria-pressed": "true" }),
      button("ft-tab ft-show-preview", t("preview"), () => this.#showPreview(), {
        "aria-pressed": "false",
      }),
    ];
    this.#identity = el("p", { class: "ft-identity", dir: "auto" });
    const controls = el(
      "div",
      { class: "ft-buttons" },
      this.#identity,
      cancel && button("ft-cancel", t("cancel"), () => this.#discard(cancel)),
      this.#submit,
    );
    form.prepend(...aside);
    box.prepend(el("div", { class: "ft-bar-text" }, ...this.#tabs, this.#toolbar()));
    box.append(this.#previewBox);
    form.append(
      this.#errors.body,
      el(
        "div",
        { class: "ft-more-form" },
        ...[this.#nameFields, this.#errors.form, controls].filter(isNode),
      ),
    );
    form.classList.add("ft-open");
    const typed = body.value;
    body.value ||= draft.values?.body || values.body || "";
    this.#identify(account, values);
    if (isStaff) this.#identity.append(" ", staffBadge());
    this.#listen(cancel);
    this.#grow();
    if (typed) draft.write(this.#values);
  }

  get element() {
    return this.#form;
  }

  focus() {
    const { body } = this.#inputs;
    body.focus();
    body.setSelectionRange(body.value.length, body.value.length);
  }

  /** Show the field for the name, which is text at first for a returning guest. */
  rename() {
    this.#identity.replaceChildren();
    if (!this.#nameFields) return;
    this.#nameFields.hidden = false;
    this.#inputs.name?.focus();
  }

  /** Show before a post why the server will refuse it. */
  warn(error) {
    this.#showError(error);
  }

  /** Insert text at the cursor, on lines of its own. */
  insert(text) {
    const { body } = this.#inputs;
    const before = body.value.slice(0, body.selectionStart ?? 0);
    const gap = before && !before.endsWith("\n\n") ? (before.endsWith("\n") ? "\n" : "\n\n") : "";
    this.#type(`${gap}${text}`);
  }

  get #values() {
    const entries = Object.entries(this.#inputs).map(([name, input]) => [name, input.value]);
    return Object.assign(Object.create(null), Object.fromEntries(entries));
  }

  #field(name, values) {
    const id = `ft-${name}-${++count}`;
    const input = el("input", {
      ...KINDS[name],
      id,
      name,
      class: `ft-input ft-input-${name}`,
      dir: "auto",
      "aria-describedby": `${id}-error`,
    });
    input.value = this.#draft.values?.[name] || values[name] || "";
    this.#inputs[name] = input;
    this.#errors[name] = el("p", { class: "ft-error", id: `${id}-error`, role: "alert" });
    return el(
      "div",
      { class: `ft-field ft-field-${name}` },
      el("label", { for: id, class: "ft-label" }, t(`label-${name}`)),
      input,
      this.#errors[name],
    );
  }

  #toolbar() {
    const tools = Object.keys(FORMATS).map((name) =>
      button(`ft-tool-${name}`, icon(name, FORMATS[name].path), () => this.#format(name), {
        "aria-label": t(`format-${name}`),
        title: t(`format-${name}`),
      }),
    );
    const label = { class: "ft-toolbar", role: "group", "aria-label": t("formatting") };
    return el("div", label, ...tools);
  }

  /** Say who is writing. A guest with a name can change it. */
  #identify(account, values) {
    const name = account ?? (values.name && !this.#draft.values ? values.name : null);
    if (this.#nameFields) this.#nameFields.hidden = name !== null;
    if (name === null || (account === null && !this.#nameFields)) return;
    const text = el("span", {}, t("commenting-as", { name }));
    const change = button("ft-change-name", widgetText("change-name"), () => this.rename());
    this.#identity.replaceChildren(text, ...(account === null ? [" ", change] : []));
  }

  #listen(cancel) {
    const { body } = this.#inputs;
    this.#form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submitOnce();
    });
    this.#form.addEventListener("input", () => {
      this.#form.classList.remove("ft-sending"); // the reader keeps typing
      this.#grow();
      this.#draft.write(this.#values);
    });
    this.#form.addEventListener("keydown", (event) => {
      if (event.isComposing) return;
      const isCommand = event.ctrlKey || event.metaKey;
      if (event.key === "Enter" && isCommand) this.#form.requestSubmit();
      if (event.key === "Escape") {
        if (cancel) cancel();
        else body.blur();
      }
      const format = isCommand && event.target === body && SHORTCUTS[event.key.toLowerCase()];
      if (!format) return;
      event.preventDefault();
      this.#format(format);
    });
  }

  #format(name) {
    const { body } = this.#inputs;
    this.#showText();
    body.focus();
    const { start, end, text, select } = formattedText(name, body.value, [
      body.selectionStart ?? 0,
      body.selectionEnd ?? 0,
    ]);
    body.setSelectionRange(start, end);
    this.#type(text);
    body.setSelectionRange(...select);
  }

  /** Replace the selection as if the text were typed, so that the browser can undo it. */
  #type(text) {
    const { body } = this.#inputs;
    body.focus();
    if (document.execCommand?.("insertText", false, text)) return;
    body.setRangeText(text, body.selectionStart ?? 0, body.selectionEnd ?? 0, "end");
    body.dispatchEvent(new Event("input", { bubbles: true }));
  }

  /** Fit the height to the text in browsers without `field-sizing`. */
  #grow() {
    const { body } = this.#inputs;
    if (CSS.supports("field-sizing", "content")) return;
    body.style.blockSize = "auto";
    body.style.blockSize = `${body.scrollHeight + 2}px`;
  }

  async #submitOnce() {
    if (isBusy(this.#submit)) return;
    this.#clearErrors();
    const values = this.#checked();
    if (values === null) return;
    const finish = showBusy(this.#submit, t("sending"));
    this.#form.classList.add("ft-sending");
    try {
      await this.#send(values, this.#subject.value);
      this.#draft.dropSent(values);
      const { body } = this.#inputs;
      if (body.value === values.body) body.value = "";
      this.#showText();
      this.#grow();
      if (this.#nameFields) this.#identify(null, values);
    } catch (error) {
      if (error.isFinal) this.#draft.dropAttempt(this.#values);
      else error.message += ` ${t("text-kept")}`;
      this.#showError(error);
    } finally {
      this.#form.classList.remove("ft-sending");
      finish();
    }
  }

  /** Return the values if they can be sent. If not, show what is missing and return null. */
  #checked() {
    const { website } = this.#inputs;
    if (website?.value.trim() && !/^\s*[a-z][a-z\d+.-]*:/i.test(website.value)) {
      website.value = `https://${website.value.trim()}`;
    }
    const values = this.#values;
    const address = values.website?.trim() ?? "";
    const faults = {
      body: !values.body.trim() && t("body-missing"),
      name: this.#inputs.name && !values.name.trim() && t("name-missing"),
      // Browsers accept spaces in a host.
      website: address && (/\s/.test(address) || !webUrl(address)) && t("bad-website"),
    };
    const field = Object.keys(faults).find((name) => faults[name]);
    if (field === undefined) return values;
    this.#showText();
    this.#showError({ field, message: faults[field] }, { isOwn: true });
    return null;
  }

  /** Close the form and drop the draft. (Escape closes the form and keeps the draft.) */
  #discard(cancel) {
    this.#draft.drop();
    cancel();
  }

  #showText() {
    this.#previewBox.hidden = true;
    this.#inputs.body.hidden = false;
    this.#press(0);
  }

  async #showPreview() {
    this.#clearErrors();
    const { body } = this.#inputs;
    const shown = body.value;
    if (isBusy(this.#tabs[1])) return;
    if (!shown.trim()) {
      body.focus();
      return;
    }
    const finish = showBusy(this.#tabs[1], t("loading"));
    try {
      const nodes = await this.#preview(shown);
      if (body.value !== shown) return;
      this.#previewBox.replaceChildren(nodes);
      this.#previewBox.hidden = false;
      body.hidden = true;
      this.#press(1);
    } catch (error) {
      this.#showError(error);
    } finally {
      finish();
    }
  }

  #press(at) {
    this.#tabs.forEach((tab, index) => tab.setAttribute("aria-pressed", String(index === at)));
  }

  #clearErrors() {
    for (const place of Object.values(this.#errors)) place.textContent = "";
    for (const input of Object.values(this.#inputs)) input.removeAttribute("aria-invalid");
  }

  /** Show an error next to its field. Never take the focus from a reader who is typing. */
  #showError({ field, message }, { isOwn = false } = {}) {
    const input = Object.hasOwn(this.#inputs, field) ? this.#inputs[field] : null;
    this.#errors[input ? field : "form"].textContent = message;
    if (!input) return;
    if (this.#nameFields?.contains(input)) {
      this.#nameFields.hidden = false;
      this.#identity.replaceChildren();
    }
    input.setAttribute("aria-invalid", "true");
    const root = /** @type {ShadowRoot | Document} */ (this.#form.getRootNode());
    const focused = root.activeElement;
    if (isOwn || !focused || !focused.matches("input, textarea")) input.focus();
  }
}

function staffBadge() {
  return el("span", { class: "ft-badge ft-kind", "data-kind": "staff" }, widgetText("kind-staff"));
}

const isNode = (child) => child !== null;

const SHORTCUTS = { __proto__: null, b: "bold", i: "italic", k: "link" };

const KINDS = {
  subject: { tabindex: "-1", autocomplete: "off", "aria-hidden": "true", hidden: true },
  name: { autocomplete: "nickname", required: true },
  website: { type: "url", autocomplete: "url", inputmode: "url", placeholder: "https://" },
};
