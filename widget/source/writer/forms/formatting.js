/** Markdown for the toolbar: what to insert where, and what to select then. Pure functions. */

/** Formats around a selection, or in front of each of its lines, and the paths of their icons. */
export const FORMATS = {
  __proto__: null,
  bold: { around: "**", path: "M5 3h3.75a2.4 2.4 0 0 1 0 4.8H5ZM5 7.8h4.3a2.6 2.6 0 0 1 0 5.2H5Z" },
  italic: { around: "*", path: "M7 3h4M5 13h4M9 3 7 13" },
  link: {
    around: ["[", "](https://)"],
    path: "M6.5 9.5 9.5 6.5M7.5 4.5l1-1a2.8 2.8 0 0 1 4 4l-1 1M8.5 11.5l-1 1a2.8 2.8 0 0 1-4-4l1-1",
  },
  quote: { line: "> ", path: "M3 4v8M6.5 4.5H13M6.5 8H13M6.5 11.5H11" },
  code: { around: "`", block: "```", path: "m5 5-3 3 3 3M11 5l3 3-3 3" },
  list: { line: "- ", path: "M3 4.5h.01M3 8h.01M3 11.5h.01M6 4.5h7M6 8h7M6 11.5h7" },
};

/**
 * Return which part of `value` to replace, with what, and what to select then.
 *
 * @param {string} name
 * @param {string} value
 * @param {[number, number]} selection
 * @returns {{ start: number, end: number, text: string, select: [number, number] }}
 */
export function formattedText(name, value, [from, to]) {
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
  // If the link has a text, select the address, which remains to be typed.
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
  const text = lines.map((line) => `${mark}${line}`).join("\n");
  const end = start + text.length;
  return { start, end: to, text, select: /** @type {[number, number]} */ ([end, end]) };
}

/** Return text as a Markdown quote. */
export function quotation(text) {
  const lines = text.trim().split("\n");
  return `${lines.map((line) => `> ${line}`.trimEnd()).join("\n")}\n\n`;
}
