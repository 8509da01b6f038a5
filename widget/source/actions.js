/** A reader's actions: on a comment, and in the menu at the top of the thread. */

import { Changes } from "./changes.js";
import { addressOf } from "./comment.js";
import { Erasure } from "./erasure.js";
import * as keeping from "./keeping.js";
import { Report } from "./report.js";
import * as times from "./times.js";
import { t as widgetText } from "./words.js";
import { loadLater, t } from "./writing.js";

/** @typedef {import("./comment.js").Comment} Comment */
/** @typedef {import("./menu.js").Item} Item */

/**
 * @typedef {{
 *   toggle: (comment: Comment) => void,
 *   redraw: () => void,
 *   rename: () => void,
 *   signIn: () => Promise<void>,
 *   signOut: () => void,
 *   mayEnter: () => boolean,
 *   erased: () => Promise<void>,
 *   panel: () => HTMLElement,
 *   say: (text: string, options?: { isVisible: boolean }) => void,
 *   changed: (comment: Comment, data: object) => void,
 *   saved: (comment: Comment) => void,
 *   removed: (comment: Comment, bury: typeof import("./own.js").bury) => void,
 *   pages: import("./pages.js").Pages,
 *   options: () => SiteOptions,
 *   reform: (refocus: boolean) => void,
 * }} Owner The thread.
 */

export class Actions {
  #guest;
  /** @type {import("./moderating.js").Moderation | null} */
  #moderation = null;
  #mutes;
  #place;
  #thread;
  #changes;

  /**
   * The thread's toggle(comment) hides or shows replies, redraw() shows all comments again,
   * reform(refocus) makes the form at the top again, and say(text, {isVisible}) announces a result. When a comment's data changes,
   * this class calls changed(comment, data), and afterwards saved(comment) or
   * removed(comment, bury).
   *
   * @param {import("./guest.js").Guest} guest
   * @param {import("./visits.js").Mutes} mutes
   * @param {Place} place
   * @param {Owner} thread
   */
  constructor(guest, mutes, place, thread) {
    this.#guest = guest;
    this.#mutes = mutes;
    this.#place = place;
    this.#thread = thread;
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
      this.#thread.say(widgetText("unreachable"), { isVisible: true });
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
      act: () => this.#thread.toggle(comment),
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
    const left = keeping.editableFor(this.#guest, comment.id);
    const edit = {
      label: left === Infinity ? t("edit") : t("edit-for", { time: times.left(left) }),
      act: () => this.#changes.open(comment),
    };
    const remove = {
      label: t("delete"),
      class: "ft-danger",
      act: () => this.#changes.ask(comment),
    };
    return [...moderating, ...(left > 0 ? [edit] : []), remove, folding];
  }

  /**
   * Return the items of the reader's own menu.
   *
   * @returns {Item[]}
   */
  readerItems() {
    const guest = this.#guest;
    const unmute = () => {
      this.#mutes.clear();
      this.#thread.redraw();
    };
    const moderating = this.#moderation?.isOn
      ? { label: t("moderate-stop"), act: () => this.#moderation?.stop() }
      : this.#thread.options().moderation && {
          label: widgetText("moderate-here"),
          act: () => this.moderate(this.#thread.panel()),
        };
    return [
      moderating,
      guest.name === null && { label: widgetText("change-name"), act: this.#thread.rename },
      guest.name === null &&
        this.#thread.mayEnter() && { label: widgetText("sign-in"), act: this.#thread.signIn },
      this.#mutes.size > 0 && { label: t("unmute-all"), act: unmute },
      guest.token !== null && { label: t("erase-me"), act: () => this.#erase() },
      guest.maySignOut && { label: t("sign-out"), act: this.#thread.signOut },
    ].filter((item) => item !== false);
  }

  /** Hide or show all comments by the author of a comment, in this browser. */
  mute(comment, isMuted) {
    if (isMuted) this.#mutes.add(comment.data.author);
    else this.#mutes.remove(comment.data.author);
    this.#thread.redraw();
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
        this.#thread.say(t("link-copied"), { isVisible: true });
      }
    } catch (error) {
      if (error.name === "AbortError") return; // the reader closed the dialog
      // Pages on plain http and some policies forbid the clipboard; the address bar still works.
      history.replaceState(history.state, "", url);
      this.#thread.say(t("link-in-address"), { isVisible: true });
    }
  }

  #report(comment) {
    const report = new Report(this.#guest, this.#place.site);
    report.ask(comment, (text) => this.#thread.say(text));
  }

  #erase() {
    new Erasure(this.#guest, this.#place, this.#thread.erased).ask(this.#thread.panel());
  }
}
