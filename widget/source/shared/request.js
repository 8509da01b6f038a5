/**
 * The request for the first page of a thread.
 *
 * The entry starts it before the reader bundle has arrived. The bundle reads the response (api.js).
 */

const BASE = new URL("../api/v1/", import.meta.url);
const PERMALINK = /^#comment-([a-z2-7]{26})$/;
export const TIMEOUT = 30_000; // milliseconds; the server gives up earlier
export const PAGE = "50"; // comments on a page

/** Return the id in the page's URL (#comment-ID), or null. */
export function wantedComment() {
  return PERMALINK.exec(location.hash)?.[1] ?? null;
}

/**
 * Return the options of a request without cookies.
 *
 * @param {string} method
 * @returns {RequestInit}
 */
export function init(method) {
  const signal = AbortSignal.timeout(TIMEOUT);
  return { __proto__: null, method, signal, credentials: "omit" };
}

/**
 * Return the URL of a call to the API.
 *
 * @param {string} path
 * @param {Record<string, any>} query
 */
export function addressOf(path, query) {
  const url = new URL(path, BASE);
  for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value);
  return url;
}

/**
 * Request the first page of a thread, or the page with the comment that the URL names.
 *
 * @param {Place} place
 * @returns {Promise<Response>}
 */
export function firstPage({ site, query, order }) {
  const around = wantedComment();
  // The server has only one order around a comment.
  const chosen = around ? { around } : order && { order };
  const parameters = { __proto__: null, ...query, limit: PAGE, ...chosen };
  const url = addressOf(`sites/${encodeURIComponent(site)}/comments`, parameters);
  const answer = fetch(url, init("GET"));
  answer.catch(() => {}); // the reader bundle reports it
  return answer;
}
