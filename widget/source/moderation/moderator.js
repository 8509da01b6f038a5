/**
 * A moderator's session on the pages of a site, and the session's calls to the server.
 *
 * The token is stored for this tab only, in sessionStorage. Scripts of the page can read it, so it
 * allows only the calls in this module, for 12 hours.
 */

import { call, part } from "../shared/api.js";
import * as memory from "../shared/memory.js";
import { bare } from "../writer/base/calls.js";

/** @typedef {"approve" | "reject" | "spam" | "hide" | "restore" | "pin" | "unpin"} Verb */

/**
 * @typedef {{
 *   comment: CommentData,
 *   status: string,
 *   rule: string,
 *   reason: string,
 *   reasons: { code: string, params: Record<string, string | number> }[],
 * }} ModeratedComment A comment with what holds it, or with what was decided about it.
 */

const TOKEN = /^m\.[\w.-]+$/;

/**
 * Return the session that this tab keeps for a site, or null. It may have ended.
 *
 * @returns {Moderator | null}
 */
export function storedSession(site) {
  const session = memory.loadVisit(storageKey(site));
  return TOKEN.test(session?.token) && Date.parse(session.expires) ? session : null;
}

/** Keep a session for this tab, and remember that somebody moderates the site in this browser. */
export function storeSession(site, session) {
  memory.save(storageKey(site), true);
  memory.saveVisit(storageKey(site), session);
}

export function dropSession(site) {
  memory.saveVisit(storageKey(site), null);
}

/**
 * Begin a session with the code from the service's window.
 *
 * @returns {Promise<Moderator>}
 */
export function begin(site, verifier, code) {
  const body = { __proto__: null, verifier, code };
  return call("POST", `${pathOf(site)}/session`, { __proto__: null, body });
}

export function end(site, token) {
  return call("DELETE", `${pathOf(site)}/session`, { __proto__: null, token });
}

/**
 * List the held comments of a thread.
 *
 * @param {Place} place
 * @param {string} token
 * @returns {Promise<{ comments: ModeratedComment[], more: boolean }>}
 */
export function heldComments({ site, query }, token) {
  return call("GET", `${pathOf(site)}/comments`, { __proto__: null, query, token });
}

/**
 * @param {Pick<CommentData, "id" | "revision">} comment as the moderator saw it
 * @param {Verb} verb
 * @param {string} token
 * @returns {Promise<ModeratedComment>}
 */
export function decide({ id, revision }, verb, token) {
  return call("POST", `comments/${part(id)}/decision`, {
    __proto__: null,
    body: { __proto__: null, verb },
    token,
    headers: { "If-Match": `"${revision}"` },
  });
}

/** Ban the author of a comment permanently. */
export function ban(id, token) {
  return call("PUT", `comments/${part(id)}/ban`, {
    __proto__: null,
    body: { __proto__: null, days: null },
    token,
  });
}

export function unban(id, token) {
  return call("DELETE", `comments/${part(id)}/ban`, { __proto__: null, token });
}

/**
 * Post a comment as the moderator.
 *
 * @param {Place} place
 * @param {{ body: string, parent?: string, subject?: string }} values
 * @param {{ key: string, token: string }} attempt
 * @returns {Promise<{ comment: UncountedComment }>}
 */
export function post({ site, query, title, url, categories }, values, { key, token }) {
  return call("POST", `${pathOf(site)}/comments`, {
    __proto__: null,
    query,
    body: { __proto__: null, ...values, title, url, categories: bare(categories) },
    token,
    headers: { "Idempotency-Key": key },
  });
}

function pathOf(site) {
  return `sites/${part(site)}/moderation`;
}

// thread.js resumes a session if this key has a value.
function storageKey(site) {
  return `moderator:${site}`;
}
