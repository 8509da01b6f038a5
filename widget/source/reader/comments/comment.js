/**
 * One comment as a list item: its author, time and text, and the actions that its reader may take.
 *
 * The item keeps its element when the comment changes. A form or a question opens in the `slot`
 * below the text. Nesting is shown only by indentation and lines: all items are in one flat list,
 * in the server's order.
 */

import { avatar } from "./avatar.js";
import { button, el, webUrl } from "../../shared/dom.js";
import { icon } from "../../shared/icons.js";
import { menuButton } from "../../shared/menubutton.js";
import * as times from "../../shared/times.js";
import { parts, t } from "../../shared/words.js";

export class Comment {
  #thread;
  /** @type {HTMLButtonElement | null} */
  #toggle = null;
  /** @type {HTMLElement | null} */
  #onwardButton = null;
  /** @type {HTMLElement | null} */
  #more = null;
  /** @type {CommentData} */
  data;
  /** @type {import("../../writer/forms/composer.js").Composer | null} */
  composer = null;
  /** @type {HTMLElement | null} */
  body = null;
  /** @type {HTMLElement | null} */
  replyButton = null;
  /** Whether the comment is shown near the form instead of at its place in the thread. */
  isAside = false;
  /** Whether the comment is shown because its reader moderates. */
  isHeld = false;

  /**
   * @param {CommentData} data
   * @param {import("../thread.js").Thread} thread
   */
  constructor(data, thread) {
    this.#thread = thread;
    this.data = data;
    this.gutter = el("div", { class: "ft-gutter", "aria-hidden": "true" });
    this.main = el("div", { class: "ft-item" });
    this.slot = el("div", { class: "ft-slot" });
    this.element = el(
      "li",
      { class: "ft-comment", tabindex: "-1", "data-id": data.id },
      this.gutter,
      this.main,
    );
    this.show(data);
  }

  get id() {
    return this.data.id;
  }

  get level() {
    return this.data.level;
  }

  get isRemoved() {
    return this.data.status === "removed";
  }

  /** Whether the comment awaits approval. Only its author receives a pending comment. */
  get isPending() {
    return this.data.status === "pending";
  }

  get isBeingEdited() {
    return this.element.classList.contains("ft-editing");
  }

  get isCollapsed() {
    return this.element.classList.contains("ft-collapsed");
  }

  get name() {
    return this.data.author?.name || t("anonymous");
  }

