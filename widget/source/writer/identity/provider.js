/**
 * Sign-in through a provider, in a window that sends a code to this page (codewindow.js).
 *
 * Loads when a guest begins to write and the site has providers.
 */

import { ask, isPossible, secrets } from "./codewindow.js";
import { button } from "../../shared/dom.js";
import { field } from "../base/fields.js";
import { language } from "../../shared/words.js";
import { t } from "../base/writing.js";
import { signInByProvider } from "../base/writingcalls.js";

/**
 * Add the button to `box`. `place` is {form, site, url, providers}. `entered` is called with
 * {token, expires, name, account}.
 */
export async function offer(box, place, entered) {
  if (!isPossible()) return;
  // Made in advance: browsers block a window that does not open immediately after the click.
  let next = await secrets();
  const either = new Intl.ListFormat(language, { type: "disjunction" });
  const titles = place.providers.map(({ title }) => title);
  const begin = () => {
    const mine = next;
    secrets().then((made) => (next = made));
    open(box, place, mine, entered);
  };
  box.append(
    button("ft-sign-in-open", t("continue-with", { providers: either.format(titles) }), begin),
  );
}

function open(box, { form, site, url }, { verifier, challenge }, entered) {
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
      entered(await signInByProvider(site, sent));
    },
  });
}
