/** The top of a thread: its title, the sort menu, and the menu of the reader. */

import { avatar } from "./comments/avatar.js";
import { button, el } from "../shared/dom.js";
import { icon } from "../shared/icons.js";
import { menuButton } from "../shared/menubutton.js";
import { t } from "../shared/words.js";

/** The orders that readers can choose; the API has more. */
export const ORDERS = ["best", "recent", "thread"];

export class Header {
  #thread;
  #order = "thread";
  #sortBox = el("div", { class: "ft-tool" });
  #readerBox = el("div", { class: "ft-tool" });
  #followBox = el("div", { class: "ft-tool" });
  #waiting = el("span", { class: "ft-waiting" });
  title = el("h2", { class: "ft-title", tabindex: "-1" });
  /** Forms that belong to the header open here. */
  panel = el("div", { class: "ft-panel" });

  /** @param {import("./thread.js").Thread} thread */
  constructor(thread) {
    this.#thread = thread;
    this.element = el(
      "header",
      { class: "ft-header" },
      el("div", { class: "ft-heading" }, this.title, this.#waiting),
      el("div", { class: "ft-tools" }, this.#sortBox, this.#followBox, this.#readerBox),
      this.panel,
    );
    thread.events.listen({ counted: (total, waiting) => this.#count(total, waiting) });
  }

  /** Show the number of comments, and of the reader's own comments that await approval. */
  #count(total, waiting) {
    this.title.textContent = t("title", { count: total });
    this.#waiting.textContent = waiting > 0 ? t("own-waiting", { count: waiting }) : "";
    this.#sortBox.hidden = total < 2;
    this.#followBox.hidden = total < 1; // the server does not know an empty thread
  }

  /** Offer the orders; `order` is the current one. */
  offerOrders(order) {
    if (order === this.#order && this.#sortBox.hasChildNodes()) return; // it may have the focus
    this.#order = order;
    const name = ORDERS.includes(order) ? t(`order-${order}`) : "";
    const content = [el("span", { class: "ft-order" }, name), icon("open")];
    const label = t("sorted-by", { order: name });
    this.#sortBox.replaceChildren(
      menuButton("ft-sort", content, label, this.#thread, () =>
        ORDERS.map((choice) => ({
          label: t(`order-${choice}`),
          checked: choice === this.#order,
          act: () => this.#thread.events.send("sort", choice),
        })),
      ),
    );
  }

  /** Offer to follow the thread, if the service sends mail. */
  offerMail(isOffered) {
    this.#followBox.replaceChildren(...(isOffered ? [this.#followButton()] : []));
  }

  #followButton() {
    const label = el("span", { class: "ft-follow-label" }, t("follow"));
    const follow = button("ft-follow", icon("bell"), () => this.#thread.events.send("follow"));
    follow.append(label);
    return follow;
  }

  /**
   * Show the menu of a reader with this name. A reader without a name gets a button to sign in if
   * `mayEnter` is true.
   */
  welcome(name, mayEnter) {
    if (!name) {
      const enter = button("ft-enter", t("sign-in"), () => this.#thread.events.send("signIn"));
      this.#readerBox.replaceChildren(...(mayEnter ? [enter] : []));
      return;
    }
    const content = [
      avatar(name),
      el("bdi", { class: "ft-reader-name", "aria-hidden": "true" }, name),
      el("span", { class: "ft-hidden" }, t("reader-menu", { name })),
      icon("open"),
    ];
    this.#readerBox.replaceChildren(
      menuButton("ft-reader", content, null, this.#thread, (writer) =>
        this.#thread.actionsOf(writer).readerItems(),
      ),
    );
  }
}
