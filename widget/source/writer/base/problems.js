/**
 * Error messages for readers. Loads when a call fails.
 *
 * The server sends a stable code with parameters for each error. The message is the first text in
 * this list that exists and has values for all its placeholders: the text for readers, the text for
 * the code and field, the text for the code, and the text for the status. If there is no such text,
 * the message is the server's own English sentence.
 */

import { duration } from "./durations.js";
import { unreachable } from "../../shared/offline.js";
import { texts } from "../../shared/words.js";
import { errorTexts, writingTexts } from "./writertexts.js";

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
  const label = filledText(writingTexts, `field-${field}`, {}) ?? field;
  const values = { ...params, field: label, wait: seconds ? duration(seconds, "long") : undefined };
  const message =
    filledText(writingTexts, `error-${code}`, values) ??
    filledText(errorTexts, `${code}.${field}`, values) ??
    filledText(errorTexts, `${code}`, values) ??
    filledText(writingTexts, `error-${status}`, values) ??
    detail;
  return message.charAt(0).toUpperCase() + message.slice(1);
}

/** Fill a text. Return null if it does not exist or a placeholder has no value. */
function filledText(entries, name, values) {
  if (!Object.hasOwn(entries, name)) return null;
  const message = texts(entries).parts(name, values);
  return message.includes(undefined) ? null : message.join("");
}
