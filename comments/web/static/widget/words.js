/**
 * Texts for readers, in the widget's language: `t("title", { count: 3 })`.
 *
 * The server generates `strings.js` and `strings-writing.js` from its catalogue. It fills its own
 * texts by the same rules (`comments/domain/languages`): placeholders are in braces, `count`
 * selects the plural form, and whole numbers are formatted for the language.
 */

import { entries, language } from "./strings.js";

export { language };

const plurals = new Intl.PluralRules(language);
const numbers = new Intl.NumberFormat(language);

/**
 * Return functions that fill these texts. `parts` returns a list, so values can be elements.
 *
 * @param {import("./strings.js").Entries} entries
 */
export function texts(entries) {
  const parts = (name, values) => {
    const entry = entries[name];
    const pattern = typeof entry === "string" ? entry : entry[plurals.select(values.count)];
    return pattern.split(/\{(\w+)\}/).map((part, at) => {
      const value = at % 2 ? values[part] : part;
      return typeof value === "number" ? numbers.format(value) : value;
    });
  };
  /** @type {(name: string, values?: Record<string, string | number>) => string} */
  const t = (name, values = {}) => parts(name, values).join("");
  return { t, parts };
}

export const { t, parts } = texts(entries);
