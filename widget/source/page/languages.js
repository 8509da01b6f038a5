/**
 * Choose the widget's language: `data-lang`, else the page's `lang`, else the site's, else the
 * browser's, else English. All threads on a page use the language of the first one.
 */

import { LANGUAGES } from "./files.js";

/** @type {Promise<string> | null} */
let chosen = null;

/**
 * Return the page's language. The first response contains the site's language; wait for it only if
 * the page names no language that has strings.
 *
 * @param {string | undefined} lang
 * @param {Promise<Response>} first
 */
export function choose(lang, first) {
  return (chosen ??= findLanguage(lang, first));
}

async function findLanguage(lang, first) {
  return (
    supportedLanguage(lang) ??
    supportedLanguage(document.documentElement.lang) ??
    supportedLanguage(await siteLanguage(first)) ??
    navigator.languages.map(supportedLanguage).find((language) => language) ??
    "en"
  );
}

async function siteLanguage(first) {
  try {
    const { options } = await (await first).clone().json();
    return options.language;
  } catch {
    return undefined; // the reader bundle reports the failure
  }
}

/** Return the language of a tag, such as "de" for "de-AT", if it has strings. */
function supportedLanguage(tag = "") {
  const parts = tag.split("-");
  for (let length = parts.length; length > 0; length--) {
    const wanted = parts.slice(0, length).join("-").toLowerCase();
    const match = LANGUAGES.find((language) => language.toLowerCase() === wanted);
    if (match) return match;
  }
  return undefined;
}
