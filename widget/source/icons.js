/** Icons: small outlines in the text color, hidden from screen readers. */

const SVG = "http://www.w3.org/2000/svg";
/** Paths on a grid of 16 by 16. */
const PATHS = {
  up: "M8 13V3M3.5 7.5 8 3l4.5 4.5",
  down: "M8 3v10M3.5 8.5 8 13l4.5-4.5",
  more: "M3 8h.01M8 8h.01M13 8h.01",
  open: "m4 6 4 4 4-4",
  less: "M4 8h8",
  plus: "M4 8h8M8 4v8",
  pin: "M8 10v4.5M5.5 1.5h5M6.5 1.5v4L4 8.5V10h8V8.5L9.5 5.5v-4",
  bell: "M3.5 11.5h9c-1-1-1.25-2-1.25-4.5a3.25 3.25 0 0 0-6.5 0c0 2.5-.25 3.5-1.25 4.5ZM6.75 13.75a1.4 1.4 0 0 0 2.5 0",
  bold: "M5 3h3.75a2.4 2.4 0 0 1 0 4.8H5ZM5 7.8h4.3a2.6 2.6 0 0 1 0 5.2H5Z",
  italic: "M7 3h4M5 13h4M9 3 7 13",
  link: "M6.5 9.5 9.5 6.5M7.5 4.5l1-1a2.8 2.8 0 0 1 4 4l-1 1M8.5 11.5l-1 1a2.8 2.8 0 0 1-4-4l1-1",
  quote: "M3 4v8M6.5 4.5H13M6.5 8H13M6.5 11.5H11",
  code: "m5 5-3 3 3 3M11 5l3 3-3 3",
  list: "M3 4.5h.01M3 8h.01M3 11.5h.01M6 4.5h7M6 8h7M6 11.5h7",
  lock: "M4 7.5h8v6H4ZM5.75 7.5V5.25a2.25 2.25 0 0 1 4.5 0V7.5",
};

/**
 * @param {keyof typeof PATHS} name
 * @returns {SVGElement}
 */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("class", `ft-icon ft-icon-${String(name)}`);
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}
