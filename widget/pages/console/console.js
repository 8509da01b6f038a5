/**
 * Keyboard shortcuts and in-place outcomes for the lists of comments in the admin console.
 *
 * All forms work without this script. The script sends a decision to the form's address and gets
 * JSON back. The row shows the outcome, the live region announces it, and both offer to undo it.
 * Decisions are sent sequentially, in the order of the keys, so moderators who type ahead decide
 * about the rows that they saw. A row shows its decision at once; if the request fails, the row
 * comes back and says why. While the page is visible, the script asks from time to time how many
 * comments are pending, and shows a link to new ones. The script never handles comment texts and
 * never writes HTML.
 */

import { t } from "./parts/console-texts.js";
import { load, save } from "../../source/shared/memory.js";

const VERBS = { a: "approve", r: "reject", s: "spam", h: "hide", w: "hold" };
/** @type {HTMLFormElement | null} */
const form = document.querySelector("#decide");
const live = /** @type {HTMLElement} */ (document.querySelector("#live"));
const dialog = /** @type {HTMLDialogElement} */ (document.querySelector("#keys"));
const undoButton = /** @type {HTMLElement} */ (document.querySelector("[data-undo]"));
/** @type {HTMLElement | null} */
const news = document.querySelector("[data-news]");
const isTouch = matchMedia("(pointer: coarse)").matches;
const PAUSE = 20_000; // Milliseconds between two questions about new comments.
const LONGEST_PAUSE = 300_000; // After failures, the pauses grow up to this.
const UNCHANGED = 304;
const FIRST_FAULT = 500;
const undoable = [];
/** @type {HTMLElement | null} */
let current = null;
let queue = Promise.resolve();

/** @returns {HTMLElement[]} */
function rows() {
  return Array.from(document.querySelectorAll(".ft-case"));
}

/** @returns {HTMLElement | null} */
function rowOf(id) {
  return document.querySelector(`#case-${id}`);
}

function box(row) {
  return row.querySelector(".ft-pick input");
}

function say(text) {
  live.textContent = text;
}

function focus(row) {
  if (!row) return;
  current = row;
  row.focus();
  row.scrollIntoView({ block: "nearest" });
}

/** Move the focus by `step` rows, or to the first row if no row has the focus. */
function move(step) {
  const all = rows();
  const place = current ? all.indexOf(current) : -1;
  focus(place < 0 ? all[0] : all[Math.min(all.length - 1, Math.max(0, place + step))]);
}

/** Move the focus from rows that are being decided to the next undecided row. */
function moveOn(decided) {
  const all = rows();
  const place = Math.max(...decided.map((row) => all.indexOf(row)));
  const isOpen = (row) => !("settled" in row.dataset) && !decided.includes(row);
  focus(
    all.slice(place + 1).find(isOpen) ?? all.slice(0, place).reverse().find(isOpen) ?? all[place],
  );
}

function chosenRows() {
  const picked = rows().filter((row) => box(row).checked);
  return picked.length > 0 || !current ? picked : [current];
}

/** Update a row to its new revision, so that the next decision names this revision. */
function update(row, outcome) {
  if (!outcome.revision) return;
  box(row).value = outcome.revision;
  row.querySelector(".ft-status").textContent = outcome.label;
  for (const button of row.querySelectorAll(".ft-acts button")) {
    let verb = button.value.split(":")[0];
    if (verb === "pin" || verb === "unpin") {
      verb = outcome.is_pinned ? "unpin" : "pin";
      button.textContent = outcome.is_pinned ? t("script-unpin") : t("script-pin");
    }
    button.value = `${verb}:${outcome.id}:${outcome.revision}`;
  }
}

function show(row, outcome, verb) {
  const place = row.querySelector(".ft-outcome");
  const takesBack = verb === "restore" || verb === "unpin";
  const settles = outcome.is_done && verb !== "pin" && !takesBack;
  row.toggleAttribute("data-settled", settles);
  box(row).checked = false;
  place.hidden = takesBack && outcome.is_done;
  place.classList.toggle("ft-problem", !outcome.is_done);
  place.replaceChildren(outcome.said);
  if (outcome.undo && !takesBack) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "ft-button";
    button.textContent = t("script-undo");
    button.addEventListener("click", () => {
      forget(outcome.id);
      decide(outcome.undo, [row], { stay: row });
    });
    place.append(button);
  }
}

