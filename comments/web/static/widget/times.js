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

const relative = new Intl.RelativeTimeFormat(language, { numeric: "auto" });
const day = new Intl.DateTimeFormat(language, { dateStyle: "medium" });
const full = new Intl.DateTimeFormat(language, { dateStyle: "long", timeStyle: "short" });

/** Make a <time> element. Its title is the full date in the reader's time zone. */
export function time(iso) {
  const moment = new Date(iso);
  return el("time", { datetime: iso, title: full.format(moment) }, ago(moment));
}

/** Update all <time> elements below `root`: relative times change while the page is open. */
export function refresh(root) {
  for (const node of root.querySelectorAll("time")) {
    node.textContent = ago(new Date(node.dateTime));
  }
}

function ago(moment) {
  const seconds = (Date.now() - moment.getTime()) / 1000;
  if (seconds >= MONTH) return day.format(moment);
  // The server's clock may be ahead, so a time in the future counts as now.
  if (seconds < 60) return t("just-now");
  const [unit, size] = UNITS.findLast(([, size]) => seconds >= size) ?? UNITS[0];
  return relative.format(-Math.floor(seconds / size), unit);
}
