/**
 * Why a call failed, as a sentence for readers. Loads when a call fails.
 *
 * The server names each problem by a stable code. A text for the code, or else for the status,
 * replaces the server's own English sentence.
 */

import { entries } from "./strings-writing.js";
import { language, t, texts } from "./words.js";

const { parts } = texts(entries);
/** @type {[string, number][]} */
const UNITS = [
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];

/**
 * @param {Response} response
 * @param {{ code?: string, field?: string, detail?: string, params?: object } | null} content
 */
export function explain({ status, headers }, content) {
  const { code, field, detail = t("unreachable"), params } = content ?? {};
  const values = { ...params, wait: duration(Number(headers.get("Retry-After")) || 1) };
  for (const name of [`error-${code}-${field}`, `error-${code}`, `error-${status}`]) {
    const said = Object.hasOwn(entries, name) ? parts(name, values) : [undefined];
    if (!said.includes(undefined)) return said.join("");
  }
  return detail.charAt(0).toUpperCase() + detail.slice(1);
}

/** Write a number of seconds in the largest unit that it fills: "2 minutes". */
function duration(seconds) {
  const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? ["second", 1];
  const format = new Intl.NumberFormat(language, { style: "unit", unit, unitDisplay: "long" });
  return format.format(Math.ceil(seconds / size));
}