/** Remove a comment from the undo key's list, because the comment's own button undid its change. */
function forget(id) {
  for (const change of undoable) change.rows = change.rows.filter((row) => row !== rowOf(id));
}

function sayReport(report) {
  const done = report.outcomes.filter((change) => change.is_done).length;
  const count = rows().filter((row) => !("settled" in row.dataset)).length;
  const [only] = report.outcomes;
  const author = only.author || t("script-comment");
  const total = report.outcomes.length;
  const parts = [
    total === 1
      ? t("script-line", { author, outcome: only.said })
      : t("script-several", { done, total }),
    t("script-left", { count }),
  ];
  if (undoable.length > 0 && !isTouch) parts.push(t("script-undo-key"));
  undoButton.hidden = undoable.length === 0;
  say(parts.join(" "));
}

/** Show the number of pending comments, in the navigation and in the tab. */
function count(pending) {
  for (const place of document.querySelectorAll("[data-pending]")) {
    place.textContent = pending.toLocaleString(document.documentElement.lang);
    place.toggleAttribute("hidden", pending === 0);
  }
}

async function send(verb, sent) {
  const fields = /** @type {any} */ (form?.elements);
  const body = new URLSearchParams({ act: verb, form: fields.form.value });
  const reason = fields.reason?.value.trim();
  if (reason) body.set("reason", reason);
  for (const row of sent) body.set(`c.${row.dataset.id}`, box(row).value);
  const response = await fetch(location.href.split("#")[0], {
    method: "POST",
    headers: { Accept: "application/json" },
    body,
  });
  if (!response.ok) throw new Refused(response.status);
  return response.json();
}

class Refused extends Error {
  constructor(status) {
    super(
      status === 403 ? t("script-signed-out") : t("script-refused", { status: String(status) }),
    );
  }
}

/**
 * Decide about rows after all earlier decisions. Move the focus to `stay` if it is given.
 *
 * @param {string} verb
 * @param {HTMLElement[]} decided
 * @param {{ stay?: HTMLElement | null }} [options]
 */
function decide(verb, decided, { stay = null } = {}) {
  if (decided.length === 0) return;
  const settles = verb !== "pin" && verb !== "unpin";
  if (stay) focus(stay);
  else if (settles) moveOn(decided);
  for (const row of decided) {
    row.setAttribute("aria-busy", "true");
    row.toggleAttribute("data-settled", settles && verb !== "restore");
  }
  queue = queue.then(() => sendAndShow(verb, decided));
}

/** Show a row again after a request that failed, with the reason. */
function putBack(row, reason) {
  const place = row.querySelector(".ft-outcome");
  row.removeAttribute("data-settled");
  place.hidden = false;
  place.classList.add("ft-problem");
  place.replaceChildren(reason);
}

async function sendAndShow(verb, decided, { keeps = true } = {}) {
  try {
    const report = await send(verb, decided);
    const back = { verb: "", rows: /** @type {HTMLElement[]} */ ([]) };
    for (const outcome of report.outcomes) {
      const row = /** @type {HTMLElement} */ (rowOf(outcome.id));
      update(row, outcome);
      show(row, outcome, verb);
      if (outcome.undo) back.rows.push(row);
      back.verb ||= outcome.undo;
    }
    if (keeps && back.verb) undoable.push(back);
    count(report.pending);
    sayReport(report);
  } catch (error) {
    const reason = error instanceof Refused ? error.message : t("script-no-answer");
    for (const row of decided) putBack(row, reason);
    say(reason);
  } finally {
    for (const row of decided) row.removeAttribute("aria-busy");
  }
}

/** Undo the last decision, after all earlier requests have been answered. */
function undo() {
  queue = queue.then(async () => {
    let last = undoable.pop();
    while (last && last.rows.length === 0) last = undoable.pop();
    if (!last) {
      say(t("script-none-undone"));
      return;
    }
    focus(last.rows[0]);
    await sendAndShow(last.verb, last.rows, { keeps: false });
  });
}

function pin() {
  const [row] = chosenRows();
  /** @type {HTMLButtonElement | null} */
  const button = row?.querySelector(
    '.ft-acts button[value^="pin:"], .ft-acts button[value^="unpin:"]',
  );
  if (button) decide(button.value.split(":")[0], [row]);
  else say(t("script-not-pinned"));
}

