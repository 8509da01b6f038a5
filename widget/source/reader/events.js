/**
 * The events by which the parts of a thread tell each other what happened, or ask for an action.
 *
 * A part that needs an answer asks the thread instead (thread.js). The events for the page that
 * embeds the widget are others: docs/embedding.md lists them.
 */

/** @typedef {import("./comments/comment.js").Comment} Comment */

/**
 * @typedef {object} ThreadEvents The events, with the arguments of their listeners.
 * @property {[page: CommentPage]} loaded A page arrived: its options and the thread's state count.
 * @property {[comment: Comment]} shown A comment of a page was added to the list.
 * @property {[]} replaced All comments in the list were replaced.
 * @property {[]} changed The list has changed in any way.
 * @property {[total: number, waiting: number]} counted The comments were counted: all, and the
 *   reader's own that await approval.
 * @property {[total: number]} total The number of comments has changed.
 * @property {[member: Member]} entered The reader has signed in with the widget.
 * @property {[]} signOut The reader wants to sign out.
 * @property {[data: UncountedComment]} posted The reader's comment was stored.
 * @property {[state: string]} refused The server takes no more comments from this reader.
 * @property {[comment: Comment]} reply Open the form below a comment.
 * @property {[comment: Comment]} share Share a comment's permalink.
 * @property {[comment: Comment]} unmute Show the comments by an author again.
 * @property {[comment: Comment]} toggle Collapse or expand a comment.
 * @property {[comment: Comment]} reveal Expand what hides a comment.
 * @property {[id: string | null]} goTo Show a comment at its place.
 * @property {[order: string]} sort Show the comments in an order, and remember it.
 * @property {[]} follow Open the form that subscribes to the thread.
 * @property {[]} signIn Show the ways to sign in.
 * @property {[]} rename Let a guest change the name.
 * @property {[]} redraw Show all comments again.
 * @property {[options: { refocus: boolean }]} reform Make the form at the top again.
 * @property {[text: string, options?: { isVisible: boolean }]} say Announce a message to screen
 *   readers. With `isVisible`, also show it for a few seconds.
 */

/** @typedef {{ [N in keyof ThreadEvents]?: (...details: ThreadEvents[N]) => unknown }} Listeners */

export class Events {
  /** @type {Map<string, ((...details: any[]) => unknown)[]>} */
  #listeners = new Map();

  /**
   * Add listeners, by the names of their events.
   *
   * @param {Listeners} listeners
   */
  listen(listeners) {
    for (const [name, listener] of Object.entries(listeners)) {
      this.#listeners.set(name, [...(this.#listeners.get(name) ?? []), listener]);
    }
  }

  /**
   * Call the listeners of an event at once.
   *
   * @template {keyof ThreadEvents} N
   * @param {N} name
   * @param {ThreadEvents[N]} details
   */
  send(name, ...details) {
    this.#listeners.get(name)?.forEach((listener) => listener(...details));
  }
}
