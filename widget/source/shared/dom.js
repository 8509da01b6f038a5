/**
 * Creation of elements.
 *
 * Strings become text or attribute values, never markup. Every class is also a `part`, so that
 * the embedding page can style elements in the shadow root.
 */

/**
 * Create an element. Functions in `attributes` become event listeners ("onclick"). An attribute is
 * omitted if its value is null or false, and empty if it is true. Null children are omitted.
 *
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Record<string, any>} [attributes]
 * @param {(Node | string | null)[]} children
 */
export function el(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") node.addEventListener(key.slice(2), value);
    else if (key === "class") setClass(node, value);
    else if (value !== null && value !== false) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(.../** @type {(Node | string)[]} */ (children.filter((child) => child !== null)));
  return node;
}

/**
 * Create a button that never submits a form.
 *
 * @param {string} className
 * @param {string | Node} content
 * @param {(event: any) => unknown} onclick
 * @param {Record<string, any>} [attributes]
 */
export function button(className, content, onclick, attributes) {
  return el("button", { type: "button", class: className, onclick, ...attributes }, content);
}

function setClass(node, value) {
  node.className = value;
  node.setAttribute("part", value);
}

/** Mark a control as busy. Unlike `disabled`, this keeps the focus. */
export function setBusy(control, busy) {
  if (busy) control.setAttribute("aria-disabled", "true");
  else control.removeAttribute("aria-disabled");
}

export function isBusy(control) {
  return control.hasAttribute("aria-disabled");
}

/**
 * Tell whether the reader is typing, here or elsewhere on the page, so that the focus must not move.
 * A form that is being sent counts only if the reader keeps typing in it.
 */
export function isTyping() {
  let active = document.activeElement;
  while (active?.shadowRoot?.activeElement) active = active.shadowRoot.activeElement;
  const field = /** @type {HTMLElement | null} */ (active);
  if (!field || field.closest(".ft-sending")) return false;
  return field.isContentEditable || ["INPUT", "TEXTAREA"].includes(field.tagName);
}

/** Return the URL if it is an absolute http(s) URL, else null. Other URLs never become links. */
export function webUrl(text) {
  try {
    // Older releases stored empty labels, and Latin next to Greek or Cyrillic letters.
    if (/^\w+:..[^/]*(\.\.|[a-z][Ͱ-ӿ]|[Ͱ-ӿ][a-z])/i.test(text)) return null;
    const url = new URL(text);
    return url.protocol === "https:" || url.protocol === "http:" ? url.href : null;
  } catch {
    return null;
  }
}
