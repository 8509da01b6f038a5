/**
 * Small values that the browser stores with the prefix "flatthread:": between visits in
 * localStorage, or for one visit in sessionStorage.
 *
 * If storage is forbidden or full, values last only while the page is open. A value that cannot be
 * parsed counts as missing, because people can edit storage. The embedding page can read all values.
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
  return read("localStorage", key);
}

/** Return the value that was stored for `key` in this tab, or null. */
export function loadVisit(key) {
  return read("sessionStorage", key);
}

/** @param {"localStorage" | "sessionStorage"} storage */
function read(storage, key) {
  try {
    const text = window[storage].getItem(PREFIX + key);
    if (text !== null) return JSON.parse(text, bare);
  } catch {
    // Storage is forbidden, or the value is damaged: only `held` may have a value.
  }
  return held.get(key) ?? null;
}

export function save(key, value) {
  write("localStorage", key, value);
}

/** Store a value until the tab is closed. */
export function saveVisit(key, value) {
  write("sessionStorage", key, value);
}

/** @param {"localStorage" | "sessionStorage"} storage */
function write(storage, key, value) {
  held.set(key, value);
  try {
    window[storage].setItem(PREFIX + key, JSON.stringify(value));
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
