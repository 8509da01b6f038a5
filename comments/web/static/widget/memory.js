/**
 * What this browser remembers between visits: small values under "flatthread:" in localStorage.
 *
 * Storage may be forbidden, full or edited by hand. Then values last as long as the page, and
 * whatever does not parse is as good as absent. The embedding page can read all of it.
 */

const PREFIX = "flatthread:";
const held = new Map();

// A page may have taught all objects another form of JSON; what is kept again must be what it was.
function bare(_, value) {
  const isPlain = value !== null && typeof value === "object" && !Array.isArray(value);
  return isPlain ? Object.setPrototypeOf(value, null) : value;
}

/** The value kept under `key`, or null. */
export function load(key) {
  try {
    const text = localStorage.getItem(PREFIX + key);
    if (text !== null) return JSON.parse(text, bare);
  } catch {
    // Forbidden or damaged: what this page holds is all there is.
  }
  return held.get(key) ?? null;
}

export function save(key, value) {
  held.set(key, value);
  try {
    localStorage.setItem(PREFIX + key, JSON.stringify(value));
  } catch {
    // Forbidden or full: `held` has it until the page goes.
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
