/** Markdown for the buttons above the text: where it is inserted and what is selected next (pure). */

/** Formats around a selection, or in front of each of its lines. */
export const FORMATS = {
  __proto__: null,
  bold: { around: "**" },
  italic: { around: "*" },
  link: { around: ["[", "](https://)"] },
  quote: { line: "> " },
  code: { around: "`", block: "```" },
  list: { line: "- " },
};

/**
 * Return which part of `value` to replace, with what, and what to select then.
 *
 * @param {string} name
 * @param {string} value
 * @param {[number, number]} selection
 * @returns {{ start: number, end: number, text: string, select: [number, number] }}
 */
export function formatted(name, value, [from, to]) {
  const { around, line, block } = FORMATS[name];
  const chosen = value.slice(from, to);
  if (line) return inLines(line, value, from, to);
  if (block && chosen.includes("\n")) {
    const text = `${block}\n${chosen}\n${block}`;
    return { start: from, end: to, text, select: [from, from + text.length] };
  }
  const [left, right] = typeof around === "string" ? [around, around] : around;
  const text = `${left}${chosen}${right}`;
  const at = from + left.length;
  // For a link with a text, the address is what remains to be typed.
  const isLink = name === "link" && chosen !== "";
  /** @type {[number, number]} */
  const select = isLink
    ? [at + chosen.length + 2, at + chosen.length + 10]
    : [at, at + chosen.length];
  return { start: from, end: to, text, select };
}

function inLines(mark, value, from, to) {
  const start = value.lastIndexOf("\n", from - 1) + 1;
  const lines = value.slice(start, to).split("\n");
  const text = lines.map((each) => `${mark}${each}`).join("\n");
  const end = start + text.length;
  return { start, end: to, text, select: /** @type {[number, number]} */ ([end, end]) };
}

/** Return a text as a Markdown quote. */
export function quoted(text) {
  const lines = text.trim().split("\n");
  return `${lines.map((line) => `> ${line}`.trimEnd()).join("\n")}\n\n`;
}
