/**
 * The reader on this site: the last name, the token from a post, and the reader's own comments with
 * their Markdown (the API returns only HTML).
 *
 * Readers whom the site signs in are signed in while the page is open. Readers who sign in with the
 * widget stay signed in until they sign out. The browser stores the comments of a guest and of each
 * account separately.
 *
 * Storage is read on every access, because another tab may have written to it.
 */

import * as memory from "../shared/memory.js";

export class Guest {
  #site;
  /** @type {Member | null} */
  #member = null;
  /** @type {Staff | null} the moderator who posts in the thread */
  staff = null;

  constructor(site) {
    this.#site = site;
    const stored = memory.load(this.#memberKey);
    this.#member = isCurrent(stored) ? stored : null;
  }

  /**
   * Sign in with an account. If `stays`, the reader is also signed in on the next pages.
   *
   * @param {Member} member
   */
  enter(member, { stays = false } = {}) {
    this.#member = { __proto__: null, ...member, stays };
    if (stays) memory.save(this.#memberKey, this.#member);
    else memory.drop(this.#memberKey);
  }

  /** Whether the reader signed in with the widget and can therefore sign out. */
  get maySignOut() {
    return this.#member?.stays === true;
  }

  /** The account of the reader, or null. */
  get member() {
    return this.#member;
  }

  signOut() {
    this.#member = null;
    memory.drop(this.#memberKey);
  }

  /** The name of the moderator or of the account, or null for a guest. */
  get name() {
    return (this.staff ?? this.#member)?.name ?? null;
  }

  /**
   * The last name and website of the reader; either may be missing.
   *
   * @returns {{ name?: string, website?: string }}
   */
  get profile() {
    return memory.load("me") ?? {};
  }

  /**
   * The current token, or null. An account's token is returned even if it has expired, because a
   * reader with an account must not become a guest.
   *
   * @returns {string | null}
   */
  get token() {
    if (this.#member) return this.#member.token;
    const stored = memory.load(this.tokenKey);
    return isCurrent(stored) ? stored.token : null;
  }

  /**
   * Return the stored data of an own comment that can still be changed, or null.
   *
   * @param {string} id
   * @returns {{ token: string, body: string, expires: string, until?: string | null } | null}
   */
  own(id) {
    const mine = this.mine();
    if (!Object.hasOwn(mine, id)) return null;
    return this.#member ? { __proto__: null, ...mine[id], token: this.token } : mine[id];
  }

  /** Store a token from a vote or a post. */
  keepToken(token, expires) {
    if (this.#member) {
      this.enter({ ...this.#member, token, expires }, this.#member);
      return;
    }
    memory.save(this.tokenKey, { __proto__: null, token, expires });
  }

  get #memberKey() {
    return `member:${this.#site}`;
  }

  /** The name under which the token of a guest is stored. */
  get tokenKey() {
    return `guest:${this.#site}`;
  }

  /** The name under which the reader's own comments are stored. */
  get ownKey() {
    return this.#member ? `own:${this.#site}:${this.#member.account}` : `own:${this.#site}`;
  }

  /** Return the stored data of the own comments that can still be changed, by id. */
  mine() {
    const stored = Object.entries(memory.load(this.ownKey) ?? {});
    const current = stored.filter(([, entry]) => isCurrent(entry));
    return Object.assign(Object.create(null), Object.fromEntries(current));
  }
}

function isCurrent(entry) {
  return entry !== null && typeof entry === "object" && Date.parse(entry.expires) > Date.now();
}
