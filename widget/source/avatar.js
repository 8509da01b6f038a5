/**
 * Avatars: an author's initials on a color that depends on the name.
 *
 * No picture is loaded, because a request to another server would tell it who reads this page. The
 * server draws the same avatars on pages without JavaScript (`comments/web/public/avatars.py`).
 */

import { el } from "./dom.js";
import { language } from "./words.js";

const HUES = 12;

/** @param {string} name */
export function avatar(name) {
  const made = el("span", { class: "ft-avatar", "aria-hidden": "true" }, initialsOf(name));
  made.style.setProperty("--hue", String(15 + 30 * hueOf(name)));
  return made;
}

/** Return the number of a name's color, from 0 to 11. */
export function hueOf(name) {
  let sum = 0;
  for (const char of name) sum = (sum * 31 + (char.codePointAt(0) ?? 0)) % 9973;
  return sum % HUES;
}

/** Return the first letters of the first and the last word. */
export function initialsOf(name) {
  const words = name.split(/[\s._-]+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
  const ends = words.length > 1 ? [words[0], words[words.length - 1]] : words;
  return ends
    .map((word) => /[\p{L}\p{N}]\p{M}*/u.exec(word)?.[0] ?? "")
    .join("")
    .toLocaleUpperCase(language);
}
