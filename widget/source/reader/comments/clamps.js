/**
 * Long bodies are shortened until the reader asks for the rest, or reaches something in it.
 *
 * A body is measured when it comes near the window, because measuring all of them would make the
 * browser lay out all comments. Until then, the style sheet limits its height to what a shortened
 * body takes together with its button, so nothing moves when the button appears.
 */

import { button } from "../../shared/dom.js";
import { t } from "../../shared/words.js";

const NEAR = "50%"; // of the window's height
const SPARED = 80; // pixels: no button reveals less

export class Clamps {
  #observer = new IntersectionObserver((entries) => this.#measure(entries), { rootMargin: NEAR });

  /** @param {AbortSignal} signal ends the observation */
  constructor(signal) {
    signal.addEventListener("abort", () => this.#observer.disconnect());
  }

  /** Shorten the long bodies of these comments, each when it comes near the window. */
  watch(comments) {
    for (const { body } of comments) {
      if (body && !("measured" in body.dataset)) this.#observer.observe(body);
    }
  }

  #measure(entries) {
    const near = entries.filter((entry) => entry.isIntersecting).map(({ target }) => target);
    const long = near.filter((body) => body.scrollHeight > body.clientHeight + SPARED);
    for (const body of near) {
      this.#observer.unobserve(body);
      body.dataset.measured = "";
    }
    long.forEach(clamp);
  }
}

function clamp(body) {
  const comment = body.closest("li");
  body.classList.add("ft-clamped");
  const show = () => {
    body.classList.remove("ft-clamped");
    more.remove();
  };
  const label = `${t("show-more")}: ${comment.ariaLabel}`;
  const more = button(
    "ft-show-more",
    t("show-more"),
    () => {
      show();
      comment.focus();
    },
    { "aria-expanded": "false", "aria-label": label },
  );
  const onReach = (event) => {
    show();
    event.target.scrollIntoView({ block: "nearest" });
  };
  body.addEventListener("focusin", onReach, { once: true });
  body.after(more);
}
