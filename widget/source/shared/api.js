/**
 * Calls to the server.
 *
 * The API's address comes from the bundle's own URL (request.js), never from the embedding page.
 * Objects made here have no prototype. A page may have changed Object.prototype, for
 * example with a `toJSON`, and this must not change the requests.
 */

import * as clock from "./clock.js";
import * as lazy from "./lazy.js";
import { unreachable } from "./offline.js";
import { addressOf, init, PAGE } from "./request.js";

/** A failed call. `field` names the invalid input; `isFinal` means that nothing was stored. */
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
  return contentOf(
    fetch(addressOf(path, query), {
      ...init(method),
      __proto__: null,
      headers: sent,
      body: body ? JSON.stringify(body) : undefined,
    }),
  );
}

/**
 * Return the content of a response.
 *
 * @param {Promise<Response>} request
 */
export async function contentOf(request) {
  const response = await request.catch(() => {
    throw new Problem(0, unreachable());
  });
  clock.set(response.headers);
  const content = await response.json().catch(() => null);
  if (!response.ok) throw await problemOf(response, content);
  if (content === null) throw new Problem(0, unreachable());
  return content;
}

async function problemOf(response, content) {
  const { code, field } = content ?? {};
  const writer = await lazy.writer().catch(() => null);
  const message = writer?.explain(response, content) ?? unreachable();
  return new Problem(response.status, message, { code, field });
}
