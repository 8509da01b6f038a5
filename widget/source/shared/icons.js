/** Icons: small outlines in the text color, hidden from screen readers. */

const SVG = "http://www.w3.org/2000/svg";
/** SVG paths on a grid of 16 by 16. */
const PATHS = {
  up: "M8 13V3M3.5 7.5 8 3l4.5 4.5",
  down: "M8 3v10M3.5 8.5 8 13l4.5-4.5",
  more: "M3 8h.01M8 8h.01M13 8h.01",
  open: "m4 6 4 4 4-4",
  less: "M4 8h8",
  plus: "M4 8h8M8 4v8",
  pin: "M8 10v4.5M5.5 1.5h5M6.5 1.5v4L4 8.5V10h8V8.5L9.5 5.5v-4",
  bell: "M3.5 11.5h9c-1-1-1.25-2-1.25-4.5a3.25 3.25 0 0 0-6.5 0c0 2.5-.25 3.5-1.25 4.5ZM6.75 13.75a1.4 1.4 0 0 0 2.5 0",
  lock: "M4 7.5h8v6H4ZM5.75 7.5V5.25a2.25 2.25 0 0 1 4.5 0V7.5",
};

/** @type {Record<string, SVGElement>} */
const drawn = Object.create(null);

/**
 * @param {string} name
 * @param {string} [path] for an icon that is not in this module
 * @returns {Node}
 */
export function icon(name, path = PATHS[name]) {
  return (drawn[name] ??= draw(name, path)).cloneNode(true);
}

function draw(name, path) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", `ft-icon ft-icon-${name}`);
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(SVG, "path");
  line.setAttribute("d", path);
  svg.append(line);
  return svg;
}
