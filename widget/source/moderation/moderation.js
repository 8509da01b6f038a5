/**
 * A moderator's session in the thread: "Moderate here", the bar with the moderator's name and the
 * end of the session, and the return to the readers' view.
 *
 * A window of the service asks the moderator for consent and sends a code (codewindow.js). During
 * the session, the forms post as the moderator, and `Decisions` shows the held comments. If the
 * server refuses the token, or the token expires, the bar says so and the readers' view returns.
 */

import { part } from "../shared/api.js";
import * as clock from "../shared/clock.js";
import * as codes from "../writer/identity/codewindow.js";
import { Decisions } from "./decisions.js";
import { button, el } from "../shared/dom.js";
import { styleAdder } from "../writer/base/styles.js";
import css from "./moderating.css";
import * as moderator from "./moderator.js";
import { language, t as widgetText } from "../shared/words.js";
import { t } from "../writer/base/writertexts.js";

/** @typedef {import("../reader/comments/comment.js").Comment} Comment */

/** Error codes that end a session although its token may be valid. */
const ENDS = ["moderation-off", "origin-not-allowed"];

const addStyles = styleAdder(css);

export class Moderation {
  #guest;
  #place;
  #thread;
  #decisions;
  /** @type {Moderator | null} */
  #session = null;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #expiry;
  #bar = el("div", { class: "ft-moderating", role: "group", tabindex: "-1" });
  #panel = el("div", { class: "ft-sign-in" });

  /**
   * @param {import("../reader/guest.js").Guest} guest
   * @param {Place} place
   * @param {import("../reader/thread.js").Thread} thread
   */
  constructor(guest, place, thread) {
    this.#guest = guest;
    this.#place = place;
    this.#thread = thread;
    this.#decisions = new Decisions(guest, place, thread, {
      token: () => this.#session?.token ?? "",
      refused: (error) => this.#endIfRefused(error),
      changed: () => this.#showState(),
    });
    this.#bar.setAttribute("aria-label", t("moderation"));
  }

  get isOn() {
    return this.#session !== null;
  }

  /** Continue the session that this tab keeps, if there is one. */
  async resume() {
    const session = moderator.storedSession(this.#place.site);
    if (session && !this.isOn) await this.#start(session);
  }

  /**
   * Begin a session: open the service's window, and ask for its code in `box`.
   *
   * @param {HTMLElement} box
   */
  async begin(box) {
    const { site } = this.#place;
    await this.resume();
    if (this.isOn) {
      this.#bar.focus();
      return;
    }
    if (!codes.isPossible()) {
      this.#thread.events.send("say", t("moderate-https"), { isVisible: true });
      return;
    }
    const { verifier, challenge } = await codes.secrets();
    const opener = this.#focusedElement;
    addStyles(this.#root);
    const address = new URL(`../moderate/sites/${part(site)}`, import.meta.url);
    box.append(this.#panel);
    codes.ask(this.#panel, address, challenge, {
      submit: widgetText("moderate-here"),
      blocked: t("moderate-blocked"),
      link: t("moderate-open"),
      use: async (code) => {
        const session = await moderator.begin(site, verifier, code);
        this.#panel.remove();
        const loaded = this.#start(session);
        this.#bar.focus(); // now, because the moderator may open a menu while the comments load
        await loaded;
      },
      cancel: () => {
        this.#panel.remove();
        opener?.focus();
      },
    });
  }

  /** End the session, here and on the server, and return to the readers' view. */
  async stop() {
    const token = this.#session?.token;
    this.#leave();
    this.#bar.remove();
    this.#thread.header.title.focus();
    this.#thread.events.send("say", t("moderation-stopped"), { isVisible: true });
    // If this fails, the session on the server expires later.
    await moderator.end(this.#place.site, token).catch(() => {});
  }

  /**
   * Return the moderator's menu items for a comment.
   *
   * @param {Comment} comment
   */
  choices(comment) {
    return this.isOn ? this.#decisions.choices(comment) : [];
  }

  /** Show the held comments at their places, after any change of the list. */
  place() {
    if (this.isOn) this.#decisions.place();
  }

  get #root() {
    return /** @type {HTMLElement} */ (this.#thread.pages.listing.element.parentElement);
  }

  get #focusedElement() {
    const { activeElement } = /** @type {ShadowRoot} */ (this.#root.getRootNode());
    return /** @type {HTMLElement | null} */ (activeElement);
  }

  /** @param {Moderator} session */
  async #start(session) {
    addStyles(this.#root);
    const timeLeft = Date.parse(session.expires) - clock.now();
    this.#thread.pages.listing.aside.before(this.#bar);
    if (timeLeft <= 0) {
      this.#end(t("moderation-expired"));
      return;
    }
    this.#session = session;
    moderator.storeSession(this.#place.site, session);
    this.#guest.staff = {
      name: session.name,
      post: (values, key) => moderator.post(this.#place, values, { key, token: session.token }),
      refused: (error) => this.#endIfRefused(error),
    };
    this.#expiry = setTimeout(() => this.#end(t("moderation-expired")), timeLeft);
    this.#reform();
    this.#showState();
    await this.#load();
  }

  async #load() {
    try {
      await this.#decisions.load();
    } catch (error) {
      if (!this.#endIfRefused(error)) this.#showState(error.message);
    }
  }

  /** Show in the bar who moderates until when and how many comments are held, or show a problem. */
  #showState(problem = "") {
    if (this.#session === null) return;
    const { name, expires } = this.#session;
    const format = new Intl.DateTimeFormat(language, { timeStyle: "short" });
    const { count, hasMore } = this.#decisions;
    const held = problem
      ? [
          el("span", { role: "alert" }, problem),
          button("ft-again", widgetText("again"), () => this.#load()),
        ]
      : count > 0
        ? [button("ft-next-held", t("held", { count }), () => this.#decisions.goOn())]
        : [t("held-none")];
    this.#bar.replaceChildren(
      el("span", {}, t("moderating-as", { name, time: format.format(Date.parse(expires)) })),
      el("span", { class: "ft-held-count" }, ...held),
      ...(hasMore ? [el("span", { class: "ft-hint" }, t("held-more"))] : []),
      button("ft-stop", t("moderate-stop"), () => this.stop()),
    );
  }

  /** If the server refuses the session, end it and return true. */
  #endIfRefused({ status, code, message }) {
    if (status !== 401 && !ENDS.includes(code)) return false;
    if (this.isOn) this.#end(status === 401 ? t("moderation-refused") : message);
    return true;
  }

  /** Return to the readers' view, say why, and offer to begin again. */
  #end(why) {
    this.#leave();
    const again = button("ft-moderate", widgetText("moderate-here"), () => this.begin(this.#bar));
    this.#bar.replaceChildren(el("p", { role: "alert" }, why), again);
  }

  #leave() {
    clearTimeout(this.#expiry);
    moderator.dropSession(this.#place.site);
    this.#session = this.#guest.staff = null;
    this.#decisions.clear();
    this.#reform();
  }

  /** Switch the forms and menus between moderator and reader. Keep all drafts. */
  #reform() {
    const isTyping = this.#focusedElement?.matches(".ft-top *") ?? false;
    const { events, pages } = this.#thread;
    for (const comment of pages.listing) {
      if (!comment.composer?.element.isConnected) continue;
      comment.close();
      events.send("shown", comment); // opens the form again if it has a draft
    }
    events.send("reform", { refocus: isTyping });
    events.send("redraw");
  }
}
