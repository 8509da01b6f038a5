/**
 * What a browser stores about the reader's own comments when the reader writes (guest.js reads it).
 */

import * as clock from "../../shared/clock.js";
import * as memory from "../../shared/memory.js";

/** @typedef {import("../../reader/guest.js").Guest} Guest */

/** Store a newly posted comment, and a guest's name for the next one. */
export function keep(guest, id, values, token, expires) {
  const isGuest = guest.name === null;
  if (isGuest) {
    memory.save("me", { __proto__: null, name: values.name, website: values.website });
  }
  if (!token) return;
  guest.keepToken(token, expires);
  writeEntry(guest, id, {
    __proto__: null,
    token: isGuest ? token : null,
    expires,
    body: values.body,
  });
}

/** Store the edited Markdown of an own comment. */
export function rewrite(guest, id, body) {
  const kept = guest.own(id);
  if (!kept) return;
  const token = guest.name === null ? kept.token : null;
  writeEntry(guest, id, { __proto__: null, ...kept, token, body });
}

/**
 * Store until when an own comment can be edited, as the server says.
 *
 * @param {Guest} guest
 * @param {UncountedComment} comment
 */
export function noteEditTime(guest, { id, editable_until: until }) {
  const mine = guest.mine();
  if (until === undefined || !Object.hasOwn(mine, id)) return;
  writeEntry(guest, id, { __proto__: null, ...mine[id], until });
}

/** Return how long an own comment can still be edited, in milliseconds; Infinity if not known. */
export function editableFor(guest, id) {
  const until = guest.own(id)?.until;
  if (until === undefined) return Infinity;
  return until === null ? 0 : Date.parse(until) - clock.now();
}

export function forget(guest, id) {
  const mine = guest.mine();
  delete mine[id];
  memory.save(guest.ownKey, mine);
}

/** Drop a guest's token that the server no longer accepts. */
export function dropToken(guest) {
  if (guest.name === null) memory.drop(guest.tokenKey);
}

/** Forget everything about a guest, or about the comments of an account. */
export function erase(guest) {
  memory.drop(guest.ownKey);
  if (guest.name !== null) return;
  memory.drop(guest.tokenKey);
  memory.drop("me");
}

function writeEntry(guest, id, entry) {
  const mine = guest.mine();
  mine[id] = entry;
  memory.save(guest.ownKey, mine);
}
