/**
 * Error messages for readers. Loads when a call fails.
 *
 * The server sends a stable code with parameters for each error. The message is the first text in
 * this list that exists and has values for all its placeholders: the text for readers, the text for
 * the code and field, the text for the code, and the text for the status. If there is no such text,
 * the message is the server's own English sentence.
 */

import { unreachable } from "./offline.js";
import { language, texts } from "./words.js";
import { ofErrors, ofWriting } from "./writing.js";

/** @type {[string, number][]} */
const UNITS = [
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];

/**
 * @param {Response} response
 * @param {{
 *   code?: string,
 *   field?: string,
 *   detail?: string,
 *   params?: Record<string, string | number>,
 * } | null} content
 */
export function explain({ status, headers }, content) {
  const { code, field = "", detail = unreachable(), params } = content ?? {};
  const seconds = Number(params?.seconds ?? headers.get("Retry-After"));
  const label = filled(ofWriting, `field-${field}`, {}) ?? field;
  const values = { ...params, field: label, wait: seconds ? duration(seconds) : undefined };
  const said =
    filled(ofWriting, `error-${code}`, values) ??
    filled(ofErrors, `${code}.${field}`, values) ??
    filled(ofErrors, `${code}`, values) ??
    filled(ofWriting, `error-${status}`, values) ??
    detail;
  return said.charAt(0).toUpperCase() + said.slice(1);
}

/** Fill a text. Return null if it does not exist or a placeholder has no value. */
function filled(entries, name, values) {
  if (!Object.hasOwn(entries, name)) return null;
  const said = texts(entries).parts(name, values);
  return said.includes(undefined) ? null : said.join("");
}

/** Format seconds in the largest unit that they fill, rounded up, such as "2 minutes". */
function duration(seconds) {
  const [unit, size] = UNITS.find(([, size]) => seconds >= size) ?? ["second", 1];
  const format = new Intl.NumberFormat(language, { style: "unit", unit, unitDisplay: "long" });
  return format.format(Math.ceil(seconds / size));
}