/** @returns {HTMLElement | null | undefined} */
function find(selector, root = /** @type {ParentNode | null} */ (document)) {
  return root?.querySelector(selector);
}

const KEYS = {
  j: () => move(1),
  k: () => move(-1),
  x: () => {
    if (!current) move(1);
    else box(current).checked = !box(current).checked;
    const count = rows().filter((row) => box(row).checked).length;
    if (current) say(t("script-selected", { count }));
  },
  u: undo,
  p: pin,
  o: () => find(".ft-open", current)?.click(),
  n: () => find('a[rel="next"]')?.click(),
  "/": () => find("#q")?.focus(),
  "?": () => dialog.showModal(),
};

function press(event) {
  const isTyping = event.target.closest?.("input, textarea, select, dialog, [contenteditable]");
  const isOther = event.ctrlKey || event.metaKey || event.altKey || event.isComposing;
  if (isTyping || isOther || dialog.open || load("desk-keys") === false) return;
  const verb = VERBS[event.key];
  if (!verb && !(event.key in KEYS)) return;
  event.preventDefault();
  if (!verb) KEYS[event.key]();
  else if (chosenRows().length === 0) {
    move(1);
    if (current) say(t("script-none-selected"));
  } else if (!event.repeat) decide(verb, chosenRows());
}

function submit(event) {
  const value = event.submitter?.value;
  if (event.submitter?.name !== "act") return;
  event.preventDefault();
  const [verb, id] = value.split(":");
  const isMeant = id ? (row) => row.dataset.id === id : (row) => box(row).checked;
  decide(verb, rows().filter(isMeant));
}

/** Return the row that contains the target of an event. */
function caseOf(target) {
  return target.closest(".ft-case");
}

function offerAll() {
  /** @type {HTMLElement | null} */
  const button = document.querySelector("[data-all]");
  if (!button) return;
  button.hidden = false;
  button.addEventListener("click", () => {
    for (const row of rows()) box(row).checked = !("settled" in row.dataset);
  });
}

function offerKeys() {
  const template = /** @type {HTMLTemplateElement} */ (document.querySelector("#keys-button"));
  const button = /** @type {HTMLElement} */ (template.content.firstElementChild?.cloneNode(true));
  button.addEventListener("click", () => dialog.showModal());
  live.parentElement?.before(button);
  const used = /** @type {HTMLInputElement} */ (dialog.querySelector("[data-use-keys]"));
  used.checked = load("desk-keys") !== false;
  used.addEventListener("change", () => save("desk-keys", used.checked));
}

/** Wait for a pause, or until somebody returns to the page, and then until the page is visible. */
async function wait(pause) {
  await new Promise((resolve) => {
    setTimeout(resolve, pause);
    document.addEventListener("visibilitychange", resolve, { once: true });
  });
  if (document.hidden) await wait(LONGEST_PAUSE);
}

/** Keep the number of pending comments up to date, and show a link to new ones. */
async function watch(notice) {
  let [tag, pause] = ["", PAUSE];
  for (;;) {
    await wait(pause);
    const headers = new Headers(tag ? [["If-None-Match", tag]] : []);
    const response = await fetch(notice.dataset.news, { headers }).catch(() => null);
    const isFault = !response || response.status >= FIRST_FAULT;
    pause = isFault ? Math.min(2 * pause, LONGEST_PAUSE) : PAUSE;
    if (response?.ok) {
      tag = response.headers.get("ETag") ?? "";
      const told = await response.json();
      count(told.pending);
      notice.hidden = told.new === 0;
      notice.firstElementChild.textContent = t("script-news", { count: told.new });
    } else if (response && !isFault && response.status !== UNCHANGED) return;
  }
}

if (news) watch(news);
undoButton.addEventListener("click", undo);
if (form) {
  form.addEventListener("submit", submit);
  form.addEventListener("focusin", ({ target }) => {
    current = caseOf(target) ?? current;
  });
  // After a click on a checkbox, focus its row: a focused checkbox would swallow the shortcuts.
  form.addEventListener("click", ({ target, detail }) => {
    if (target instanceof Element && target.matches(".ft-pick input") && detail > 0)
      focus(caseOf(target));
  });
}
document.addEventListener("keydown", press);
// Decisions that are not sent yet would be lost with the page.
addEventListener("beforeunload", (event) => {
  if (document.querySelector(".ft-case[aria-busy]")) event.preventDefault();
});
offerKeys();
offerAll();
