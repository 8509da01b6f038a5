/**
 * Sign-in: the buttons above a form, and sign-in by e-mail. Sign-in by provider is in provider.js.
 *
 * Loads when a guest begins to write. The server sends a mail with a link to a page that shows a
 * code, and the reader types the code here. This needs no window and no cookie, and the reader can
 * open the mail in a different browser.
 */

import { button, el } from "../../shared/dom.js";
import { field, show } from "../base/fields.js";
import { Proofs } from "./proof.js";
import * as provider from "./provider.js";
import { showBusy } from "../base/busy.js";
import { t } from "../base/writertexts.js";
import * as calls from "../base/calls.js";

/**
 * Add buttons above a form, if there is a way to sign in. Return whether there is one. `onSignIn` is
 * called with {token, expires, name, account}. The thread has the buttons only once.
 */
export async function offer(form, site, onSignIn) {
  if (hasButtons(form.getRootNode())) return true;
  const { mail, providers, url } = await calls.signInOptions(site);
  const box = el("div", { class: "ft-sign-in", role: "group", "aria-label": t("sign-in") });
  if (providers.length > 0) {
    await provider.offer(box, { form, site, url, providers }, onSignIn);
  }
  if (mail)
    box.append(
      button("ft-sign-in-open", t("sign-in-by-mail"), () =>
        askForAddress(box, form, site, onSignIn),
      ),
    );
  const root = form.getRootNode();
  if (box.hasChildNodes() && form.isConnected && !hasButtons(root)) form.before(box);
  return box.hasChildNodes();
}

/** Tell whether a thread already shows the buttons. */
function hasButtons(root) {
  return root.querySelector(".ft-sign-in") !== null;
}

function askForAddress(box, form, site, onSignIn) {
  const email = field(t("mail-address"), {
    type: "email",
    autocomplete: "email",
    maxlength: "254",
  });
  const hint = el("p", { class: "ft-hint" }, t("sign-in-hint"));
  show(box, t("send-link"), [email, hint], async () => {
    const address = email.input.value;
    const { key } = await requestMail(site, address);
    askForCode(box, form, { site, key, address }, onSignIn);
  });
}

/** Request the mail. Send a proof of work if the server asks for one, which it does under load. */
async function requestMail(site, address) {
  try {
    return await calls.requestMailCode(site, address);
  } catch (error) {
    if (error.code !== "proof-required") throw error;
    const proofs = new Proofs(site, null, "sign-in");
    return proofs.send((proof) => calls.requestMailCode(site, address, proof));
  }
}

function askForCode(box, form, { site, key, address }, onSignIn) {
  const hint = el("p", { class: "ft-hint", role: "status" }, t("link-sent", { email: address }));
  const code = field(t("code"), { autocomplete: "one-time-code", maxlength: "40" });
  const name = field(t("display-name"), { autocomplete: "nickname", maxlength: "80", dir: "auto" });
  name.input.value = form.querySelector("input[name=name]")?.value ?? "";
  show(box, t("sign-in"), [hint, code, name], async () => {
    const sent = { __proto__: null, key, code: code.input.value, name: name.input.value };
    onSignIn(await calls.signInByCode(site, sent));
  });
}
