/**
 * The reader on this site: the last name, the token from a post, and the reader's own comments with
 * their Markdown (the API returns only HTML).
 *
 * Readers whom the site signs in are signed in while the page is open. Readers who sign in with the
 * widget stay signed in until they sign out. The own comments of guests and of each account are
 * stored separately.
 *
 * Storage is read on every access, because another tab may have written to it.
 */

import * as memory from "./memory.js";

export class Guest {
  #site;
  /** @type {Member | null} */
  #member = null;
  /** @type {Staff | null} what a moderator posts with, in the thread */
  staff = null;

  constructor(site) {
    this.#site = site;
    const kept = memory.load(this.#seat);
    this.#member = isCurrent(kept) ? kept : null;
  }

  /**
   * Sign in with an account. If `stays`, the reader is also signed in on the next pages.
   *
   * @param {Member} member
   */
  enter(member, { stays = false } = {}) {
    this.#member = { __proto__: null, ...member, stays };
    if (stays) memory.save(this.#seat, this.#member);
    else memory.drop(this.#seat);
  }

  /** Whether the reader signed in with the widget and can therefore sign out. */
  get maySignOut() {
    return this.#member?.stays === true;
  }

  signOut() {
    this.#member = null;
    memory.drop(this.#seat);
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
    const kept = memory.load(`guest:${this.#site}`);
    return isCurrent(kept) ? kept.token : null;
  }

  /** Drop a guest's token that the server no longer accepts. */
  leave() {
    if (!this.#member) memory.drop(`guest:${this.#site}`);
  }

  /**
   * Return the stored data of an own comment that can still be changed, or null.
   *
   * @param {string} id
   * @returns {{ token: string, body: string, expires: string, until?: string | null } | null}
   */
  own(id) {
    const mine = this.#mine();
    if (!Object.hasOwn(mine, id)) return null;
    return this.#member ? { __proto__: null, ...mine[id], token: this.token } : mine[id];
  }

  /** Store a token from a vote or a post. */
  meet(token, expires) {
    if (this.#member) {
      this.enter({ ...this.#member, token, expires }, this.#member);
      return;
    }
    memory.save(`guest:${this.#site}`, { __proto__: null, token, expires });
  }

  /** Return the milliseconds for which an own comment can be edited. */
  editableFor(id) {
    const until = this.own(id)?.until;
    return until ? Date.parse(until) - Date.now() : Infinity;
  }

  /**
   * Store until when an own comment can be edited, as the server says.
   *
   * @param {UncountedComment} comment
   */
  note({ id, editable_until: until }) {
    const mine = this.#mine();
    if (until === undefined || !Object.hasOwn(mine, id)) return;
    this.#write(id, { __proto__: null, ...mine[id], until });
  }

  /** Forget everything about a guest, or about the comments of an account. */
  erase() {
    memory.drop(this.#key);
    if (this.#member) return;
    memory.drop(`guest:${this.#site}`);
    memory.drop("me");
  }

  /** Store the name for the next comment. */
  rename(values) {
    memory.save("me", { __proto__: null, name: values.name, website: values.website });
  }

  /** Store a newly posted comment. */
  keep(id, values, token, expires) {
    if (!this.#member) this.rename(values);
    if (!token) return;
    this.meet(token, expires);
    const kept = this.#member ? null : token;
    this.#write(id, { __proto__: null, token: kept, expires, body: values.body });
  }

  /** Store the edited Markdown of an own comment. */
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
