/** Changes of the muted authors (visits.js). Part of the writer bundle. */

import * as memory from "../../shared/memory.js";
import { nameOf } from "../../reader/visits.js";

const MOST = 200; // authors to remember

/** @typedef {import("../../reader/visits.js").Mutes} Mutes */

/** @param {Mutes} mutes */
export function mute(mutes, author) {
  memory.save(mutes.key, [...mutes.all.slice(1 - MOST), nameOf(author)]);
}

/** @param {Mutes} mutes */
export function unmute(mutes, author) {
  memory.save(
    mutes.key,
    mutes.all.filter((name) => name !== nameOf(author)),
  );
}
