/** Buttons that show progress while the server works. Part of the writer bundle. */

import { setBusy } from "../../shared/dom.js";

/**
 * Make a button busy and show `text` in it. Return a function that ends this.
 *
 * @param {HTMLElement} control
 * @param {string} text
 */
export function showBusy(control, text) {
  const label = control.textContent;
  setBusy(control, true);
  control.textContent = text;
  return () => {
    setBusy(control, false);
    control.textContent = label;
  };
}
