/**
 * Small values kept between visits, under "flatthread:" in localStorage.
 *
 * Storage can be forbidden, full or edited by hand. Then values last as long as the page, and a
 * value that does not parse counts as missing. The embedding page can read all of it.
 */

const PREFIX = "flatthread:";
const held = new Map();

// Without prototypes: a page may have changed how objects become JSON when they are saved again.
function bare(_, value) {
  const isPlain = value !== null && typeof value === "object" && !Array.isArray(value);
  return isPlain ? Object.setPrototypeOf(value, null) : value;
}

/** Return the value kept under `key`, or null. */
export function load(key) {
  try {
    const text = localStorage.getItem(PREFIX + key);
    if (text !== null) return JSON.parse(text, bare);
  } catch {
    // Forbidden or damaged: only `held` has a value.
  }
  return held.get(key) ?? null;
}

export function save(key, value) {
  held.set(key, value);
  try {
    localStorage.setItem(PREFIX + key, JSON.stringify(value));
  } catch {
    // Forbidden or full: `held` keeps it as long as the page is open.
  }
}

export function drop(key) {
  held.delete(key);
  try {
    localStorage.removeItem(PREFIX + key);
  } catch {
    // Forbidden: nothing was kept there either.
  }
}
