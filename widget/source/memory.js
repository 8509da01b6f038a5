/**
 * Small values that are stored between visits, in localStorage with the prefix "flatthread:".
 *
 * If storage is forbidden or full, values last only while the page is open. People can edit
 * storage, so a value that cannot be parsed counts as missing. The embedding page can read all
 * values.
 */

const PREFIX = "flatthread:";
const held = new Map();

// Remove prototypes: the page may have changed how objects are converted to JSON.
function bare(_, value) {
  const isPlain = value !== null && typeof value === "object" && !Array.isArray(value);
  return isPlain ? Object.setPrototypeOf(value, null) : value;
}

/** Return the value for `key`, or null. */
export function load(key) {
  try {
    const text = localStorage.getItem(PREFIX + key);
    if (text !== null) return JSON.parse(text, bare);
  } catch {
    // Storage is forbidden, or the value is damaged: only `held` may have a value.
  }
  return held.get(key) ?? null;
}

export function save(key, value) {
  held.set(key, value);
  try {
    localStorage.setItem(PREFIX + key, JSON.stringify(value));
  } catch {
    // Storage is forbidden or full: `held` has the value while the page is open.
  }
}

export function drop(key) {
  held.delete(key);
  try {
    localStorage.removeItem(PREFIX + key);
  } catch {
    // Storage is forbidden, so it does not contain the value.
  }
}
