/**
 * Who the reader is on this site: the name he last used, the capability his posts earned him,
 * and which comments are his, with the source he wrote (the API gives only HTML).
 *
 * Always reads storage anew: another tab may have written since.
 */

import * as memory from "./memory.js";

export class Guest {
  #site;

  constructor(site) {
    this.#site = site;
  }

  /** {name, website} as last used; either may be missing. */
  get profile() {
    return memory.load("me") ?? {};
  }

  /** The current capability, or null. */
  get token() {
    const kept = memory.load(`guest:${this.#site}`);
    return isCurrent(kept) ? kept.token : null;
  }

  /** Give up the capability: the server no longer takes it. */
  leave() {
    memory.drop(`guest:${this.#site}`);
  }

  /** {token, body, expires} of an own comment that may still be changed, or null. */
  own(id) {
    const mine = this.#mine();
    return Object.hasOwn(mine, id) ? mine[id] : null;
  }

  /** Remember the capability that somebody earned by voting. */
  meet(token, expires) {
    memory.save(`guest:${this.#site}`, { __proto__: null, token, expires });
  }

  /** Remember a comment just posted. */
  keep(id, values, token, expires) {
    memory.save("me", { __proto__: null, name: values.name, website: values.website });
    if (!token) return;
    this.meet(token, expires);
    this.#write(id, { __proto__: null, token, expires, body: values.body });
  }

  /** Remember the new source of an own comment. */
  rewrite(id, body) {
    const kept = this.own(id);
    if (kept) this.#write(id, { __proto__: null, ...kept, body });
  }

  forget(id) {
    const mine = this.#mine();
    delete mine[id];
    memory.save(this.#key, mine);
  }

  get #key() {
    return `own:${this.#site}`;
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
