/** Times for readers: relative ones such as "5 minutes ago" for a month, and then dates. */

import { el } from "./dom.js";
import { language, t } from "./words.js";

/** @type {[Intl.RelativeTimeFormatUnit, number][]} */
const UNITS = [
  ["minute", 60],
  ["hour", 3600],
  ["day", 86400],
];
const MONTH = 30 * 86400;

/** @type {{ relative: Intl.RelativeTimeFormat, day: Intl.DateTimeFormat, full: Intl.DateTimeFormat }} */
let made;

// The language is not known yet when this module is loaded.
function formats() {
  return (made ??= {
    relative: new Intl.RelativeTimeFormat(language, { numeric: "auto" }),
    day: new Intl.DateTimeFormat(language, { dateStyle: "medium" }),
    full: new Intl.DateTimeFormat(language, { dateStyle: "long", timeStyle: "short" }),
  });
}

/** Make a <time> element. Its title is the full date in the reader's time zone. */
export function time(iso) {
  const moment = new Date(iso);
  return el("time", { datetime: iso, title: formats().full.format(moment) }, ago(moment));
}

/** Update all <time> elements below `root`: relative times change while the page is open. */
export function refresh(root) {
  for (const node of root.querySelectorAll("time")) {
    node.textContent = ago(new Date(node.dateTime));
  }
}

function ago(moment) {
  const seconds = (Date.now() - moment.getTime()) / 1000;
  if (seconds >= MONTH) return formats().day.format(moment);
  // The server's clock may be ahead, so a time in the future counts as now.
  if (seconds < 60) return t("just-now");
  const [unit, size] = UNITS.findLast(([, size]) => seconds >= size) ?? UNITS[0];
  return formats().relative.format(-Math.floor(seconds / size), unit);
}

/** Write the time that is left, rounded up, such as "12 min". */
export function left(milliseconds) {
  const seconds = Math.max(Math.ceil(milliseconds / 1000), 0);
  const [unit, size] = UNITS.findLast(([, size]) => seconds >= size) ?? ["second", 1];
  const format = new Intl.NumberFormat(language, { style: "unit", unit, unitDisplay: "short" });
  return format.format(Math.ceil(seconds / size));
}
