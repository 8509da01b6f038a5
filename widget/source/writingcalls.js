/** The calls to the server that only writers need: challenges, sign-in and subscriptions. */

import { call, part } from "./api.js";

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
export function mailCode(site, email, proof = {}) {
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
