/**
 * A thread in its element: it connects the comments, the reader and their actions.
 *
 * `Pages` loads comments, and `Forms` opens the forms for new comments.
 */

import * as api from "../shared/api.js";
import * as clock from "../shared/clock.js";
import { Clamps } from "./comments/clamps.js";
import { Comment } from "./comments/comment.js";
import { button, el } from "../shared/dom.js";
import { Events } from "./events.js";
import { Folding } from "./comments/folding.js";
import { Forms } from "./forms.js";
import { Guest } from "./guest.js";
import { Header } from "./header.js";
import { icon } from "../shared/icons.js";
import * as lazy from "../shared/lazy.js";
import { Live } from "./comments/live.js";
import * as memory from "../shared/memory.js";
import { Pages } from "./comments/pages.js";
import * as prose from "../shared/prose.js";
import { wantedComment } from "../shared/request.js";
import * as surroundings from "./surroundings.js";
import * as times from "../shared/times.js";
import { Mutes, visit } from "./visits.js";
import { Votes } from "./comments/votes.js";
import { t } from "../shared/words.js";

const MINUTE = 60_000; // milliseconds

export class Thread {
  #place;
  #first;
  #guest;
  #votes;
  #forms;
  #mutes;
  /** @type {import("../writer/actions/actions.js").Actions | null} */
  #actions = null;
  /** @type {InstanceType<import("../shared/lazy.js").Writer["VoteSender"]> | null} */
  #sender = null;
  #folding;
  /** @type {number | undefined} */
  #lastVisit;
  /** @type {SiteOptions} from the last page */
  options = /** @type {any} */ (null);
  #state = "open";
  #stop = new AbortController();
  #clamps = new Clamps(this.#stop.signal);
  /** What happens in the thread, and what its parts ask for. */
  events = new Events();
  #top = el("div", { class: "ft-top" });
  #status = el("p", { class: "ft-status", role: "status" });
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #toastTimer;

