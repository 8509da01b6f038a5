/**
 * Times for readers, such as "5 minutes ago".
 *
 * A comment's full date is its title, formatted only when a pointer reaches it: the first date
 * format of a page takes browsers longer than drawing all of a page's comments.
 */

import * as clock from "./clock.js";
import { el } from "./dom.js";
import { language, t } from "./words.js";

/** @type {[Intl.RelativeTimeFormatUnit, number][]} each unit in seconds */
const UNITS = [
  ["minute", 60],
  ["hour", 3600],
  ["day", 86400],
  ["month", 30 * 86400],
  ["year", 365 * 86400],
];

/** Make a <time> element. Its title is the full date in the reader's time zone. */
export function time(iso) {
  const onpointerenter = ({ target }) => (target.title ||= full(new Date(iso)));
  return el("time", { datetime: iso, onpointerenter }, ago(new Date(iso)));
}

/** Update all <time> elements below `root`: relative times change while the page is open. */
export function refresh(root) {
  for (const node of root.querySelectorAll("time")) {
    node.textContent = ago(new Date(node.dateTime));
  }
}

function full(moment) {
  return moment.toLocaleString(language, { dateStyle: "long", timeStyle: "short" });
}

function ago(moment) {
  const seconds = (clock.now() - moment.getTime()) / 1000;
  if (seconds < 60) return t("just-now");
  const [unit, size] = UNITS.findLast(([, size]) => seconds >= size) ?? UNITS[0];
  return t(`ago-${unit}`, { count: Math.floor(seconds / size) });
}
