/**
 * Upload a file to import, and show how far its check, its import and an undo are.
 *
 * The file is sent in parts that fit into a request body. A part whose request fails is sent again
 * a few times. The script never reads the file's text.
 */

import { t } from "./parts/console-texts.js";

const TRIES = 4;
const PAUSE = 1000; // Milliseconds between two tries, and between two questions about the progress.
const UNDO_PAUSE = 5 * PAUSE;
const CONFLICT = 409; // The upload was replaced, or a file is being imported.
const form = /** @type {HTMLFormElement | null} */ (document.querySelector("#send"));
const upload = /** @type {HTMLElement | null} */ (document.querySelector("#upload"));
const live = /** @type {HTMLElement} */ (document.querySelector("#live"));

const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

class Refused extends Error {
  constructor(status) {
    const isReplaced = status === CONFLICT;
    const otherwise = () => t("script-upload-failed", { status: String(status) });
    super(isReplaced ? t("script-upload-replaced") : otherwise());
  }
}

/** Send a request; try again if the server does not answer or is overloaded. */
async function ask(url, options) {
  for (let tries = 1; ; tries += 1) {
    try {
      const response = await fetch(url, options);
      if (response.ok) return await response.json();
      if (response.status < 500 || tries === TRIES) throw new Refused(response.status);
    } catch (error) {
      if (error instanceof Refused) throw error;
      if (tries === TRIES) throw new Error(t("script-upload-no-answer"));
    }
    await pause(PAUSE * tries);
  }
}

/** @param {HTMLFormElement} form */
function watch(form) {
  const file = /** @type {HTMLInputElement} */ (form.querySelector("[type=file]"));
  const button = /** @type {HTMLButtonElement} */ (form.querySelector("button"));
  const bar = /** @type {HTMLProgressElement} */ (form.querySelector("progress"));
  const sentence = /** @type {HTMLElement} */ (form.querySelector("#sent"));
  const token = /** @type {HTMLInputElement} */ (form.querySelector("[name=form]")).value;
  const calls = form.dataset.calls;

  function say(text, isProblem = false) {
    sentence.textContent = text;
    sentence.hidden = false;
    sentence.classList.toggle("ft-problem", isProblem);
    if (isProblem) live.textContent = text;
  }

  const post = (call, fields) =>
    ask(`${calls}/${call}`, {
      method: "POST",
      body: new URLSearchParams({ ...fields, form: token }),
    });

  async function send(chosen) {
    say(t("script-upload-sending", { percent: 0 }));
    const begun = await post("upload", { name: chosen.name, size: String(chosen.size) });
    for (let sent = 0, number = 0; sent < chosen.size; number += 1) {
      const part = chosen.slice(sent, sent + begun.part);
      await ask(`${calls}/part?upload=${begun.upload}&number=${number}`, {
        method: "POST",
        headers: { "Content-Type": "application/octet-stream", "X-Form-Token": token },
        body: part,
      });
      sent += part.size;
      bar.value = (100 * sent) / chosen.size;
      say(t("script-upload-sending", { percent: Math.floor(bar.value) }));
    }
    say(t("script-upload-checking"));
    await post("finish", { upload: begun.upload });
    location.reload();
  }

  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const [chosen] = file.files ?? [];
    if (!chosen) return say(t("script-upload-choose"), true);
    if (chosen.size === 0) return say(t("script-upload-empty"), true);
    if (chosen.size > Number(form.dataset.most)) return say(t("script-upload-large"), true);
    button.disabled = true;
    bar.hidden = false;
    bar.value = 0;
    try {
      await send(chosen);
    } catch (error) {
      say(error.message, true);
      bar.hidden = true;
      button.disabled = false;
      // The browser took the focus from the disabled button.
      if (document.activeElement === document.body) button.focus();
    }
  });
}

/** Show the progress, and reload the page when the state of the upload changes. */
async function follow(upload) {
  const bar = /** @type {HTMLProgressElement} */ (upload.querySelector("progress"));
  const sentence = upload.querySelector("[data-said]");
  for (;;) {
    await pause(PAUSE);
    let status;
    try {
      status = await ask(upload.dataset.status, {});
    } catch (error) {
      live.textContent = error.message;
      continue;
    }
    if (status.state !== upload.dataset.state) break;
    if (sentence && status.total > 0) {
      bar.value = status.seen;
      const done = t("script-upload-progress", { seen: status.seen, total: status.total });
      sentence.textContent = status.left ? `${done}, ${status.left}` : done;
    }
  }
  location.reload();
}

/** Reload the page while an undo runs, unless this would disturb somebody who uses the page. */
async function followUndo() {
  for (;;) {
    await pause(UNDO_PAUSE);
    const inputs = [...document.querySelectorAll("input")];
    const isUsed = document.activeElement !== document.body;
    if (!isUsed && inputs.every((input) => input.value === input.defaultValue)) location.reload();
  }
}

if (form) watch(form);
if (upload) follow(upload);
if (document.querySelector("[data-undoing]")) followUndo();
