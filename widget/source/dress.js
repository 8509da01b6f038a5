import css from "./writer.css";

const sheet = new CSSStyleSheet();
sheet.replaceSync(css);

/** Add the styles for forms and questions to the root of an element. */
export function dress(element) {
  const root = element.getRootNode();
  if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets.push(sheet);
}
