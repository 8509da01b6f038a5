/** The texts for modules that load when the reader writes, and for errors. */

import { texts } from "../../shared/words.js";

/** The texts of errors, by code. */
/** @type {import("../../shared/words.js").Entries} */
export let errorTexts = {};
/** @type {import("../../shared/words.js").Entries} */
export let writingTexts = {};
/** The texts of the reasons for which comments are held, by code. */
/** @type {import("../../shared/words.js").Entries} */
export let reasonTexts = {};
let own = texts(writingTexts);

/** Loads a bundle that needs this one. @type {(name: string) => Promise<any>} */
export let loadLater;

/** Set the texts, and the loader of further bundles, before any module that loads later is used. */
export function use({ errors, reasons, "widget-writing": writing }, load) {
  loadLater = load;
  errorTexts = errors;
  reasonTexts = reasons;
  writingTexts = writing;
  own = texts(writing);
}

/** @type {(name: string, values?: Record<string, string | number>) => string} */
export function t(name, values) {
  return own.t(name, values);
}
