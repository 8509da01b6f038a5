/** Buttons that say what they are doing while the server works. Loads with the modules for writing. */

import { setBusy } from "./dom.js";

/**
 * Make a button busy and show `text` in it. Return a function that ends this.
 *
 * @param {HTMLElement} control
 * @param {string} text
 */
export function working(control, text) {
  const label = control.textContent;
  setBusy(control, true);
  control.textContent = text;
  return () => {
    setBusy(control, false);
    control.textContent = label;
  };
}
