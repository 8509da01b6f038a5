/**
 * A thread in its element: it connects the comments, the reader and their actions.
 *
 * `Pages` loads comments, and `PostForms` contains the forms for new comments.
 */

import * as api from "./api.js";
import { Comment } from "./comment.js";
import { button, el } from "./dom.js";
import { Guest } from "./guest.js";
import * as lazy from "./lazy.js";
import { Pages } from "./pages.js";
import { PostForms } from "./postforms.js";
import * as prose from "./prose.js";
import { wantedComment } from "./request.js";
import * as times from "./times.js";
import { Votes } from "./votes.js";
import { t } from "./words.js";

const MINUTE = 60_000; // milliseconds

export class Thread {
  #place;
  #first;
  #tell;
  #guest;
  #votes;
  #pages;
  #forms;
  #stop = new AbortController();
  #top = el("div", { class: "ft-top" });
  #status = el("p", { class: "ft-status", role: "status" });

  /**
   * @param {Place} place
   * @param {Promise<Response>} first the answer with the first page
   * @param {(name: string, detail: object) => void} tell sends an event to the page
   */
  constructor(place, first, tell) {
    this.#tell = tell;
    this.#place = place;
    this.#first = first;
    this.#guest = new Guest(place.site);
    this.#votes = new Votes(this.#guest, place);
    this.#forms = new PostForms(this.#guest, place, {
      note: () => this.#note,
      preview: (body) => this.#preview(body),
      posted: (data, parent) => this.#posted(data, parent),
      entered: (member) => this.#entered(member),
    });
    this.#pages = new Pages(place, this.#guest, this.#stop.signal, {
      make: (data) => this.#make(data),
      context: () => this.#context,
      shown: (comment) => this.#forms.reopen(comment),
      replaced: () => this.#votes.load(),
      say: (text) => this.#say(text),
      counted: (total) => this.#tell("count", { total }),
    });
    this.element = el(
      "section",
      { class: "ft-thread", "aria-label": t("comments") },
      this.#pages.title,
      this.#top,
      ...this.#pages.elements,
      this.#status,
    );
  }

  /** Load the first page, or the page with the comment that the URL names. */
  async open() {
    const wanted = wantedComment();
    if (this.#place.account) await this.#enter();
    this.#top.replaceChildren(this.#forms.main().element);
    const first = api.answer(this.#first);
    await (wanted ? this.#pages.openAround(wanted, first) : this.#pages.openFirst(first));
    const { signal } = this.#stop;
    if (signal.aborted) return;
    addEventListener("hashchange", () => this.#pages.goTo(wantedComment()), { signal });
    const ageing = setInterval(() => times.refresh(this.element), MINUTE);
    signal.addEventListener("abort", () => clearInterval(ageing));
  }

  /** Scroll to the comment that the URL names, once the thread is on the page. */
  arrive() {
    const comment = this.#listing.get(wantedComment());
    if (comment) this.#listing.point(comment);
  }

  close() {
    this.#stop.abort();
  }

  get #listing() {
    return this.#pages.listing;
  }

  /** Sign in with the site's token. If the server refuses the token, show why. */
  async #enter() {
    try {
      this.#guest.enter(await api.enter(this.#place.site, this.#place.account));
    } catch (error) {
      this.#say(t("not-signed-in", { why: error.message }));
    }
  }

  /** Show the forms for a reader who signed in with the widget, and keep the typed text. */
  #entered(member) {
    this.#guest.enter(member, { stays: true });
    this.#reform();
  }

  #signOut() {
    this.#guest.signOut();
    this.#reform();
  }

  #reform() {
    const composer = this.#forms.main();
    this.#top.replaceChildren(composer.element);
    composer.focus();
    this.#votes.load();
    for (const comment of this.#listing) comment.show(comment.data, this.#context);
  }

  get #note() {
    const { name } = this.#guest;
    if (name === null) return null;
    const leave = button("ft-sign-out", t("sign-out"), () => this.#signOut());
    return this.#guest.maySignOut
      ? [t("commenting-as", { name }), " ", leave]
      : [t("commenting-as", { name })];
  }

  /** @param {CommentData} data */
  #make(data) {
    const actions = {
      reply: (comment) => this.#forms.reply(comment),
      change: async (comment) => (await this.#changes())?.open(comment),
      remove: async (comment) => (await this.#changes())?.ask(comment),
      goTo: (id) => this.#pages.goTo(id),
    };
    return new Comment(data, actions, this.#context);
  }

  get #context() {
    return {
      nameOf: (id) => this.#listing.get(id)?.name ?? null,
      isOwn: (id) => this.#guest.own(id) !== null,
      votes: (comment) => this.#votes.elements(comment, this.#guest.own(comment.id) === null),
    };
  }

  /** Load the module that edits and deletes comments. Return null if that fails. */
  async #changes() {
    const writer = await lazy.writer().catch(() => null);
    if (writer === null) {
      this.#say(t("unreachable"));
      return null;
    }
    return new writer.Changes(this.#guest, {
      draft: (spot) => this.#forms.draftBelow(spot),
      preview: (body) => this.#preview(body),
      changed: (comment, data) => this.#changed(comment, data),
      saved: (comment) => this.#saved(comment),
      removed: (comment) => this.#removed(comment),
    });
  }

  async #preview(body) {
    return prose.nodes((await api.preview(this.#place.site, body)).html);
  }

  /**
   * Show a newly posted comment, and return it.
   *
   * @param {UncountedComment} data
   * @param {string | null} parent
   */
  #posted(data, parent) {
    this.#listing.get(parent)?.close();
    const comment = this.#make({ replies: 0, ...data });
    this.#pages.insert(comment);
    this.#tell("posted", { id: data.id, status: data.status });
    this.#say(comment.isPending ? t("pending") : t("posted"));
    this.#pages.catchUp(comment);
    return comment;
  }

  /** Show a comment's new data. Correct the total, which does not include pending comments. */
  #changed(comment, data) {
    const waited = comment.isPending;
    comment.show({ ...comment.data, ...data }, this.#context);
    if (waited !== comment.isPending) this.#pages.countMore(waited ? 1 : -1);
  }

  #saved(comment) {
    this.#listing.point(comment);
    this.#say(comment.isPending ? t("pending") : t("saved"));
  }

  #removed(comment) {
    this.#pages.countMore(-this.#listing.bury(comment));
    (comment.element.isConnected ? comment.element : this.#pages.title).focus();
    this.#say(t("deleted"));
  }

  #say(text) {
    this.#status.textContent = text;
  }
}
