/**
 * Avatars: an author's initials on a color that depends on the name.
 *
 * No picture is loaded, because a request to another server would tell it who reads this page. The
 * server draws the same avatars on pages without JavaScript (`comments/web/embedding/avatars.py`).
 */

import { el } from "../../shared/dom.js";
import { language } from "../../shared/words.js";

const COLORS = 24; // 12 hues in two shades
// Characters so wide that two do not fit
const WIDE = /^[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]/;

/** @param {string} name */
export function avatar(name) {
  const color = colorOf(name);
  const shade = color < 12 ? "0" : "1";
  const drawn = el(
    "span",
    { class: "ft-avatar", "data-shade": shade, "aria-hidden": "true" },
    initialsOf(name),
  );
  drawn.style.setProperty("--hue", String(15 + 30 * (color % 12)));
  return drawn;
}

/** Return the number of a name's color, from 0 to 23. */
export function colorOf(name) {
  let sum = 0;
  for (const char of name) sum = (sum * 31 + (char.codePointAt(0) ?? 0)) % 9973;
  return sum % COLORS;
}

/**
 * Return the first letters of the first and the last word, or the first letter if it is Chinese,
 * Japanese or Korean.
 */
export function initialsOf(name) {
  const words = name.split(/[\s._-]+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
  const ends = words.length > 1 ? [words[0], words[words.length - 1]] : words;
  const letters = ends.map((word) => /[\p{L}\p{N}]\p{M}*/u.exec(word)?.[0] ?? "");
  const shown = WIDE.test(letters[0] ?? "") ? letters[0] : letters.join("");
  return shown.toLocaleUpperCase(language);
}
