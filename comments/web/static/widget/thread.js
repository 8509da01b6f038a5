/** A thread in its element: the list, the form above it, and what happens between them. */

import * as api from "./api.js";
import { Changes } from "./changes.js";
import { Comment } from "./comment.js";
import { Composer } from "./composer.js";
import { button, el, isBusy, setBusy } from "./dom.js";
import { Draft } from "./drafts.js";
import { Guest } from "./guest.js";
import { Listing } from "./listing.js";
import * as prose from "./prose.js";
import * as times from "./times.js";
import { Votes } from "./votes.js";
import { words } from "./words.js";

const MINUTE = 60_000; // milliseconds
const PERMALINK = /^#comment-([a-z2-7]{26})$/;

export class Thread {
  #place;
  #guest;
  #changes;
  #votes;
  #listing = new Listing();
  #cursor = null;
  #own = [];
  #total = 0;
  #start = null; // the position of the first page: null, or {around}
  #latest = 0; // when the thread last changed, as far as is known here
  #stop = new AbortController();
  #title = el("h2", { class: "ft-title", tabindex: "-1" });
  #top = el("div", { class: "ft-top" });
  #whole = el("div", { class: "ft-whole" });
  #none = el("p", { class: "ft-none" }, words.none);
  #foot = el("div", { class: "ft-foot" });
  #status = el("p", { class: "ft-status", role: "status" });

