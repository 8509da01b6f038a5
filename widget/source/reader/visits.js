/**
 * What this browser remembers about other authors and earlier visits: muted authors, and when each
 * thread was last seen. None of this is sent to the server.
 */

import * as memory from "../shared/memory.js";

const MOST = 200; // threads to remember

/** Muted authors. Names are not unique, so an author is muted by name and kind. */
export class Mutes {
  constructor(site) {
    this.key = `muted:${site}`;
  }

  /** @returns {string[]} */
  get all() {
    const stored = memory.load(this.key);
    return Array.isArray(stored) ? stored : [];
  }

  has(author) {
    return this.all.includes(nameOf(author));
  }
}

/** Return the name under which an author is muted. */
export function nameOf(author) {
  return `${author?.kind ?? ""}:${author?.name ?? ""}`;
}

/** Return when the thread was last seen (milliseconds, 0 for never), and remember this visit. */
export function visit(spot, now) {
  const stored = memory.load("seen");
  const seen = Array.isArray(stored) ? stored : [];
  const last = seen.find(([name]) => name === spot)?.[1] ?? 0;
  memory.save("seen", [...seen.filter(([name]) => name !== spot).slice(1 - MOST), [spot, now]]);
  return Number(last) || 0;
}