  /**
   * Redraw the comment from `data`. An open form or menu stays open.
   *
   * @param {CommentData} data
   */
  show(data) {
    this.data = data;
    const used = /** @type {HTMLElement | null} */ (this.main.querySelector(":focus"));
    this.indent(data.level);
    this.element.setAttribute("aria-level", String(data.level + 1));
    this.element.classList.toggle("ft-removed", this.isRemoved);
    this.element.classList.toggle("ft-is-pending", this.isPending);
    if (this.isRemoved) this.#showTombstone();
    else if (this.#thread.isMuted(this)) this.#showMuted();
    else this.#showContent();
    used?.focus({ preventScroll: true }); // moved forms and menus lose the focus
    this.countReplies();
  }

  indent(level) {
    this.element.style.setProperty("--level", String(level));
  }

  /** Hide or show the text and the actions; the list hides the replies. */
  collapse(isCollapsed) {
    this.element.classList.toggle("ft-collapsed", isCollapsed);
    this.countReplies();
  }

  /** Show how many replies a collapsed comment has, and which button hides them. */
  countReplies() {
    if (!this.#toggle) return;
    const { replies } = this.data;
    this.element.classList.toggle("ft-parent", replies > 0);
    this.#toggle.hidden = replies === 0 && !this.isCollapsed;
    this.#toggle.setAttribute("aria-expanded", String(!this.isCollapsed));
    const hidden = this.isCollapsed && replies > 0 ? t("hidden-replies", { count: replies }) : "";
    const label = this.isCollapsed
      ? t("expand-thread", { name: this.name })
      : t("collapse-thread", { name: this.name });
    this.#toggle.setAttribute("aria-label", `${hidden} ${label}`);
    this.#toggle.replaceChildren(icon(this.isCollapsed ? "plus" : "less"), hidden);
  }

  close() {
    this.slot.replaceChildren();
    this.element.classList.remove("ft-editing");
  }

  /** Close the slot and return the focus to the button that opened it. */
  leave() {
    this.close();
    (this.replyButton ?? this.element).focus();
  }

  /** Show a button that leads on to the replies, or none. */
  offer(onward) {
    this.#onwardButton?.remove();
    this.#onwardButton = onward || null;
    if (this.#onwardButton) this.slot.before(this.#onwardButton);
  }

  #showTombstone() {
    this.close();
    this.#toggle = this.replyButton = this.body = null;
    this.element.setAttribute("aria-label", t("removed"));
    this.main.replaceChildren(el("p", { class: "ft-tombstone" }, t("removed")), this.slot);
  }

  #showMuted() {
    this.close();
    this.#toggle = this.replyButton = this.body = null;
    const text = t("muted", { name: this.name });
    this.element.setAttribute("aria-label", text);
    const show = button("ft-unmute", t("unmute"), () => this.#send("unmute"));
    this.main.replaceChildren(el("p", { class: "ft-tombstone" }, text, " ", show), this.slot);
  }

  #showContent() {
    const to = this.data.reply_to ?? this.data.parent;
    const toName = to === null ? null : this.#thread.nameOf(to);
    this.element.setAttribute(
      "aria-label",
      to === null
        ? t("comment-by", { name: this.name })
        : t("reply-by", { name: this.name, to: toName ?? t("another-comment") }),
    );
    this.body = el("div", { class: "ft-body ft-prose", dir: "auto" });
    this.body.append(this.#thread.prose(this.data.html));
    this.#toggle = button("ft-toggle", "", () => this.#send("toggle"));
    this.replyButton = this.#thread.mayReply
      ? button("ft-reply", t("reply"), () => this.#send("reply"), {
          "aria-label": t("reply-to", { name: this.name }),
        })
      : null;
    this.main.replaceChildren(
      avatar(this.name),
      this.#head(toName),
      el("div", { class: "ft-content" }, this.body, this.#actionRow(), this.slot),
    );
  }

  #actionRow() {
    const label = t("more-actions", { name: this.name });
    this.#more ??= menuButton("ft-more-actions", [icon("more")], label, this.#thread, (writer) =>
      this.#thread.actionsOf(writer).items(this),
    );
    if (this.isPending) return el("div", { class: "ft-actions" }, this.#more);
    return el(
      "div",
      { class: "ft-actions" },
      ...this.#thread.votesOf(this),
      this.replyButton,
      button("ft-share", t("share"), () => this.#send("share"), {
        "aria-label": t("share-link", { name: this.name }),
      }),
      this.#more,
    );
  }

  #head(toName) {
    const { author, id, created, edited, edited_by: by, pinned } = this.data;
    const website = webUrl(author?.website);
    const name = el("bdi", {}, this.name);
    return el(
      "header",
      { class: "ft-head" },
      website
        ? el("a", { class: "ft-author", href: website, rel: "nofollow ugc noopener" }, name)
        : el("span", { class: "ft-author" }, name),
      kindMark(author),
      pinned ? el("span", { class: "ft-badge ft-pinned" }, icon("pin"), t("pinned")) : null,
      this.#repliedTo(toName),
      el("a", { class: "ft-time", href: addressOf(id) }, times.time(created)),
      edited ? el("span", { class: "ft-edited" }, by ? t("edited-by-staff") : t("edited")) : null,
      this.#thread.isNew(this) ? el("span", { class: "ft-badge ft-new" }, t("new")) : null,
      this.isPending ? el("span", { class: "ft-badge ft-pending" }, t("waiting")) : null,
      this.#toggle,
    );
  }

  /** @param {"reply" | "share" | "toggle" | "unmute"} name */
  #send(name) {
    this.#thread.events.send(name, this);
  }

  /** Name the author being replied to at the deepest level, where the nesting does not show it. */
  #repliedTo(toName) {
    const { parent, reply_to: to } = this.data;
    if (!to || to === parent) return null;
    const onclick = (event) => {
      event.preventDefault();
      this.#thread.events.send("goTo", to);
    };
    const name = el("bdi", {}, toName ?? t("another-comment"));
    return el(
      "span",
      { class: "ft-answered" },
      ...parts("in-reply-to", { name: el("a", { href: addressOf(to), onclick }, name) }),
    );
  }
}

/** Mark signed-in authors and moderators, because anyone can choose any name. */
export function kindMark(author) {
  const kind = author?.kind;
  if (kind !== "member" && kind !== "staff") return null;
  return el("span", { class: `ft-badge ft-kind`, "data-kind": kind }, t(`kind-${kind}`));
}

/** Return a comment's permalink on this page, which a <base> element does not affect. */
export function addressOf(id) {
  return `${location.href.split("#")[0]}#comment-${id}`;
}
