/** Buttons that open a menu. The code of menus loads when the pointer reaches a button. */

import { el } from "./dom.js";
import * as lazy from "./lazy.js";

/**
 * Return a box with the button, in which the menu opens. `thread.writer()` loads the writer bundle;
 * `items(writer)` is called whenever the menu opens.
 *
 * @param {string} className of the button
 * @param {(Node | string)[]} content of the button
 * @param {string | null} label of the button, if its content does not say enough
 * @param {{ writer: () => Promise<import("./lazy.js").Writer | null> }} thread
 * @param {(writer: import("./lazy.js").Writer) => import("../writer/base/menu.js").Item[]} items
 */
export function menuButton(className, content, label, thread, items) {
  const toggle = async (at) => {
    const writer = await thread.writer();
    writer?.toggleMenu(box, opener, items(writer), at);
  };
  const opener = el(
    "button",
    {
      type: "button",
      class: className,
      "aria-haspopup": "menu",
      "aria-expanded": "false",
      "aria-label": label,
      onclick: () => toggle(0),
      onpointerenter: () => lazy.writer().catch(() => {}),
      onkeydown: (event) => {
        if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
        event.preventDefault();
        toggle(event.key === "ArrowDown" ? 0 : -1);
      },
    },
    ...content,
  );
  const box = el("div", { class: "ft-menu-box" }, opener);
  return box;
}