  /**
   * @param {Place} place
   * @param {Promise<Response>} first the response with the first page
   * @param {(name: string, detail: object) => void} tell sends an event to the page
   */
  constructor(place, first, tell) {
    this.#place = place;
    this.#first = first;
    this.#guest = new Guest(place.site);
    this.#mutes = new Mutes(place.site);
    this.#votes = new Votes(async (id, value) => (await this.#voteSender()).send(id, value));
    this.#forms = new Forms(this.#guest, place, this);
    this.header = new Header(this);
    this.element = el("section", { class: "ft-thread", "aria-label": t("comments") });
    this.pages = new Pages(place, this.#guest, this.#stop.signal, this);
    this.#folding = new Folding(this.#listing, this.element, this.events);
    this.element.append(
      this.header.element,
      this.#top,
      ...this.pages.elements(this.#folding.back),
      this.#status,
    );
    this.#listen(tell);
  }

  /** Load the first page, or the page with the comment that the URL names. */
  async open() {
    const wanted = wantedComment();
    const first = this.#loadFirst(wanted);
    if (this.#place.account) {
      const entered = this.pages.attempt("sign-in", () => this.#signInByToken());
      await Promise.race([entered, first.catch(() => {})]); // comments never wait for a sign-in
    }
    await (wanted ? this.pages.openAround(wanted, first) : this.pages.openFirst(first));
    this.#reform({ refocus: false });
    const { signal } = this.#stop;
    if (signal.aborted) return;
    const follow = () => {
      this.pages.goTo(wantedComment());
      this.#offerModeration();
    };
    addEventListener("hashchange", follow, { signal });
    const timer = setInterval(() => times.refresh(this.element), MINUTE);
    signal.addEventListener("abort", () => clearInterval(timer));
    if (this.options.live > 0) new Live(() => this.#poll(), this.options.live, signal);
  }

  /**
   * Return the first page. If no comments are at the page's canonical address, but some are at its
   * own address, the page has moved: show these, and tell the server the canonical address.
   *
   * @param {string | null} around
   */
  async #loadFirst(around) {
    const first = api.contentOf(this.#first);
    const { here, url } = this.#place;
    if (!here || (await first.catch(() => null))?.total) return first;
    const place = { ...this.#place, query: { page: here } };
    const position = { canonical: url, ...(around && { around }) };
    const page = await api.list(place, position).catch(() => null);
    if (!page?.total) return first;
    this.#place.query = place.query;
    return page;
  }

  /** Arrange parts whose layout depends on sizes, and scroll to the comment that the URL names. */
  arrive() {
    const root = /** @type {ShadowRoot} */ (this.element.getRootNode());
    // The next calls read styles and sizes, which browsers compute much faster without the comments.
    const parts = [...this.element.childNodes];
    this.element.replaceChildren();
    surroundings.watchPage(root.host, this.element, this.#stop.signal);
    this.#folding.apply();
    this.element.append(...parts);
    this.#arrange();
    this.pages.point(this.#listing.get(wantedComment()));
    this.#offerModeration();
  }

  close() {
    this.#stop.abort();
  }

  /** Aborted when the thread is closed. */
  get signal() {
    return this.#stop.signal;
  }

  async #poll() {
    let isChanged = false;
    await this.pages.attempt("poll", async () => {
      isChanged = await this.pages.poll();
    });
    return isChanged;
  }

  /**
   * Add the button "Moderate here" below everything else, and continue this tab's session.
   *
   * Only moderators see the button: in a browser that has moderated the site, or at "#moderate".
   */
  #offerModeration() {
    const key = `moderator:${this.#place.site}`;
    const isWanted = location.hash === "#moderate";
    const session = memory.loadVisit(key);
    if (!this.options.moderation || !(isWanted || session || memory.load(key))) return;
    const moderate = async (box) => (await this.#loadActions())?.moderate(box);
    let foot = this.element.querySelector(".ft-end");
    if (!foot) {
      foot = el("div", { class: "ft-end" });
      foot.append(button("ft-moderate", t("moderate-here"), () => moderate(foot)));
      this.element.append(foot);
      if (session) moderate(null);
    }
    if (isWanted) foot.querySelector("button")?.focus();
  }

  get #listing() {
    return this.pages.listing;
  }

  /** @param {(name: string, detail: object) => void} tell sends an event to the page */
  #listen(tell) {
    this.events.listen({
      loaded: (page) => this.#update(page),
      changed: () => this.#arrange(),
      total: (total) => tell("count", { total }),
      posted: ({ id, status }) => {
        tell("posted", { id, status });
        this.#greet();
      },
      entered: async (member) => {
        this.#guest.enter(member, { stays: true });
        this.#changeReader(); // keeps the typed text
        if (member.claimed) (await this.#loadActions())?.tellClaims(member);
      },
      signOut: () => {
        this.#guest.signOut();
        this.#changeReader();
      },
      refused: (state) => {
        this.#state = state;
        this.#reform({ refocus: false });
      },
      share: async (comment) => (await this.#loadActions())?.share(comment),
      unmute: async (comment) => (await this.#loadActions())?.mute(comment, false),
      signIn: async () => (await this.#loadActions())?.signIn(),
      follow: async () => (await this.writer())?.openSubscribeForm(this.header.panel, this.#place),
      sort: (order) => {
        memory.save("order", order);
        this.pages.sort(order);
      },
      redraw: () => this.#redraw(),
      reform: (options) => this.#reform(options),
      say: (text, options) => this.#say(text, options),
    });
    // A click on a line beside a comment collapses the comment that the line belongs to.
    this.element.addEventListener("click", async (event) => {
      const target = /** @type {HTMLElement} */ (event.target);
      if (!target.matches?.(".ft-gutter")) return;
      const above = (await this.writer())?.commentOfLine(this.#listing, target, event.clientX);
      if (above && !above.isRemoved) this.events.send("toggle", above);
    });
  }

  /** @param {CommentPage} page */
  #update(page) {
    this.options = page.options;
    this.#lastVisit ??= visit(this.#place.spot, Date.parse(page.changed) || clock.now());
    const state = isRegistered(page.options) ? (page.thread?.state ?? "open") : "elsewhere";
    const isOther = state !== this.#state;
    this.#state = state;
    if (isOther && state === "elsewhere") {
      const tell = ({ logHint }) => logHint({ code: "origin-not-allowed" }, this.#place);
      this.loadWriter().then(tell, () => {}); // the form says it too
    }
    this.header.offerOrders(page.order ?? this.#place.order ?? this.options.order);
    this.header.offerMail(this.options.mail);
    if (isOther && this.#top.hasChildNodes()) this.#reform({ refocus: false });
    const { theme } = this.options;
    if (!this.#place.theme && theme !== "auto") this.element.dataset.theme = theme;
  }

  /** Hide collapsed and deep replies, and shorten long bodies. */
  #arrange() {
    if (!this.element.isConnected) return;
    this.#actions?.arrange();
    this.#folding.apply();
    this.#clamps.watch(this.#listing);
  }

  /** Load the reader's votes. If that fails, no button is pressed, and voting still works. */
  async loadVotes() {
    if (this.#guest.token) this.#votes.replace(...(await (await this.#voteSender()).load()));
    else this.#votes.replace(new Map(), new Map());
  }

  /** Return the object that sends votes, which the writer bundle contains. */
  async #voteSender() {
    const { VoteSender } = await lazy.writer();
    return (this.#sender ??= new VoteSender(this.#guest, this.#place));
  }

  /** Sign in with the site's token. */
  async #signInByToken() {
    const { signInByToken } = await lazy.writer();
    const { site, account } = this.#place;
    const member = await signInByToken(site, account).catch(({ message: why }) => {
      throw new Error(t("not-signed-in", { why }));
    });
    this.#guest.enter(member);
    if (this.#top.hasChildNodes()) this.#changeReader({ refocus: false });
  }

  #greet() {
    this.header.welcome(this.#guest.name ?? this.#guest.profile.name, this.options.sign_in);
  }

  /** @param {{ refocus?: boolean }} [options] */
  #changeReader(options) {
    this.#reform(options);
    this.#redraw();
    this.pages.loadOwn();
  }

  /** Show the form at the top, or say why there is none. */
  #reform({ refocus = true } = {}) {
    const { name } = this.#guest;
    this.#greet();
    if (this.#state !== "open") {
      const text = t(`state-${this.#state}`);
      this.#top.querySelector(".ft-notice")?.remove();
      // Keep the text that the reader has typed, although it cannot be posted.
      if (!this.#top.querySelector("textarea")?.value) this.#top.replaceChildren();
      this.#top.prepend(el("p", { class: "ft-notice" }, icon("lock"), text));
      return;
    }
    if (name === null && !this.options.guests) {
      this.#top.replaceChildren(this.#forms.entrance());
      return;
    }
    const isUsed = this.#top.matches(":focus-within");
    this.#top.replaceChildren(this.#forms.main());
    if (refocus || isUsed) this.#forms.focus();
  }

  #redraw() {
    for (const comment of this.#listing) comment.show(comment.data);
    this.#arrange();
  }

  /** @param {CommentData} data */
  make(data) {
    return new Comment(data, this);
  }

  /** Return the name of a comment's author, or null if the comment is not in the list. */
  nameOf(id) {
    return this.#listing.get(id)?.name ?? null;
  }

  votesOf(comment) {
    return this.options.votes ? this.#votes.elements(comment, !this.#isOwn(comment)) : [];
  }

  isMuted(comment) {
    return !this.#isOwn(comment) && this.#mutes.has(comment.data.author);
  }

  /** Tell whether a comment is newer than the reader's last visit. */
  isNew(comment) {
    return (
      Date.parse(comment.data.created) > (this.#lastVisit || Infinity) && !this.#isOwn(comment)
    );
  }

  get mayReply() {
    return this.#state === "open" && (this.options.guests || this.#guest.name !== null);
  }

  #isOwn({ id }) {
    return this.#guest.own(id) !== null;
  }

  /** @param {import("../shared/lazy.js").Writer} writer */
  actionsOf(writer) {
    return (this.#actions ??= new writer.Actions(this.#guest, this.#mutes, this.#place, this));
  }

  /** Return the reader's actions, or null if the writer bundle did not load. */
  async #loadActions() {
    const writer = await this.writer();
    return writer && this.actionsOf(writer);
  }

  /** Load the writer bundle, and add its styles. */
  async loadWriter() {
    const writer = await lazy.writer();
    writer.addStyles(this.element);
    return writer;
  }

  /** Load the writer bundle. If that fails, say so and return null. */
  async writer() {
    try {
      return await this.loadWriter();
    } catch (error) {
      this.#say(error.message, { isVisible: true });
      return null;
    }
  }

  prose(html) {
    return prose.nodes(html, this.options.images);
  }

  /** Announce a message to screen readers. With `isVisible`, also show it for a few seconds. */
  #say(text, { isVisible = false } = {}) {
    clearTimeout(this.#toastTimer);
    this.#status.textContent = text;
    this.#status.classList.toggle("ft-toast", isVisible);
    if (!isVisible) return;
    this.#toastTimer = setTimeout(() => this.#status.classList.remove("ft-toast"), 4000);
  }
}

/**
 * Tell whether the service accepts comments from this page: from the site's pages and its own.
 *
 * @param {{ origins?: string[] }} options
 */
function isRegistered({ origins }) {
  const { origin } = new URL(import.meta.url);
  return origins?.concat(origin).includes(location.origin) ?? true; // caches have older answers
}
