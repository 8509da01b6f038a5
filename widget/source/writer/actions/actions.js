/** A reader's actions: on a comment, and in the menu at the top of the thread. */

import { Changes } from "./changes.js";
import { tellClaims } from "./claims.js";
import { addressOf } from "../../reader/comments/comment.js";
import { el } from "../../shared/dom.js";
import { duration } from "../base/durations.js";
import { Erasure } from "./erasure.js";
import { offerEntrance } from "../identity/optionalparts.js";
import * as ownstore from "../base/ownstore.js";
import * as memory from "../../shared/memory.js";
import { mute, unmute } from "./muting.js";
import { Report } from "./report.js";
import { t as widgetText } from "../../shared/words.js";
import { loadLater, t } from "../base/writertexts.js";

/** @typedef {import("../../reader/comments/comment.js").Comment} Comment */
/** @typedef {import("../base/menu.js").Item} Item */

export class Actions {
  #guest;
  /** @type {import("../../moderation/moderation.js").Moderation | null} */
  #moderation = null;
  #mutes;
  #place;
  #thread;
  #events;
  #changes;

  /**
   * @param {import("../../reader/guest.js").Guest} guest
   * @param {import("../../reader/visits.js").Mutes} mutes
   * @param {Place} place
   * @param {import("../../reader/thread.js").Thread} thread
   */
  constructor(guest, mutes, place, thread) {
    this.#guest = guest;
    this.#mutes = mutes;
    this.#place = place;
    this.#thread = thread;
    this.#events = thread.events;
    this.#changes = new Changes(guest, place, thread);
  }

  /**
   * Begin to moderate, or without a `box` for the question, continue the session of this tab.
   *
   * @param {HTMLElement | null} box
   */
  async moderate(box) {
    try {
      const { Moderation } = await loadLater("moderating");
      this.#moderation ??= new Moderation(this.#guest, this.#place, this.#thread);
    } catch {
      this.#events.send("say", widgetText("unreachable"), { isVisible: true });
    }
    await (box ? this.#moderation?.begin(box) : this.#moderation?.resume());
  }

  /** After any change of the list, show a moderator's held comments in it. */
  arrange() {
    this.#moderation?.place();
  }

  /**
   * Return the items of a comment's menu.
   *
   * @param {Comment} comment
   * @returns {Item[]}
   */
  items(comment) {
    const folding = {
      label: comment.isCollapsed ? t("expand") : t("collapse"),
      act: () => this.#events.send("toggle", comment),
    };
    const moderating = this.#moderation?.choices(comment) ?? [];
    if (this.#guest.own(comment.id) === null) {
      return [
        ...moderating,
        folding,
        { label: t("mute", { name: comment.name }), act: () => this.mute(comment, true) },
        ...(this.#moderation?.isOn
          ? []
          : [{ label: t("report"), act: () => this.#report(comment) }]),
      ];
    }
    const timeLeft = ownstore.editableFor(this.#guest, comment.id);
    const edit = {
      label:
        timeLeft === Infinity
          ? t("edit")
          : t("edit-for", { time: duration(timeLeft / 1000, "short") }),
      act: () => this.#changes.open(comment),
    };
    const remove = {
      label: t("delete"),
      class: "ft-danger",
      act: () => this.#changes.ask(comment),
    };
    return [...moderating, ...(timeLeft > 0 ? [edit] : []), remove, folding];
  }

  /**
   * Return the items of the reader's own menu.
   *
   * @returns {Item[]}
   */
  readerItems() {
    const guest = this.#guest;
    const unmuteAll = () => {
      memory.drop(this.#mutes.key);
      this.#events.send("redraw");
    };
    return [
      !!this.#moderation?.isOn && {
        label: t("moderate-stop"),
        act: () => this.#moderation?.stop(),
      },
      guest.name === null && {
        label: widgetText("change-name"),
        act: () => this.#events.send("rename"),
      },
      guest.name === null &&
        this.#thread.options.sign_in && {
          label: widgetText("sign-in"),
          act: () => this.signIn(),
        },
      this.#mutes.all.length > 0 && { label: t("unmute-all"), act: unmuteAll },
      guest.token !== null && { label: t("erase-me"), act: () => this.#erase() },
      guest.maySignOut && { label: t("sign-out"), act: () => this.#events.send("signOut") },
    ].filter((item) => item !== false);
  }

  /** Show the ways to sign in, below the header. */
  async signIn() {
    const { panel } = this.#thread.header;
    const anchor = el("div", {});
    panel.replaceChildren(anchor);
    await offerEntrance(anchor, this.#place.site, (member) => {
      panel.replaceChildren();
      this.#events.send("entered", member);
    });
    // The form may have shown them already.
    const shown = /** @type {ShadowRoot} */ (panel.getRootNode());
    /** @type {HTMLElement | null} */ (shown.querySelector(".ft-sign-in button"))?.focus();
  }

  /** Tell a reader who has signed in which imported comments belong to the account now. */
  tellClaims(member) {
    tellClaims(this.#thread.header.panel, this.#guest, this.#place.site, member, (changed) => {
      this.#events.send("entered", changed);
      this.#events.send("say", t("claims-ended"), { isVisible: true });
    });
    this.#events.send("say", t("claimed", { count: member.claimed }));
  }

  /** Hide or show all comments by the author of a comment, in this browser. */
  mute(comment, isMuted) {
    if (isMuted) mute(this.#mutes, comment.data.author);
    else unmute(this.#mutes, comment.data.author);
    this.#events.send("redraw");
    comment.element.focus();
  }

  /** Share a comment's permalink: with the phone's share dialog, or by copying it. */
  async share(comment) {
    const url = addressOf(comment.id);
    const isPhone = matchMedia("(pointer: coarse)").matches;
    try {
      if (isPhone && navigator.share) await navigator.share({ url, title: document.title });
      else {
        await navigator.clipboard.writeText(url);
        this.#events.send("say", t("link-copied"), { isVisible: true });
      }
    } catch (error) {
      if (error.name === "AbortError") return; // the reader closed the dialog
      // Pages on plain http and some policies forbid the clipboard; the address bar still works.
      history.replaceState(history.state, "", url);
      this.#events.send("say", t("link-in-address"), { isVisible: true });
    }
  }

  #report(comment) {
    const report = new Report(this.#guest, this.#place.site);
    report.ask(comment, (text) => this.#events.send("say", text));
  }

  #erase() {
    const onErased = async () => {
      this.#events.send("say", t("erased"));
      await this.#thread.pages.reload();
      this.#events.send("reform", { refocus: false });
    };
    new Erasure(this.#guest, this.#place, onErased).ask(this.#thread.header.panel);
  }
}
