/**
 * One comment as a list item: its author, time and text, and the actions that its reader may take.
 *
 * The item keeps its element when the comment changes. A form or a question opens in the `slot`
 * below the text. Nesting is shown only by indentation: all items are in one flat list, in the
 * server's order.
 */

import { button, el, webUrl } from "./dom.js";
import * as prose from "./prose.js";
import * as times from "./times.js";
import { parts, t } from "./words.js";

const KINDS = ["guest", "member", "staff"];

/**
 * @typedef {{
 *   nameOf: (id: string) => string | null,
 *   isOwn: (id: string) => boolean,
 *   votes: (comment: Comment) => HTMLElement[],
 * }} Context
 */

export class Comment {
  #actions;
  /** @type {CommentData} */
  data;
  /** @type {import("./composer.js").Composer | null} */
  composer = null;

  /**
   * The functions in `actions` are called with this comment, except goTo, which is called with an
   * id. `context` has data about other comments and the reader; its votes(comment) returns the
   * elements that show a comment's votes.
   *
   * @param {CommentData} data
   * @param {Record<"reply" | "change" | "remove", (comment: Comment) => unknown>
   *   & { goTo: (id: string) => unknown }} actions
   * @param {Context} context
   */
  constructor(data, actions, context) {
    this.#actions = actions;
    this.data = data;
    this.element = el("li", { class: "ft-comment", tabindex: "-1", "data-id": data.id });
    this.slot = el("div", { class: "ft-slot" });
    this.show(data, context);
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

  get name() {
    return this.data.author?.name || t("anonymous");
  }

  /**
   * Redraw the comment from `data`. An open form stays open.
   *
   * @param {CommentData} data
   * @param {Context} context
   */
  show(data, context) {
    this.data = data;
    this.element.style.setProperty("--level", String(data.level));
    this.element.setAttribute("aria-level", String(data.level + 1));
    this.element.classList.toggle("ft-removed", this.isRemoved);
    if (this.isRemoved) this.#showTombstone();
    else this.#showContent(context);
  }

  close() {
    this.slot.replaceChildren();
    this.element.classList.remove("ft-editing");
  }

  /** Close the slot and return the focus to the button that opened it. */
  leave() {
    this.close();
    this.replyButton?.focus();
  }

  #showTombstone() {
    this.close();
    this.element.setAttribute("aria-label", t("removed"));
    this.element.replaceChildren(el("p", { class: "ft-tombstone" }, t("removed")), this.slot);
  }

  #showContent(context) {
    const to = this.data.reply_to ?? this.data.parent;
    const toName = to === null ? null : context.nameOf(to);
    this.element.setAttribute(
      "aria-label",
      to === null
        ? t("comment-by", { name: this.name })
        : t("reply-by", { name: this.name, to: toName ?? t("another-comment") }),
    );
    const body = el("div", { class: "ft-body ft-prose", dir: "auto" });
    body.append(prose.nodes(this.data.html));
    this.replyButton = button("ft-reply", t("reply"), () => this.#actions.reply(this), {
      "aria-label": t("reply-to", { name: this.name }),
    });
    this.element.replaceChildren(
      this.#head(toName),
      body,
      el(
        "div",
        { class: "ft-actions" },
        ...(this.isPending ? [] : [...context.votes(this), this.replyButton]),
        ...this.#ownButtons(context),
      ),
      this.slot,
    );
  }

  #head(toName) {
    const { author, id, created, edited } = this.data;
    const website = webUrl(author?.website);
    const name = el("bdi", {}, this.name);
    return el(
      "header",
      { class: "ft-head" },
      website
        ? el("a", { class: "ft-author", href: website, rel: "nofollow ugc noopener" }, name)
        : el("span", { class: "ft-author" }, name),
      kind(author),
      this.#answered(toName),
      el("a", { class: "ft-time", href: addressOf(id) }, times.time(created)),
      edited ? el("span", { class: "ft-edited" }, t("edited")) : null,
      this.isPending ? el("span", { class: "ft-pending" }, t("pending")) : null,
    );
  }

  /** Name the author being replied to at the deepest level, where the nesting does not show it. */
  #answered(toName) {
    const { parent, reply_to: to } = this.data;
    if (!to || to === parent) return null;
    const onclick = (event) => {
      event.preventDefault();
      this.#actions.goTo(to);
    };
    const name = el("bdi", {}, toName ?? t("another-comment"));
    return el(
      "span",
      { class: "ft-answered" },
      ...parts("in-reply-to", { name: el("a", { href: addressOf(to), onclick }, name) }),
    );
  }

  #ownButtons(context) {
    if (!context.isOwn(this.id)) return [];
    return [
      button("ft-edit", t("edit"), () => this.#actions.change(this)),
      button("ft-remove", t("delete"), () => this.#actions.remove(this)),
    ];
  }
}

/** Show the kind of author, because anyone can choose any name. */
function kind(author) {
  const kind = author?.kind;
  if (!KINDS.includes(kind)) return null;
  return el("span", { class: "ft-kind", "data-kind": kind }, t(`kind-${kind}`));
}

/** Return a comment's permalink on this page, which a <base> element does not affect. */
function addressOf(id) {
  return `${location.href.split("#")[0]}#comment-${id}`;
}
