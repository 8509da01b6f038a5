/**
 * Calls to the server.
 *
 * The API's address comes from the bundle's own URL (request.js), never from the embedding page.
 * Objects made here have no prototype. A page may have changed Object.prototype, for
 * example with a `toJSON`, and this must not change the requests.
 */

import * as lazy from "./lazy.js";
import { addressOf, init, PAGE } from "./request.js";
import { t } from "./words.js";

/** A failed call. `field` names the wrong input; `isFinal` means that nothing was stored. */
export class Problem extends Error {
  constructor(status, message, { code = "", field = "" } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.field = field;
  }

  get isFinal() {
    return this.status >= 400 && this.status < 500 && this.status !== 429;
  }
}

/**
 * Get a page of a thread.
 *
 * @param {Place} place
 * @param {Position} [position]
 * @returns {Promise<CommentPage>}
 */
export function list({ site, query, order }, position) {
  const chosen = !position?.around && order ? { order } : null;
  return call("GET", `sites/${part(site)}/comments`, {
    __proto__: null,
    query: { ...query, limit: PAGE, ...chosen, ...position },
  });
}

// The same for arrays: the page may have changed how they are converted to JSON.
function bare(list) {
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
export function enter(site, token) {
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
export function ownVotes({ site, query }, token, cursor) {
  return call("GET", `sites/${part(site)}/votes`, {
    __proto__: null,
    query: cursor ? { ...query, cursor } : query,
    token,
  });
}

/**
 * Get the reader's pending comments in a thread.
 *
 * @param {Place} place
 * @param {string} token
 * @returns {Promise<{ comments: UncountedComment[] }>}
 */
export function held({ site, query }, token) {
  return call("GET", `sites/${part(site)}/held`, { __proto__: null, query, token });
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

export const part = encodeURIComponent;

/**
 * @param {string} method
 * @param {string} path
 * @param {{
 *   __proto__: null,
 *   query?: Record<string, any>,
 *   body?: object,
 *   token?: string | null,
 *   headers?: Record<string, string>,
 * }} options
 */
export async function call(method, path, { query = {}, body, token, headers = {} }) {
  const sent = new Headers(Object.entries(headers));
  if (token) sent.set("Authorization", `Bearer ${token}`);
  if (body) sent.set("Content-Type", "application/json");
  return answer(
    fetch(addressOf(path, query), {
      ...init(method),
      __proto__: null,
      headers: sent,
      body: body ? JSON.stringify(body) : undefined,
    }),
  );
}

/**
 * Return the content of an answer.
 *
 * @param {Promise<Response>} asked
 */
export async function answer(asked) {
  const response = await asked.catch(() => {
    throw new Problem(0, t("unreachable"));
  });
  const content = await response.json().catch(() => null);
  if (!response.ok) throw await problem(response, content);
  if (content === null) throw new Problem(0, t("unreachable"));
  return content;
}

async function problem(response, content) {
  const { code, field } = content ?? {};
  const writer = await lazy.writer().catch(() => null);
  const message = writer?.explain(response, content) ?? t("unreachable");
  return new Problem(response.status, message, { code, field });
}
