/**
 * The reader on this site: the name last used, the token that a post returned, and the reader's own
 * comments with their Markdown (the API returns only HTML).
 *
 * A reader with an account of the site is signed in while the page is open. A reader who signed in
 * here stays signed in until they sign out. Own comments are stored separately for guests and for
 * each account.
 *
 * Storage is read every time, because another tab may have written to it.
 */

import * as memory from "./memory.js";

export class Guest {
  #site;
  /** @type {Member | null} */
  #member = null;

  constructor(site) {
    this.#site = site;
    const kept = memory.load(this.#seat);
    this.#member = isCurrent(kept) ? kept : null;
  }

  /**
   * Sign in with an account; on the next pages too if `stays`.
   *
   * @param {Member} member
   */
  enter(member, { stays = false } = {}) {
    this.#member = { __proto__: null, ...member, stays };
    if (stays) memory.save(this.#seat, this.#member);
    else memory.drop(this.#seat);
  }

  /** Whether the reader signed in here, and so can sign out. */
  get maySignOut() {
    return this.#member?.stays === true;
  }

  signOut() {
    this.#member = null;
    memory.drop(this.#seat);
  }

  /** The name of the account, or null for a guest. */
  get name() {
    return this.#member?.name ?? null;
  }

  /**
   * The name and website last used; either may be missing.
   *
   * @returns {{ name?: string, website?: string }}
   */
  get profile() {
    return memory.load("me") ?? {};
  }

  /**
   * The current token, or null. An account's token counts even if it has expired: its reader must
   * not become a guest.
   *
   * @returns {string | null}
   */
  get token() {
    if (this.#member) return this.#member.token;
    const kept = memory.load(`guest:${this.#site}`);
    return isCurrent(kept) ? kept.token : null;
  }

  /** Forget a guest's token that the server no longer accepts. */
  leave() {
    if (!this.#member) memory.drop(`guest:${this.#site}`);
  }

  /**
   * Return what is stored of an own comment that can still be changed, or null.
   *
   * @param {string} id
   * @returns {{ token: string, body: string, expires: string } | null}
   */
  own(id) {
    const mine = this.#mine();
    if (!Object.hasOwn(mine, id)) return null;
    return this.#member ? { __proto__: null, ...mine[id], token: this.token } : mine[id];
  }

  /** Store the token that a vote or a post returned. */
  meet(token, expires) {
    if (this.#member) {
      this.enter({ ...this.#member, token, expires }, this.#member);
      return;
    }
    memory.save(`guest:${this.#site}`, { __proto__: null, token, expires });
  }

  /** Store a comment just posted. */
  keep(id, values, token, expires) {
    if (!this.#member) {
      memory.save("me", { __proto__: null, name: values.name, website: values.website });
    }
    if (!token) return;
    this.meet(token, expires);
    const kept = this.#member ? null : token;
    this.#write(id, { __proto__: null, token: kept, expires, body: values.body });
  }

  /** Store the new Markdown of an own comment. */
  rewrite(id, body) {
    const kept = this.own(id);
    if (!kept) return;
    this.#write(id, { __proto__: null, ...kept, token: this.#member ? null : kept.token, body });
  }

  forget(id) {
    const mine = this.#mine();
    delete mine[id];
    memory.save(this.#key, mine);
  }

  get #seat() {
    return `member:${this.#site}`;
  }

  get #key() {
    return this.#member ? `own:${this.#site}:${this.#member.account}` : `own:${this.#site}`;
  }

  #write(id, entry) {
    const mine = this.#mine();
    mine[id] = entry;
    memory.save(this.#key, mine);
  }

  #mine() {
    const kept = Object.entries(memory.load(this.#key) ?? {});
    const current = kept.filter(([, entry]) => isCurrent(entry));
    return Object.assign(Object.create(null), Object.fromEntries(current));
  }
}

function isCurrent(entry) {
  return entry !== null && typeof entry === "object" && Date.parse(entry.expires) > Date.now();
}
