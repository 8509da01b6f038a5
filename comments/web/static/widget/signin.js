/**
 * Signing in: what is offered above a form, and by mail: an address, a link, and the code that the
 * link's page shows.
 *
 * Loaded when a guest begins to write. For mail no window is opened and no cookie is needed: the
 * code is read in whichever browser the mail is, and typed here. Providers are another file's.
 */

import { button, el, isBusy, setBusy } from "./dom.js";
import { t } from "./writing.js";
import * as calls from "./writingcalls.js";

let count = 0; // ids need to be unique in their shadow root

/** Put what the server offers above a form. `entered` is told {token, expires, name, account}. */
export async function offer(form, site, entered) {
  const { mail, providers, url } = await calls.signInOptions(site).catch(() => ({ providers: [] }));
  const box = el("div", { class: "ft-sign-in", role: "group", "aria-label": t("sign-in") });
  if (providers.length > 0) {
    const provider = await import("./provider.js").catch(() => null);
    await provider?.offer(box, { form, site, url, providers }, { show, field }, entered);
  }
  if (mail)
    box.append(
      button("ft-sign-in-open", t("sign-in-by-mail"), () => ask(box, form, site, entered)),
    );
  if (box.hasChildNodes() && form.isConnected) form.before(box);
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

/** Ask for the mail, with a proof of work where the server wants one: it does in a rush only. */
async function send(site, address) {
  try {
    return await calls.mailCode(site, address);
  } catch (error) {
    if (error.code !== "proof-required") throw error;
    const { Proofs } = await import("./proof.js");
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

/** Fields and a button that does something with them, as `run` does. What went wrong stands below. */
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
