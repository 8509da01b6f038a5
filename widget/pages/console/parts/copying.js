/** Buttons that copy the text of an element. */

import { live, t } from "./console-texts.js";

const SHOWN = 3000; // Milliseconds for which a button says that it has copied.

/** Offer to copy the text of the element that a button names. */
function offer(button) {
  if (!navigator.clipboard) return; // Only secure pages and loopback addresses have one.
  button.hidden = false;
  button.addEventListener("click", async () => {
    const named = document.getElementById(button.dataset.copies);
    await navigator.clipboard.writeText(named?.textContent ?? "");
    const label = button.textContent;
    if (label === t("script-copied")) return;
    button.textContent = live.textContent = t("script-copied");
    setTimeout(() => {
      button.textContent = label;
      live.textContent = "";
    }, SHOWN);
  });
}

export function offerCopies() {
  for (const button of document.querySelectorAll("[data-copies]")) offer(button);
}
