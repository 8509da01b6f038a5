// Types that the widget's modules share, types of the API's responses, and browser features that
// TypeScript's own library lacks.

/** The thread to show, its page's metadata, and the site's token for its reader. */
interface Place extends Bare {
  site: string;
  /** The key of the thread in this browser's storage. */
  spot: string;
  query: { thread?: string; page?: string };
  here?: string;
  /** The order that the reader or the page chose, "" for the site's. */
  order: string;
  title: string;
  url: string;
  categories: string[];
  account: string;
  theme?: string;
}

interface Author {
  name: string;
  website?: string;
  kind?: "guest" | "member" | "staff";
}

// Objects are created without a prototype, because a page may have changed Object.prototype.
interface Bare {
  __proto__?: null;
}

interface CommentData {
  id: string;
  parent: string | null;
  reply_to?: string | null;
  level: number;
  status: "approved" | "pending" | "removed";
  revision: number;
  author: Author | null;
  html: string;
  created: string;
  edited: string | null;
  edited_by?: "staff";
  score: number;
  replies: number;
  pinned?: boolean;
  editable_until?: string | null;
}

/** A comment in the responses to a post and to a request for held comments, which lack `replies`. */
type UncountedComment = Omit<CommentData, "replies">;

/** The options that a site's owner has chosen. */
interface SiteOptions extends Bare {
  votes: boolean;
  website: boolean;
  guests: boolean;
  order: string;
  images: string[];
  live: number;
  theme: "auto" | "light" | "dark";
  language: string;
  moderation: boolean;
  forms?: boolean; // used only by pages without JavaScript
  mail: boolean;
  /** The origins whose pages may send comments; missing in answers of older releases. */
  origins?: string[];
  sign_in: boolean;
}

interface CommentPage {
  comments: CommentData[];
  cursor: string | null;
  total: number;
  changed: string;
  order?: string;
  options: SiteOptions;
  thread?: { state: "open" | "closed" | "read-only" };
  pinned?: CommentData[];
  around?: string;
}

/** The first page of a thread, the page after a cursor, or the page around a comment. */
type Position = { cursor?: string | null; around?: string; order?: string } | null;

interface Capability extends Bare {
  token: string;
  expires: string;
}

interface Member extends Capability {
  name: string;
  account: string;
  stays?: boolean;
  /** The number of imported comments that the reader owned at the sign-in. */
  claimed?: number;
}

/** A moderator's session on the pages of a site. */
interface Moderator extends Capability {
  name: string;
}

/** A moderator for the forms. refused(error) ends the session if the error says so. */
interface Staff {
  name: string;
  post(values: { body: string }, key: string): Promise<{ comment: UncountedComment }>;
  refused(error: any): boolean;
}

/** The values of a form. */
interface Values {
  body: string;
  name?: string;
  website?: string;
}

/** An idempotency key, the content it is bound to, and the sender's token. */
interface Attempt extends Bare {
  key: string;
  content: string;
  token: string | null;
}

interface Proved {
  proof?: string;
  turnstile?: string;
}

interface Turnstile {
  render(host: HTMLElement, options: object): string;
  reset(id: string): void;
}

interface Window {
  trustedTypes?: { createPolicy<T>(name: string, policy: T): T };
  turnstile?: Turnstile;
}

interface Element {
  setHTML?(html: string): void;
}

interface AddEventListenerOptions extends Bare {}

interface IntersectionObserverInit extends Bare {}

interface MutationObserverInit extends Bare {}

interface ShadowRootInit extends Bare {}

interface RequestInit extends Bare {}

// The build sets these: the digests of the built files, and the English texts for early failures.
declare const DIGESTS: Record<string, any>;
declare const FAILURE: { language: string; failed: string; again: string };

declare module "*.css" {
  const text: string;
  export default text;
}
