/** The question and the calls that erase everything about the reader on this site. */

import { call, part } from "../../shared/api.js";
import { button, el, isBusy } from "../../shared/dom.js";
import * as ownstore from "../base/ownstore.js";
import { showBusy } from "../base/busy.js";
import { t } from "../base/writertexts.js";

export class Erasure {
  #guest;
  #place;
  #done;

  /** `done()` is called when everything is erased. */
  constructor(guest, place, done) {
    this.#guest = guest;
    this.#place = place;
    this.#done = done;
  }

  /** Ask in `panel` before anything is erased. */
  ask(panel) {
    const error = el("p", { class: "ft-error", role: "alert" });
    const close = () => panel.replaceChildren();
    const yes = button("ft-remove-yes", t("erase-yes"), async () => {
      if (isBusy(yes)) return;
      const finish = showBusy(yes, t("deleting"));
      error.textContent = "";
      try {
        await this.#erase();
        close();
        await this.#done();
      } catch (problem) {
        error.textContent = problem.message;
      }
      finish();
    });
    const no = button("ft-remove-no", t("erase-no"), close);
    const attributes = {
      class: "ft-ask ft-erase",
      role: "group",
      "aria-label": t("erase-question"),
    };
    panel.replaceChildren(
      el(
        "div",
        attributes,
        el("p", {}, t("erase-question")),
        el("div", { class: "ft-buttons" }, no, yes),
        error,
      ),
    );
    no.focus();
  }

  /** Erase part by part, as the server does, until everything is erased. */
  async #erase() {
    const { token } = this.#guest;
    const path = `sites/${part(this.#place.site)}/author`;
    for (let isDone = false; !isDone;) {
      isDone = (await call("DELETE", path, { __proto__: null, token })).done;
    }
    ownstore.erase(this.#guest);
  }
}
