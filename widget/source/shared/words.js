/**
 * Texts for readers, in the widget's language: `t("title", { count: 3 })`.
 *
 * `use` sets the language and its texts before anything is drawn, so no module may call `t` while
 * it is loaded. The server fills its own texts by the same rules (`comments/domain/languages`):
 * placeholders are in braces, `count` selects the plural form, and whole numbers are formatted for
 * the language.
 */

/** @typedef {Record<string, string | Record<string, string>>} Entries */

export let language = "en";
let plurals = new Intl.PluralRules(language);

/** Return the direction in which a language is written. */
export function direction(language) {
  return /^(ar|dv|fa|he|ps|ur|yi)\b/.test(language) ? "rtl" : "ltr";
}

/** Set the language, and the texts that `t` and `parts` fill. */
export function use(chosen, entries) {
  language = chosen;
  plurals = new Intl.PluralRules(language);
  own = texts(entries);
}

/**
 * Write a whole number.
 *
 * The languages of the catalogue write small numbers in Latin digits. Formats are for the others,
 * because a page's first one takes browsers about as long as drawing all of its comments.
 */
export function number(value) {
  return Math.abs(value) < 1000 ? String(value) : value.toLocaleString(language);
}

/**
 * Return functions that fill these texts. `parts` returns a list, so values can be elements.
 *
 * @param {Entries} entries
 */
export function texts(entries) {
  const parts = (name, values) => {
    const entry = entries[name];
    const pattern = typeof entry === "string" ? entry : entry[plurals.select(values.count)];
    return pattern.split(/\{(\w+)\}/).map((part, at) => {
      const value = at % 2 ? values[part] : part;
      return typeof value === "number" ? number(value) : value;
    });
  };
  /** @type {(name: string, values?: Record<string, string | number>) => string} */
  const t = (name, values = {}) => parts(name, values).join("");
  return { t, parts };
}

let own = texts({});

/** @type {(name: string, values?: Record<string, string | number>) => string} */
export function t(name, values) {
  return own.t(name, values);
}

export function parts(name, values) {
  return own.parts(name, values);
}
