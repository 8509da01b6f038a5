/** Styles of code that loads later. */

import css from "./writer.css";

/**
 * Return a function that adds styles to the root of an element.
 *
 * @param {string} css
 * @returns {(element: HTMLElement) => void}
 */
export function styleAdder(css) {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  return (element) => {
    const root = /** @type {ShadowRoot} */ (element.getRootNode());
    if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets.push(sheet);
  };
}

/** Add the styles for forms and questions to the root of an element. */
export const addStyles = styleAdder(css);
