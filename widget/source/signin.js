/**
 * Sign-in: the buttons above a form, and sign-in by e-mail. Sign-in by provider is in provider.js.
 *
 * Loads when a guest begins to write. The server sends a mail with a link to a page that shows a
 * code, and the reader types the code here. This needs no window and no cookie, and the reader can
 * open the mail in a different browser.
 */

import { button, el, isBusy } from "./dom.js";
import { Proofs } from "./proof.js";
import * as provider from "./provider.js";
import { working } from "./working.js";
import { t } from "./writing.js";
import * as calls from "./writingcalls.js";

let count = 0; // makes element ids unique in their shadow root

/**
 * Add buttons above a form, if there is a way to sign in. Return whether there is one. `entered` is
 * called with {token, expires, name, account}.
 */
export async function offer(form, site, entered) {
  const { mail, providers, url } = await calls.signInOptions(site);
  const box = el("div", { class: "ft-sign-in", role: "group", "aria-label": t("sign-in") });
  if (providers.length > 0) {
    await provider.offer(box, { form, site, url, providers }, { show, field }, entered);
  }
  if (mail)
    box.append(
      button("ft-sign-in-open", t("sign-in-by-mail"), () => ask(box, form, site, entered)),
    );
  if (box.hasChildNodes() && form.isConnected) form.before(box);
  return box.hasChildNodes();
}

function ask(box, form, site, entered) {
  const email = field(t("mail-address"), {
    type: "email",
    autocomplete: "email",
    maxlength: "254",
  });
  const hint = el("p", { class: "ft-hint" }, t("sign-in-hint"));
  show(box, t("send-link"), [email, hint], async () => {
    const address = email.input.value;
    const { key } = await send(site, address);
    type(box, form, { site, key, address }, entered);
  });
}

/** Request the mail. Send a proof of work if the server asks for one, which it does under load. */
async function send(site, address) {
  try {
    return await calls.mailCode(site, address);
  } catch (error) {
    if (error.code !== "proof-required") throw error;
    const proofs = new Proofs(site, null, "sign-in");
    return proofs.send((proof) => calls.mailCode(site, address, proof));
  }
}

function type(box, form, { site, key, address }, entered) {
  const told = el("p", { class: "ft-hint", role: "status" }, t("link-sent", { email: address }));
  const code = field(t("code"), { autocomplete: "one-time-code", maxlength: "40" });
  const name = field(t("display-name"), { autocomplete: "nickname", maxlength: "80", dir: "auto" });
  name.input.value = form.querySelector("input[name=name]")?.value ?? "";
  show(box, t("sign-in"), [told, code, name], async () => {
    const sent = { __proto__: null, key, code: code.input.value, name: name.input.value };
    entered(await calls.signInByCode(site, sent));
  });
}

/** Show fields, a button that calls `act`, and errors below it. Return the button's action. */
function show(box, label, parts, act) {
  const error = el("p", { class: "ft-error", role: "alert" });
  const inputs = parts.flatMap((part) => part.input ?? []);
  const run = async () => {
    if (isBusy(submit)) return;
    error.textContent = "";
    const missing = inputs.find((input) => !input.checkValidity());
    if (missing) {
      error.textContent = t("field-needed");
      missing.focus();
      return;
    }
    const finish = working(submit, t("sending"));
    try {
      await act();
    } catch (problem) {
      error.textContent = problem.message;
    }
    finish();
  };
  const submit = button("ft-submit", label, run);
  for (const input of inputs) {
    input.addEventListener("keydown", (event) => {
      event.stopPropagation();
      if (event.key === "Enter" && !event.isComposing) run();
    });
  }
  const nodes = parts.map((part) => part.element ?? part);
  box.replaceChildren(...nodes, error, el("div", { class: "ft-buttons" }, submit));
  inputs[0].focus();
  return run;
}

function field(label, attributes) {
  const id = `ft-sign-in-${++count}`;
  const input = el("input", { id, class: "ft-input", required: true, ...attributes });
  const named = el("label", { for: id, class: "ft-label" }, label);
  return { input, element: el("div", { class: "ft-field" }, named, input) };
}
