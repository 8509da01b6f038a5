/**
 * Keys and outcomes in place, for the lists of comments that moderators decide about.
 *
 * Every form works without this. A decision goes to the address the form goes to and comes back as
 * JSON; the row says what became of it, the live region says it aloud, and both offer to undo it.
 * Decisions are sent one after the other, in the order of the keys, so who types ahead decides about
 * the rows he saw. No text of a comment passes through here, and nothing is written as HTML.
 */

import { load, save } from "./memory.js";

const VERBS = { a: "approve", r: "reject", s: "spam", h: "hide", w: "hold" };
/** @type {HTMLFormElement | null} */
const form = document.querySelector("#decide");
const live = /** @type {HTMLElement} */ (document.querySelector("#live"));
const dialog = /** @type {HTMLDialogElement} */ (document.querySelector("#keys"));
const undoable = [];
/** @type {HTMLElement | null} */
let current = null;
let line = Promise.resolve();

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

/** Go to the row `step` further, or to the first one. */
function move(step) {
  const all = rows();
  const place = current ? all.indexOf(current) : -1;
  focus(place < 0 ? all[0] : all[Math.min(all.length - 1, Math.max(0, place + step))]);
}

/** Leave rows that are being decided for the next one that is not. */
function leave(decided) {
  const all = rows();
  const place = Math.max(...decided.map((row) => all.indexOf(row)));
  const open = (row) => !("settled" in row.dataset) && !decided.includes(row);
  focus(all.slice(place + 1).find(open) ?? all.slice(0, place).reverse().find(open) ?? all[place]);
}

function chosen() {
  const picked = rows().filter((row) => box(row).checked);
  return picked.length > 0 || !current ? picked : [current];
}

/** Note what a row is by now, so that what is done next is done to that. */
function update(row, outcome) {
  if (!outcome.revision) return;
  box(row).value = outcome.revision;
  row.querySelector(".ft-status").textContent =
    outcome.status + (outcome.is_pinned ? ", pinned" : "");
  for (const button of row.querySelectorAll(".ft-acts button")) {
    let verb = button.value.split(":")[0];
    if (verb === "pin" || verb === "unpin") {
      verb = outcome.is_pinned ? "unpin" : "pin";
      button.textContent = outcome.is_pinned ? "Unpin" : "Pin";
    }
    button.value = `${verb}:${outcome.id}:${outcome.revision}`;
  }
}

function show(row, outcome, verb) {
  const place = row.querySelector(".ft-outcome");
  const takesBack = verb === "restore" || verb === "unpin";
  const settles = outcome.is_done && verb !== "pin" && !takesBack;
  row.toggleAttribute("data-settled", settles);
  row.querySelector(".ft-acts").hidden = settles;
  box(row).checked = false;
  place.hidden = takesBack && outcome.is_done;
  place.classList.toggle("ft-problem", !outcome.is_done);
  place.replaceChildren(settles ? `Now ${outcome.said}.` : `${outcome.said}.`);
  if (outcome.undo && !takesBack) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "ft-button";
    button.textContent = "Undo";
    button.addEventListener("click", () => {
      forget(outcome.id);
      decide(outcome.undo, [row], { stay: row });
    });
    place.append(button);
  }
}

/** What was taken back by its own button is not taken back again by the key. */
function forget(id) {
  for (const each of undoable) each.rows = each.rows.filter((row) => row !== rowOf(id));
}

function tell(report) {
  const done = report.outcomes.filter((each) => each.is_done);
  const left = rows().filter((row) => !("settled" in row.dataset)).length;
  const [only] = report.outcomes;
  const words =
    report.outcomes.length === 1
      ? `${only.author || "A comment"}: ${only.said}`
      : `${done.length} done, ${report.outcomes.length - done.length} not`;
  say(`${words}. ${left} left on this page.${undoable.length > 0 ? " u undoes it." : ""}`);
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
      status === 403
        ? "You are signed out, or this page is too old: reload it."
        : `Nothing was done (${status}). Reload the page and try again.`,
    );
  }
}

/**
 * Do something to rows when all before it is done. `stay` is where the focus goes.
 *
 * @param {string} verb
 * @param {HTMLElement[]} decided
 * @param {{ stay?: HTMLElement | null }} [options]
 */
function decide(verb, decided, { stay = null } = {}) {
  if (decided.length === 0) {
    say("Nothing is selected.");
    return;
  }
  const settles = verb !== "pin" && verb !== "unpin";
  if (stay) focus(stay);
  else if (settles) leave(decided);
  for (const row of decided) row.setAttribute("aria-busy", "true");
  line = line.then(() => act(verb, decided));
}

async function act(verb, decided, { keeps = true } = {}) {
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
    tell(report);
  } catch (error) {
    say(
      error instanceof Refused
        ? error.message
        : "There was no answer. It may have been done; doing it again is safe.",
    );
  } finally {
    for (const row of decided) row.removeAttribute("aria-busy");
  }
}

/** Take back what was done last, when all that was asked for is done. */
function undo() {
  line = line.then(async () => {
    let last = undoable.pop();
    while (last && last.rows.length === 0) last = undoable.pop();
    if (!last) {
      say("There is nothing to undo.");
      return;
    }
    focus(last.rows[0]);
    await act(last.verb, last.rows, { keeps: false });
  });
}

function pin() {
  const [row] = chosen();
  /** @type {HTMLButtonElement | null} */
  const button = row?.querySelector(
    '.ft-acts button[value^="pin:"], .ft-acts button[value^="unpin:"]',
  );
  if (button) decide(button.value.split(":")[0], [row]);
  else say("Only what readers see can be pinned.");
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
    if (current) say(`${rows().filter((row) => box(row).checked).length} selected.`);
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
  else if (!event.repeat) decide(verb, chosen());
}

function submit(event) {
  const value = event.submitter?.value;
  if (event.submitter?.name !== "act") return;
  event.preventDefault();
  const [verb, id] = value.split(":");
  const isMeant = id ? (row) => row.dataset.id === id : (row) => box(row).checked;
  decide(verb, rows().filter(isMeant));
}

/** The row that an event happened in. */
function caseOf(target) {
  return target.closest(".ft-case");
}

function offerKeys() {
  const template = /** @type {HTMLTemplateElement} */ (document.querySelector("#keys-button"));
  const button = /** @type {HTMLElement} */ (template.content.firstElementChild?.cloneNode(true));
  button.addEventListener("click", () => dialog.showModal());
  live.before(button);
  const used = /** @type {HTMLInputElement} */ (dialog.querySelector("[data-use-keys]"));
  used.checked = load("desk-keys") !== false;
  used.addEventListener("change", () => save("desk-keys", used.checked));
}

if (form) {
  form.addEventListener("submit", submit);
  form.addEventListener("focusin", ({ target }) => {
    current = caseOf(target) ?? current;
  });
  // Whoever selects with a pointer goes on with keys: the box would keep them.
  form.addEventListener("click", ({ target, detail }) => {
    if (target instanceof Element && target.matches(".ft-pick input") && detail > 0)
      focus(caseOf(target));
  });
}
document.addEventListener("keydown", press);
offerKeys();
