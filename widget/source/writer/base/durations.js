/** Lengths of time for readers, such as "12 min". Part of the writer bundle. */

import { language } from "../../shared/words.js";

/** @type {[string, number][]} each unit in seconds */
const UNITS = [
  ["day", 86400],
  ["hour", 3600],
  ["minute", 60],
  ["second", 1],
];

/**
 * Write a number of seconds in the largest unit that they fill, rounded up.
 *
 * @param {number} seconds
 * @param {"short" | "long"} unitDisplay
 */
export function duration(seconds, unitDisplay) {
  const whole = Math.max(Math.ceil(seconds), 0);
  const [unit, size] = UNITS.find(([, size]) => whole >= size) ?? ["second", 1];
  const format = new Intl.NumberFormat(language, { style: "unit", unit, unitDisplay });
  return format.format(Math.ceil(whole / size));
}
