/** Pinned comments: cards above the list that link to the comments' places in the thread. */

import { avatar } from "./avatar.js";
import { addressOf, kindMark } from "./comment.js";
import { button, el } from "../../shared/dom.js";
import { icon } from "../../shared/icons.js";
import * as times from "../../shared/times.js";
import { t } from "../../shared/words.js";

/**
 * @param {CommentData} data
 * @param {DocumentFragment} text the comment's text
 * @param {() => unknown} go shows the comment at its place
 */
export function card(data, text, go) {
  const name = data.author?.name || t("anonymous");
  const body = el("div", { class: "ft-body ft-prose", dir: "auto" });
  body.append(text);
  return el(
    "article",
    { class: "ft-pin", "aria-label": t("pinned-by", { name }) },
    el("p", { class: "ft-pin-mark" }, icon("pin"), t("pinned")),
    avatar(name),
    el(
      "header",
      { class: "ft-head" },
      el("span", { class: "ft-author" }, el("bdi", {}, name)),
      kindMark(data.author),
      el("a", { class: "ft-time", href: addressOf(data.id) }, times.time(data.created)),
    ),
    body,
    button("ft-go", t("view-in-thread"), go),
  );
}
