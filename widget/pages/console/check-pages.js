/**
 * Update the check of a new site's pages while the page is open, and copy the lines for pages.
 *
 * The script asks for the state with a conditional request, while the page is visible and for ten
 * minutes at most. It reloads this page when a page of the site was seen, so that the next step is
 * offered, and when a page was opened at another address, so that this address can be added.
 */

import { offerCopies } from "./parts/copying.js";
import { load, save } from "../../source/shared/memory.js";

const PAUSE = 3000; // milliseconds
const MOST = 200; // requests
const UNCHANGED = 304;
const check = /** @type {HTMLElement} */ (document.querySelector("[data-state]"));

const pause = () => new Promise((resolve) => setTimeout(resolve, PAUSE));

/** Tell whether a reload would disturb somebody who uses the page. */
function isUsed() {
  const page = /** @type {HTMLInputElement} */ (document.querySelector("#page"));
  return document.activeElement === page || page.value !== page.defaultValue;
}

/** Ask until a page of the site was seen. */
async function watch() {
  let tag = "";
  for (let asked = 0; asked < MOST && check.dataset.state !== "seen"; asked += 1) {
    await pause();
    while (document.hidden) await pause();
    const headers = new Headers(tag ? [["If-None-Match", tag]] : []);
    const answer = await fetch(check.dataset.url ?? "", { headers }).catch(() => null);
    if (!answer || answer.status === UNCHANGED) continue;
    if (!answer.ok) return;
    tag = answer.headers.get("ETag") ?? "";
    const { name, said, wrong } = await answer.json();
    if (check.textContent !== said) check.textContent = said;
    check.dataset.state = name;
    const isNew = name === "seen" || wrong.join(" ") !== check.dataset.wrong;
    if (isNew && !isUsed()) location.reload();
  }
}

/** Keep the chosen system, because the page is loaded again after each check. */
function keepSystem() {
  /** @type {NodeListOf<HTMLInputElement>} */
  const systems = document.querySelectorAll("[name=system]");
  const known = load("desk-system");
  for (const system of systems) {
    if (system.value === known) system.checked = true;
    system.addEventListener("change", () => save("desk-system", system.value));
  }
}

keepSystem();
offerCopies();
watch();
