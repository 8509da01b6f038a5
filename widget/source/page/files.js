/**
 * The hashed files beside the entry: bundles and strings.
 *
 * A file's name contains a part of the digest of its content, and the browser checks the whole
 * digest. An older or changed file is therefore never used, and caches may keep these files
 * forever.
 */

import { TIMEOUT } from "../shared/request.js";
import { ownElement } from "./script.js";

/** @type {Record<string, Promise<any>>} */
const loading = Object.create(null);

/** The languages that have strings. */
export const LANGUAGES = Object.keys(DIGESTS.strings);

/**
 * Load a bundle once. A call after a failure tries again.
 *
 * @param {string} name
 */
export function loadScript(name) {
  return once(name, () => load(addressOf(name, "js", DIGESTS[name]), DIGESTS[name]));
}

/** Load the strings of a language for the reader bundle. */
export function loadStrings(language) {
  return loadTexts(`strings-${language}`, DIGESTS.strings[language]);
}

/** Load the strings of a language for the writer bundle. The strings for readers name this file. */
export async function loadWriting(language) {
  return loadTexts(`writing-${language}`, (await loadStrings(language)).writing);
}

function loadTexts(stem, digest) {
  return once(stem, async () => {
    const answer = await fetch(addressOf(stem, "json", digest), {
      __proto__: null,
      credentials: "omit",
      integrity: `sha256-${digest}`,
      signal: AbortSignal.timeout(TIMEOUT),
    });
    if (!answer.ok) throw new Error(stem);
    return answer.json();
  });
}

function once(name, begin) {
  const started = (loading[name] ??= begin());
  started.catch(() => delete loading[name]);
  return started;
}

// widget/build.mjs computes the same names.
function addressOf(stem, suffix, digest) {
  const part = digest.slice(0, 12).replace(/\W/g, "_");
  return new URL(`${stem}-${part}.${suffix}`, import.meta.url).href;
}

/** Import a module whose content must match the digest. */
async function load(url, digest) {
  const link = document.createElement("link");
  // Without support for preloading, the module is imported without a check.
  if (link.relList.supports("modulepreload")) await preload(link, url, digest);
  return import(url);
}

function preload(link, url, digest) {
  return new Promise((done, fail) => {
    const timer = setTimeout(fail, TIMEOUT, new Error(url));
    link.rel = "modulepreload";
    link.crossOrigin = "";
    link.integrity = `sha256-${digest}`;
    link.href = url;
    // A policy with a nonce allows elements with the nonce of the page's script.
    link.nonce = ownElement()?.nonce ?? "";
    link.onload = () => done(clearTimeout(timer));
    link.onerror = () => fail(new Error(url));
    document.head.append(link);
  }).finally(() => link.remove());
}
