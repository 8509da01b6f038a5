/** The choice of the widget's language. */

import { LANGUAGES } from "./files.js";

/** Return the first language that has strings: the page's, or the browser's, or English. */
export function languageOf() {
  const wanted = [document.documentElement.lang, ...navigator.languages];
  return wanted.map(supported).find((language) => language !== undefined) ?? "en";
}

function supported(tag) {
  return LANGUAGES.find((language) => tag === language || tag.startsWith(`${language}-`));
}
