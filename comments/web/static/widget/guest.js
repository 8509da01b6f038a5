/**
 * Who the reader is on this site: the name he last used, the capability his posts earned him,
 * and which comments are his, with the source he wrote (the API gives only HTML).
 *
 * Somebody with an account of the site's is known by that as long as the page is open, and who signed
 * in here until he signs out; what is his is remembered apart from what is a guest's or another
 * account's.
 *
 * Always reads storage anew: another tab may have written since.
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
   * Be somebody with an account, on the next page too if `stays`.
   *
   * @param {Member} member
   */
  enter(member, { stays = false } = {}) {
    this.#member = { __proto__: null, ...member, stays };
    if (stays) memory.save(this.#seat, this.#member);
    else memory.drop(this.#seat);
  }

  /** Whether he signed in here, and may leave again. */
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
   * The name and website as last used; either may be missing.
   *
   * @returns {{ name?: string, website?: string }}
   */
  get profile() {
    return memory.load("me") ?? {};
  }

  /**
   * The current capability, or null. An account's stays: who had one does not become a guest.
   *
   * @returns {string | null}
   */
  get token() {
    if (this.#member) return this.#member.token;
    const kept = memory.load(`guest:${this.#site}`);
    return isCurrent(kept) ? kept.token : null;
  }

  /** Give up the capability: the server no longer takes it. */
  leave() {
    if (!this.#member) memory.drop(`guest:${this.#site}`);
  }

  /**
   * What is known of an own comment that may still be changed, or null.
   *
   * @param {string} id
   * @returns {{ token: string, body: string, expires: string } | null}
   */
  own(id) {
    const mine = this.#mine();
    if (!Object.hasOwn(mine, id)) return null;
    return this.#member ? { __proto__: null, ...mine[id], token: this.token } : mine[id];
  }

  /** Remember the capability that somebody earned by voting. */
  meet(token, expires) {
    if (this.#member) {
      this.enter({ ...this.#member, token, expires }, this.#member);
      return;
    }
    memory.save(`guest:${this.#site}`, { __proto__: null, token, expires });
  }

  /** Remember a comment just posted. */
  keep(id, values, token, expires) {
    if (!this.#member) {
      memory.save("me", { __proto__: null, name: values.name, website: values.website });
    }
    if (!token) return;
    this.meet(token, expires);
    const kept = this.#member ? null : token;
    this.#write(id, { __proto__: null, token: kept, expires, body: values.body });
  }

  /** Remember the new source of an own comment. */
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