  /**
   * `place` is {site, query, title, url, categories, account}: which thread, what the page says of
   * itself, and the token by which the site says who its reader is, if it does.
   */
  constructor(place) {
    this.#place = place;
    this.#guest = new Guest(place.site);
    this.#votes = new Votes(this.#guest, place);
    this.#changes = new Changes(this.#guest, {
      draft: (spot) => this.#draftBelow(spot),
      preview: (body) => this.#preview(body),
      changed: (comment, data) => this.#changed(comment, data),
      saved: (comment) => this.#saved(comment),
      removed: (comment) => this.#removed(comment),
    });
    this.element = el(
      "section",
      { class: "ft-thread", "aria-label": words.comments },
      this.#title,
      this.#top,
      this.#whole,
      this.#listing.element,
      this.#none,
      this.#foot,
      this.#status,
    );
  }

  /** Load the first page, or the one that holds the comment of the page's address. */
  async open() {
    const wanted = wantedComment();
    if (this.#place.account) await this.#enter();
    this.#top.replaceChildren(this.#mainComposer().element);
    await (wanted ? this.#openAround(wanted) : this.#openFirst());
    const { signal } = this.#stop;
    if (signal.aborted) return;
    addEventListener("hashchange", () => this.#goTo(wantedComment()), { signal });
    const ageing = setInterval(() => times.refresh(this.#listing.element), MINUTE);
    signal.addEventListener("abort", () => clearInterval(ageing));
  }

  /** Bring the comment of the page's address into view, once the thread is on the page. */
  arrive() {
    const comment = this.#listing.get(wantedComment());
    if (comment) this.#listing.point(comment);
  }

  close() {
    this.#stop.abort();
  }

  /** Be whom the site says its reader is. If the server does not believe it, he is told why. */
  async #enter() {
    try {
      this.#guest.enter(await api.enter(this.#place.site, this.#place.account));
    } catch (error) {
      this.#say(words.notEntered(error.message));
    }
  }

  /** He has signed in here: the forms are his from now on, with what was typed. */
  #entered(member) {
    this.#guest.enter(member, { stays: true });
    this.#reform();
  }

  #signOut() {
    this.#guest.signOut();
    this.#reform();
  }

  #reform() {
    const composer = this.#mainComposer();
    this.#top.replaceChildren(composer.element);
    composer.focus();
    this.#votes.load();
    for (const comment of this.#listing) comment.show(comment.data, this.#context);
  }

  get #note() {
    const { name } = this.#guest;
    if (name === null) return null;
    const leave = button("ft-sign-out", words.signOut, () => this.#signOut());
    return this.#guest.maySignOut ? [words.as(name), " ", leave] : [words.as(name)];
  }

  async #openFirst() {
    this.#replace(await api.list(this.#place), null);
  }

  async #openAround(id) {
    try {
      const start = { around: id };
      this.#replace(await api.list(this.#place, start), start);
      this.#offerWhole();
    } catch (error) {
      if (error.status !== 404 && error.status !== 400) throw error;
      await this.#openFirst();
    }
  }

  /** Show a comment of this thread, loading the page that holds it where needed. */
  async #goTo(id) {
    if (id === null) return;
    if (!this.#listing.get(id)) await this.#try(() => this.#openAround(id));
    const comment = this.#listing.get(id);
    if (comment) this.#listing.point(comment);
  }

  #replace(page, start) {
    this.#start = start;
    this.#listing.clear();
    this.#own = [];
    this.#append(page);
    this.#votes.load();
    this.#showHeld();
    this.#whole.replaceChildren();
  }

  /** Put what the reader wrote and only he sees in its places. Without an answer there is none. */
  async #showHeld() {
    const { token } = this.#guest;
    if (!token) return;
    const { comments } = await api.held(this.#place, token).catch(() => ({ comments: [] }));
    this.#own = comments;
    this.#insertOwn();
  }

  /** What is no longer pending comes with its page, so it is put in when all pages are there. */
  #insertOwn() {
    const isWhole = this.#cursor === null && this.#listing.size >= this.#total;
    const isDue = (data) => data.status === "pending" || isWhole;
    for (const data of this.#own.filter(isDue)) {
      if (!this.#listing.get(data.id)) this.#listing.insert(this.#make({ replies: 0, ...data }));
    }
    this.#own = this.#own.filter((data) => !isDue(data));
    this.#count(this.#total);
  }

  /** A page from the middle says how many there are in all, not how many come before it. */
  #offerWhole() {
    if (this.#listing.size >= this.#total) return;
    this.#whole.replaceChildren(button("ft-show-whole", words.whole, () => this.#showWhole()));
  }

  #append(page) {
    this.#cursor = page.cursor;
    for (const data of page.comments) {
      const comment = this.#make(data);
      this.#listing.append(comment);
      if (this.#draftBelow(data.id).values) this.#openReply(comment);
    }
    this.#hear(page);
    this.#insertOwn();
    this.#showMore();
  }

  #make(data) {
    const actions = {
      reply: (comment) => this.#reply(comment),
      change: (comment) => this.#changes.open(comment),
      remove: (comment) => this.#changes.ask(comment),
      goTo: (id) => this.#goTo(id),
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

  /**
   * Show what others did while the reader wrote a comment: on the page that was loaded first, and
   * in the number. Without an answer, or with one that a cache kept from before, all stays as it is.
   */
  async #catchUp(posted) {
    const start = this.#start;
    const asked = [api.list(this.#place, start), import("./weaving.js")];
    const [page, weaving] = await Promise.all(asked).catch(() => []);
    const isNew = Date.parse(page?.changed) >= this.#latest;
    if (!isNew || start !== this.#start || this.#stop.signal.aborted) return;
    const isHere = posted.element.matches(":focus");
    weaving.weave(this.#listing, page.comments, {
      make: (data) => this.#make(data),
      context: this.#context,
      stays: (comment) => comment.isPending || this.#guest.own(comment.id) !== null,
      isStart: start === null,
      isEnd: page.cursor === null,
    });
    this.#hear(page);
    this.#offerRest(page.cursor);
    if (isHere) this.#listing.point(posted);
  }

  /** Offer what is not shown, where nothing was left to be shown until now. */
  #offerRest(cursor) {
    const shown = [...this.#listing].filter((comment) => !comment.isPending);
    if (this.#cursor === null && shown.length < this.#total) {
      this.#cursor = cursor;
      this.#showMore();
    }
    if (this.#start !== null) this.#offerWhole();
  }

  /** Take over what a page says of the whole thread. */
  #hear({ changed, total }) {
    this.#latest = Math.max(this.#latest, Date.parse(changed) || 0);
    this.#count(total);
  }

  #count(total) {
    this.#total = total;
    this.#title.textContent = words.title(total);
    this.#none.hidden = this.#listing.size > 0;
  }

  #showMore() {
    this.#foot.replaceChildren();
    if (this.#cursor === null) return;
    this.#foot.append(button("ft-more", words.more, (event) => this.#loadMore(event.target)));
  }

  async #loadMore(control) {
    if (isBusy(control)) return;
    setBusy(control, true);
    this.#say(words.loading);
    const before = this.#listing.last;
    const done = await this.#try(async () => {
      const page = await api.list(this.#place, { cursor: this.#cursor });
      this.#append(page);
      this.#say(words.shown(page.comments.length));
    });
    setBusy(control, false);
    if (done) before?.nextElementSibling?.focus({ preventScroll: true });
  }

  async #showWhole() {
    history.replaceState(history.state, "", location.href.split("#")[0]);
    if (await this.#try(() => this.#openFirst())) this.#title.focus();
  }

  /** Do something that needs no form; whether it worked. What went wrong shows below the list. */
  async #try(action) {
    for (const old of this.#foot.querySelectorAll(".ft-error")) old.remove();
    try {
      await action();
      return true;
    } catch (error) {
      this.#say("");
      this.#foot.append(el("p", { class: "ft-error", role: "alert" }, error.message));
      return false;
    }
  }

  #say(text) {
    this.#status.textContent = text;
  }

  #mainComposer() {
    return this.#postComposer({
      label: words.write,
      submit: words.post,
      parent: null,
      draft: new Draft(this.#spot),
      cancel: null,
    });
  }

  get #spot() {
    const { site, query } = this.#place;
    return `${site}:${query.thread ?? query.page}`;
  }

  #draftBelow(id) {
    return new Draft(`${this.#spot}:${id}`);
  }

  #postComposer({ label, submit, parent, draft, cancel }) {
    let notify;
    let proofs;
    const composer = new Composer({
      label,
      submit,
      fields: this.#guest.name === null ? ["body", "name", "website"] : ["body"],
      note: this.#note,
      values: this.#guest.profile,
      draft,
      send: async (values, subject) =>
        this.#post({ values, subject, parent }, draft, notify, await proving()),
      preview: (body) => this.#preview(body),
      cancel,
    });
    const form = composer.element;
    const used = async () => {
      const { offer } = await import("./notify.js").catch(() => ({}));
      notify = await offer?.(form, this.#place);
      if (parent !== null || this.#guest.name !== null) return;
      const signin = await import("./signin.js").catch(() => null);
      signin?.offer(form, this.#place.site, (member) => this.#entered(member));
    };
    const proving = () => {
      if (this.#guest.name !== null) return null; // who has signed in proves nothing
      return (proofs ??= import("./proof.js").then(
        ({ Proofs }) => new Proofs(this.#place.site, form),
        () => (proofs = null), // tried again; the server says what it misses
      ));
    };
    const begin = async () => (await proving())?.prepare();
    form.addEventListener("focusin", used, { __proto__: null, once: true });
    form.addEventListener("focusin", begin);
    form.addEventListener("input", begin);
    return composer;
  }

  async #preview(body) {
    return prose.nodes((await api.preview(this.#place.site, body)).html);
  }

  #reply(comment) {
    if (!comment.slot.contains(comment.composer?.element ?? null)) this.#openReply(comment);
    comment.composer.focus();
  }

  #openReply(comment) {
    comment.composer = this.#postComposer({
      label: words.answer(comment.name),
      submit: words.postReply,
      parent: comment.id,
      draft: this.#draftBelow(comment.id),
      cancel: () => comment.leave(),
    });
    comment.slot.replaceChildren(comment.composer.element);
  }

  async #post({ values, subject, parent }, draft, notify, proofs) {
    const wanted = notify?.wanted;
    const { name } = this.#guest;
    const said = name === null ? values : { ...values, name };
    const body = { ...said, ...(parent && { parent }), ...(subject && { subject }) };
    const send = (attempt) => {
      const post = (proved) => api.post(this.#place, { ...body, ...proved }, attempt);
      return proofs ? proofs.send(post) : post();
    };
    const answer = await this.#send(send, draft, values);
    this.#guest.keep(answer.comment.id, values, answer.token, answer.expires);
    this.#listing.get(parent)?.close();
    const comment = this.#make({ replies: 0, ...answer.comment });
    const isNew = this.#listing.insert(comment);
    const isCounted = isNew && !comment.isPending;
    this.#hear({
      changed: isCounted ? comment.data.created : null,
      total: this.#total + (isCounted ? 1 : 0),
    });
    this.#listing.point(comment);
    this.#say(comment.isPending ? words.pending : words.posted);
    this.#catchUp(comment);
    if (wanted) notify.ask(wanted, answer.token, comment.slot);
  }

  /** Send an attempt. A capability the server no longer takes is given up: a new one is earned. */
  async #send(send, draft, values) {
    const { name, token } = this.#guest;
    if (name !== null) {
      // An account's token is never kept: a repeat is known by its key and whose it is.
      return send({ ...draft.attempt(values, null), token });
    }
    const attempt = draft.attempt(values, token);
    try {
      return await send(attempt);
    } catch (error) {
      if (error.status !== 401 || !attempt.token) throw error;
      this.#guest.leave();
      draft.refused(values);
      return send(draft.attempt(values, null));
    }
  }

  /** Show a comment as it is now. What waits is not counted, before it comes back or goes. */
  #changed(comment, data) {
    const waited = comment.isPending;
    comment.show({ ...comment.data, ...data }, this.#context);
    if (waited !== comment.isPending) this.#count(this.#total + (waited ? 1 : -1));
  }

  #saved(comment) {
    this.#listing.point(comment);
    this.#say(comment.isPending ? words.pending : words.saved);
  }

  #removed(comment) {
    this.#count(this.#total - this.#listing.bury(comment));
    (comment.element.isConnected ? comment.element : this.#title).focus();
    this.#say(words.gone);
  }
}

/** The id in the page's address (#comment-ID), or null. */
function wantedComment() {
  return PERMALINK.exec(location.hash)?.[1] ?? null;
}
