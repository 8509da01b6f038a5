/**
 * Signing in: what is offered above a form, and by mail: an address, a link, and the code that the
 * link's page shows.
 *
 * Loaded when a guest begins to write. For mail no window is opened and no cookie is needed: the
 * code is read in whichever browser the mail is, and typed here. Providers are another file's.
 */

import * as api from "./api.js";
import { button, el, isBusy, setBusy } from "./dom.js";

const words = {
  offer: "Sign in by mail",
  email: "Mail address",
  hint: "Not shown to anyone. You get a link that shows a code.",
  send: "Send the link",
  sent: (email) => `Open the link in our mail to ${email}, and type the code it shows.`,
  code: "Code",
  name: "Name that others see",
  enter: "Sign in",
  needed: "Please fill this in.",
};
let count = 0; // ids need to be unique in their shadow root

/** Put what the server offers above a form. `entered` is told {token, expires, name, account}. */
export async function offer(form, site, entered) {
  const { mail, providers, url } = await api.entry(site).catch(() => ({ providers: [] }));
  const box = el("div", { class: "ft-sign-in", role: "group", "aria-label": words.enter });
  if (providers.length > 0) {
    const provider = await import("./provider.js").catch(() => null);
    await provider?.offer(box, { form, site, url, providers }, { show, field }, entered);
  }
  if (mail) box.append(button("ft-sign-in-open", words.offer, () => ask(box, form, site, entered)));
  if (box.hasChildNodes() && form.isConnected) form.before(box);
}

function ask(box, form, site, entered) {
  const email = field(words.email, { type: "email", autocomplete: "email", maxlength: "254" });
  const hint = el("p", { class: "ft-hint" }, words.hint);
  show(box, words.send, [email, hint], async () => {
    const address = email.input.value;
    const { key } = await send(site, address);
    type(box, form, { site, key, address }, entered);
  });
}

/** Ask for the mail, with a proof of work where the server wants one: it does in a rush only. */
async function send(site, address) {
  try {
    return await api.askToEnter(site, address);
  } catch (error) {
    if (error.code !== "proof-required") throw error;
    const { Proofs } = await import("./proof.js");
    const proofs = new Proofs(site, null, "sign-in");
    return proofs.send((proof) => api.askToEnter(site, address, proof));
  }
}

function type(box, form, { site, key, address }, entered) {
  const told = el("p", { class: "ft-hint", role: "status" }, words.sent(address));
  const code = field(words.code, { autocomplete: "one-time-code", maxlength: "40" });
  const name = field(words.name, { autocomplete: "nickname", maxlength: "80", dir: "auto" });
  name.input.value = form.querySelector("input[name=name]")?.value ?? "";
  show(box, words.enter, [told, code, name], async () => {
    const sent = { __proto__: null, key, code: code.input.value, name: name.input.value };
    entered(await api.enterByCode(site, sent));
  });
}

/** Fields and a button that does something with them, as `run` does. What went wrong stands below. */
function show(box, label, parts, act) {
  const error = el("p", { class: "ft-error", role: "alert" });
  const inputs = parts.flatMap((part) => part.input ?? []);
  const run = async () => {
    if (isBusy(submit)) return;
    error.textContent = "";
    const missing = inputs.find((input) => !input.checkValidity());
    if (missing) {
      error.textContent = words.needed;
      missing.focus();
      return;
    }
    setBusy(submit, true);
    try {
      await act();
    } catch (problem) {
      error.textContent = problem.message;
    }
    setBusy(submit, false);
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
