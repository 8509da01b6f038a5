/**
 * The calls to the server that only readers who write, or have written before, need.
 *
 * As in api.js, objects made here have no prototype.
 */

import { call, part } from "../../shared/api.js";

// The same for arrays: the page may have changed how they are converted to JSON.
export function bare(list) {
  return Object.setPrototypeOf([...list], null);
}

/**
 * Post a comment.
 *
 * @param {Place} place
 * @param {Values & Proved & { parent?: string, subject?: string }} values
 * @param {Pick<Attempt, "key" | "token">} attempt
 * @returns {Promise<Capability & { comment: UncountedComment }>}
 */
export function post({ site, query, title, url, categories }, values, { key, token }) {
  return call("POST", `sites/${part(site)}/comments`, {
    __proto__: null,
    query,
    body: { __proto__: null, ...values, title, url, categories: bare(categories) },
    token,
    headers: { "Idempotency-Key": key },
  });
}

/**
 * Sign in a reader with a token that the site has signed.
 *
 * @param {string} site
 * @param {string} token
 * @returns {Promise<Member>}
 */
export function signInByToken(site, token) {
  return call("POST", `sites/${part(site)}/session`, {
    __proto__: null,
    body: { __proto__: null, token },
  });
}

/**
 * @param {string} id
 * @returns {Promise<{ comment: CommentData }>}
 */
export function read(id) {
  return call("GET", `comments/${part(id)}`, { __proto__: null });
}

/**
 * @param {Pick<CommentData, "id" | "revision">} comment
 * @param {string} body
 * @param {string} [token]
 * @returns {Promise<{ comment: CommentData }>}
 */
export function edit({ id, revision }, body, token) {
  return call("PATCH", `comments/${part(id)}`, {
    __proto__: null,
    body: { __proto__: null, body },
    token,
    headers: { "If-Match": `"${revision}"` },
  });
}

export function retract(id, token) {
  return call("DELETE", `comments/${part(id)}`, { __proto__: null, token });
}

/**
 * Upvote (1) or downvote (-1) a comment. A reader's first vote may need a `proof`.
 *
 * @param {string} id
 * @param {1 | -1} value
 * @param {{ key: string, token: string | null, proof?: string }} attempt
 * @returns {Promise<Capability>}
 */
export function vote(id, value, { key, token, proof }) {
  return call("PUT", `comments/${part(id)}/vote`, {
    __proto__: null,
    body: { __proto__: null, value, ...(proof && { proof }) },
    token,
    headers: { "Idempotency-Key": key },
  });
}

export function withdraw(id, token) {
  return call("DELETE", `comments/${part(id)}/vote`, { __proto__: null, token });
}

/**
 * Get the reader's votes in a thread.
 *
 * @param {Place} place
 * @param {string} token
 * @param {string} [cursor]
 * @returns {Promise<{
 *   votes: Record<string, 1 | -1>,
 *   uncounted?: Record<string, number>,
 *   cursor: string | null,
 * }>}
 */
export function ownVotesPage({ site, query }, token, cursor) {
  return call("GET", `sites/${part(site)}/votes`, {
    __proto__: null,
    query: cursor ? { ...query, cursor } : query,
    token,
  });
}

/**
 * Get the reader's own comments in a thread, also the imported ones that the account owns.
 *
 * @param {Place} place
 * @param {string} token
 * @param {Member | null} member
 * @returns {Promise<{ comments: UncountedComment[] }>}
 */
export function ownHeldComments({ site, query: thread }, token, member) {
  const query = member?.claimed ? { ...thread, claimed: "1" } : thread;
  return call("GET", `sites/${part(site)}/held`, { __proto__: null, query, token });
}

/** Give up the imported comments that the reader owns. */
export function giveUpClaims(site, token) {
  return call("DELETE", `sites/${part(site)}/claims`, { __proto__: null, token });
}

/**
 * Get the HTML that the server would store for a body.
 *
 * @param {string} site
 * @param {string} body
 * @returns {Promise<{ html: string }>}
 */
export function preview(site, body) {
  return call("POST", `sites/${part(site)}/preview`, {
    __proto__: null,
    body: { __proto__: null, body },
  });
}

/** Get a challenge to solve before a post, or for a different purpose; see proof.js. */
export function challenge(site, purpose) {
  const query = purpose === "post" ? undefined : { purpose };
  return call("GET", `sites/${part(site)}/challenge`, { __proto__: null, query });
}

/** Return the ways to sign in: {mail, providers, url}. */
export function signInOptions(site) {
  return call("GET", `sites/${part(site)}/sign-in`, { __proto__: null });
}

/** Request an e-mail with a link to a code; return {key, expires}. */
export function requestMailCode(site, email, proof = {}) {
  return call("POST", `sites/${part(site)}/sign-in`, {
    __proto__: null,
    body: { __proto__: null, email, ...proof },
  });
}

/**
 * Sign in with a code from an e-mail.
 *
 * @param {string} site
 * @param {{ key: string, code: string, name: string }} given
 * @returns {Promise<Member>}
 */
export function signInByCode(site, { key, code, name }) {
  return call("POST", `sites/${part(site)}/sign-in/code`, {
    __proto__: null,
    body: { __proto__: null, key, code, name },
  });
}

/**
 * Sign in with a code from a provider's window.
 *
 * @param {string} site
 * @param {{ verifier: string, code: string, name: string }} given
 * @returns {Promise<Member>}
 */
export function signInByProvider(site, { verifier, code, name }) {
  return call("POST", `sites/${part(site)}/sign-in/provider`, {
    __proto__: null,
    body: { __proto__: null, verifier, code, name },
  });
}

/**
 * Return {mail}, which tells whether the server sends mail (GET), or subscribe an address (PUT).
 *
 * @param {"GET" | "PUT"} method
 * @param {Partial<Place>} place
 * @param {{ email: string, replies: boolean, thread: boolean }} [body]
 * @param {string} [token]
 */
export function subscription(method, { site = "", query }, body, token) {
  return call(method, `sites/${part(site)}/subscription`, { __proto__: null, query, body, token });
}
