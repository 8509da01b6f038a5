/**
 * Menus: lists of actions that buttons open (the menu button pattern of WAI-ARIA).
 *
 * Arrow keys, Home, End and the first letter of an item move the focus; Escape closes the menu and
 * returns the focus to the button.
 */

import { el } from "../../shared/dom.js";

/**
 * @typedef {{
 *   label: string,
 *   act: () => unknown,
 *   checked?: boolean,
 *   class?: string,
 * }} Item An item with `checked` is a choice among others.
 */

/** Moves of the focus by key: the new index, from the old one and the number of items. */
const MARGIN = 8; // pixels between a menu and the edge of the window
const MOVES = {
  __proto__: null,
  ArrowDown: (at, size) => (at + 1) % size,
  ArrowUp: (at, size) => (at - 1 + size) % size,
  Home: () => 0,
  End: (at, size) => size - 1,
};

/** @type {WeakMap<HTMLElement, () => void>} */
const opened = new WeakMap();

/**
 * Open the menu of a button, or close it if it is open.
 *
 * @param {HTMLElement} box contains the button and, while it is open, the menu
 * @param {HTMLElement} opener
 * @param {Item[]} items
 * @param {number} at the item to focus: 0 for the first, -1 for the last
 */
export function toggleMenu(box, opener, items, at) {
  const isOpen = opened.get(box);
  if (isOpen) {
    isOpen();
    return;
  }
  const hidden = opener.querySelector(".ft-hidden");
  const label = opener.getAttribute("aria-label") ?? (hidden ?? opener).textContent;
  /** @type {HTMLElement | null} */
  let list = el("div", { class: "ft-menu", role: "menu", "aria-label": label });
  list.append(...items.map((item) => entry(item)));
  list.addEventListener("keydown", onKey);
  opener.setAttribute("aria-expanded", "true");
  box.append(list);
  keepInView(list);
  box.addEventListener("focusout", onFocusOut);
  document.addEventListener("pointerdown", onPointerDown, { __proto__: null, capture: true });
  opened.set(box, close);
  entries().at(at)?.focus();

  function close({ refocus = false } = {}) {
    if (list === null) return;
    box.removeEventListener("focusout", onFocusOut);
    document.removeEventListener("pointerdown", onPointerDown, true);
    list.remove();
    list = null;
    opened.delete(box);
    opener.setAttribute("aria-expanded", "false");
    if (refocus) opener.focus();
  }

  /** @returns {HTMLElement[]} */
  function entries() {
    return /** @type {HTMLElement[]} */ ([...(list?.children ?? [])]);
  }

  /** @param {Item} item */
  function entry({ label: text, act, checked, class: kind }) {
    return el(
      "button",
      {
        type: "button",
        role: checked === undefined ? "menuitem" : "menuitemradio",
        "aria-checked": checked === undefined ? null : String(checked),
        tabindex: "-1",
        class: `ft-menu-item ${kind ?? ""}`.trim(),
        onclick: () => {
          close({ refocus: true });
          act();
        },
      },
      text,
    );
  }

  function onKey(event) {
    event.stopPropagation(); // pages bind shortcuts to keys
    const all = entries();
    const at = all.indexOf(event.target);
    const move = MOVES[event.key] ?? moveByLetter(all, event);
    if (event.key === "Escape") close({ refocus: true });
    else if (!move) return;
    else all[move(at, all.length)]?.focus();
    event.preventDefault();
  }

  /** Close the menu if the focus moves on, but not if another window takes it. */
  function onFocusOut({ relatedTarget }) {
    if (relatedTarget && !box.contains(relatedTarget)) close();
  }

  function onPointerDown(event) {
    if (!event.composedPath().includes(box)) close();
  }
}

/** Shift a menu sideways if it would leave the window. */
function keepInView(list) {
  const { left, right } = list.getBoundingClientRect();
  const most = document.documentElement.clientWidth - MARGIN;
  const shift = right > most ? most - right : Math.max(MARGIN - left, 0);
  list.style.translate = `${shift}px`;
}

/** Return a move to the next item that begins with the typed letter, or null. */
function moveByLetter(all, { key, ctrlKey, metaKey, altKey }) {
  if (key.length !== 1 || key === " " || ctrlKey || metaKey || altKey) return null;
  const begins = (item) => item.textContent.toLowerCase().startsWith(key.toLowerCase());
  return (at, size) => {
    for (let step = 1; step <= size; step += 1)
      if (begins(all[(at + step) % size])) return (at + step) % size;
    return at;
  };
}
