/**
 * The texts people read, in the widget's language: `t("title", { count: 3 })`.
 *
 * The server makes `strings.js` and `strings-writing.js` from its catalogue and fills its own texts
 * by the same rules (`comments/domain/languages`): placeholders are in braces, `count` chooses the
 * plural form, and whole numbers are written as the language writes them.
 */

import { entries, language } from "./strings.js";

export { language };

const plurals = new Intl.PluralRules(language);
const numbers = new Intl.NumberFormat(language);

/**
 * Return the functions that fill these texts. `parts` gives a list, so that values can be elements.
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
