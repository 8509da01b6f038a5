/**
 * Code and strings that load when a reader begins to write, or when a call fails.
 *
 * The entry knows the files' names. It cannot be imported from here, so it passes its loader.
 */

import { unreachable } from "./offline.js";

/** @typedef {typeof import("../writer/writer.js")} Writer */

/**
 * @typedef {{
 *   script: (name: string) => Promise<any>,
 *   writing: () => Promise<Record<string, import("./words.js").Entries>>,
 * }} Loader
 */

/** @type {Loader} */
let loader;

/** @param {Loader} given */
export function connect(given) {
  loader = given;
}

/**
 * Load the writer bundle and its strings. If that fails, throw an error with a message for the
 * reader; a later call tries again.
 *
 * @returns {Promise<Writer>}
 */
export async function writer() {
  try {
    const [loaded, strings] = await Promise.all([loader.script("writer"), loader.writing()]);
    loaded.useTexts(strings, loader.script);
    return loaded;
  } catch {
    throw new Error(unreachable());
  }
}
