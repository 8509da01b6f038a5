/**
 * What a browser stores about the reader's own comments when the reader writes (guest.js reads it).
 */

import * as clock from "../../shared/clock.js";
import * as memory from "../../shared/memory.js";

/** @typedef {import("../../reader/guest.js").Guest} Guest */

/** Store a newly posted comment, and a guest's name for the next one. */
export function keep(guest, { id, editable_until: until }, values, token, expires) {
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
    until,
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
 * Store the comments that the server lists as the reader's own, and until when they can be edited.
 * Return whether the browser did not know one of them.
 *
 * @param {Guest} guest
 * @param {UncountedComment[]} comments
 * @param {Member | null} member the reader who loaded them
 */
export function noteOwn(guest, comments, member) {
  if (guest.member?.account !== member?.account) return false; // signed in or out meanwhile
  const mine = guest.mine();
  const { token, expires } = guest.member ?? memory.load(guest.tokenKey) ?? {};
  const capability = { token: guest.member ? null : token, expires };
  const isNews = comments.some(({ id }) => !Object.hasOwn(mine, id));
  for (const { id, editable_until: until } of comments) {
    mine[id] = { __proto__: null, ...(mine[id] ?? capability), until };
  }
  if (comments.length > 0) memory.save(guest.ownKey, mine);
  return isNews;
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

/** Forget the comments that the reader did not write in this browser. */
export function forgetListed(guest) {
  const written = Object.entries(guest.mine()).filter(([, entry]) => "body" in entry);
  memory.save(guest.ownKey, Object.fromEntries(written));
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
