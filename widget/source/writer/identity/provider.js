/**
 * Sign-in through a provider, in a window that sends a code to this page (codewindow.js).
 *
 * Loads when a guest begins to write and the site has providers.
 */

import { ask, isPossible, secrets } from "./codewindow.js";
import { button } from "../../shared/dom.js";
import { field } from "../base/fields.js";
import { language } from "../../shared/words.js";
import { t } from "../base/writertexts.js";
import { signInByProvider } from "../base/calls.js";

/**
 * Add the button to `box`. `place` is {form, site, url, providers}. `onSignIn` is called with
 * {token, expires, name, account}.
 */
export async function offer(box, place, onSignIn) {
  if (!isPossible()) return;
  // Made in advance: browsers block a window that does not open immediately after the click.
  let next = await secrets();
  const format = new Intl.ListFormat(language, { type: "disjunction" });
  const titles = place.providers.map(({ title }) => title);
  const begin = () => {
    const current = next;
    secrets().then((secret) => (next = secret));
    open(box, place, current, onSignIn);
  };
  box.append(
    button("ft-sign-in-open", t("continue-with", { providers: format.format(titles) }), begin),
  );
}

function open(box, { form, site, url }, { verifier, challenge }, onSignIn) {
  const name = field(t("provider-name"), {
    autocomplete: "nickname",
    maxlength: "80",
    dir: "auto",
    required: false,
  });
  name.input.value = form.querySelector("input[name=name]")?.value ?? "";
  ask(box, new URL(url), challenge, {
    submit: t("sign-in"),
    blocked: t("window-blocked"),
    link: t("open-window"),
    more: [name],
    use: async (code) => {
      const sent = { __proto__: null, verifier, code, name: name.input.value };
      onSignIn(await signInByProvider(site, sent));
    },
  });
}
