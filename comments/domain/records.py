"""Records: frozen values that all code above the store uses.

This module owns the statuses of a comment (`Status`) and the rule that determines which rows a
reader sees (`visible`). A record never changes; a change makes a new record. Times are
timezone-aware UTC with microsecond precision, as Datastore stores them.
"""

import enum
import functools
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Literal

import msgspec

from comments.domain import site_options
from comments.domain.ids import sorthash
from comments.domain.moderation import staff_notices
from comments.domain.moderation.reasons import HoldReason


class Status(enum.StrEnum):
    """The status of a comment. Statuses are stored as text, so renaming one requires a migration.

    Readers see only approved comments. A `HIDDEN` comment was hidden from readers without being
    judged. A `SHADOWED` comment is visible only to its author, who is not informed.
    """

    APPROVED = "approved"
    PENDING = "pending"
    SPAM = "spam"
    REJECTED = "rejected"
    HIDDEN = "hidden"
    SHADOWED = "shadowed"
    RETRACTED = "retracted"


class Policy(enum.StrEnum):
    """The default moderation of new texts that no rule matches. Policies are stored as text.

    `FIRST` holds texts until the author has an approved comment, `LINKS` holds texts with a link,
    and `ALL` holds all texts. `CLOSED` refuses new comments; `READ_ONLY` refuses new comments and
    edits.
    """

    OFF = "off"
    FIRST = "first"
    LINKS = "links"
    ALL = "all"
    CLOSED = "closed"
    READ_ONLY = "read-only"


class Verb(enum.StrEnum):
    """The actions of moderators, named as in the audit log.

    The names are stored, so renaming one requires a migration.
    """

    APPROVE = "approve"
    REJECT = "reject"
    SPAM = "spam"
    HIDE = "hide"
    HOLD = "hold"
    RESTORE = "restore"
    PIN = "pin"
    UNPIN = "unpin"


# The status that a verb gives a comment
BECOMES = {
    Verb.APPROVE: Status.APPROVED,
    Verb.REJECT: Status.REJECTED,
    Verb.SPAM: Status.SPAM,
    Verb.HIDE: Status.HIDDEN,
    Verb.HOLD: Status.PENDING,
}


class ThreadState(enum.StrEnum):
    """The states of a thread, which determine whether it accepts comments.

    The states are stored as text.
    """

    OPEN = "open"
    CLOSED = "closed"


class OwnPostLimits(msgspec.Struct, frozen=True, omit_defaults=True):
    """A website's own post limits, which replace the service's limits (`post_limits`)."""

    proof_of_work: int | None = None
    form_seconds: int | None = None
    posts_per_network: int | None = None
    posts_per_author: int | None = None
    posts_per_thread: int | None = None
    same_texts: int | None = None


class Budget(msgspec.Struct, frozen=True, omit_defaults=True):
    """A website's daily limits (0 for no limit) and the effect of exceeding them (`budgets`)."""

    reads: int = 0
    writes: int = 0
    mails: int = 0
    posts: int = 0
    previews: int = 0
    then: Literal["slow", "read-only"] = "slow"


NO_BUDGET = Budget()


class Turnstile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A website's Turnstile settings (`turnstile`).

    Browsers receive `key`; `secret` is encrypted. If Turnstile does not answer, the comment is
    held, or refused if `refuses` is set. `url` is the address of the verification service, "" for
    Cloudflare's.
    """

    key: str
    secret: str
    refuses: bool = False
    url: str = ""


class Site(msgspec.Struct, frozen=True):
    """One website.

    `origins` are exact web origins; `query_keys` are the query parameters that identify pages.
    `digits`, `width` and `levels` are the scheme of the site's sort hashes.

    `cdn_seconds` is how long a shared cache in front of the service may reuse a response; 0
    disables caching. `freshness` is how many seconds a process may reuse a thread without a probe.
    `categories` lists the categories under which pages may file their threads. `moderators` lists
    the e-mail addresses that are notified of pending comments. `has_providers` tells whether a
    provider is available to the site's readers. `moves` counts the changes to the ids of the site's
    threads (`thread_aliases`). `deleted` and `erasing` are the times when the site was deleted and
    when the erasure of its rows began. `notices` contains the choices of recipients who get other
    mail than that about held comments, or who have an account. `copy_of` is set for a staging copy,
    which sends no mail and no webhooks.
    """

    id: str
    origins: tuple[str, ...]
    digits: str
    width: int
    levels: int = sorthash.DEFAULT_LEVELS
    query_keys: tuple[str, ...] = ()
    keep_trailing_slash: bool = False
    ignore_www: bool = False
    ignore_amp: bool = False
    cdn_seconds: int = 0
    categories: tuple[str, ...] = ()
    moderators: tuple[str, ...] = ()
    guard: OwnPostLimits = OwnPostLimits()
    budget: Budget = Budget()
    turnstile: Turnstile | None = None
    freshness: int = 0
    options: site_options.SiteOptions = site_options.SiteOptions()
    has_providers: bool = False
    title: str = ""
    alias: str = ""
    moves: int = 0
    deleted: datetime | None = None
    erasing: datetime | None = None
    notices: tuple[staff_notices.StaffRecipient, ...] = ()
    copy_of: str = ""

    @property
    def recipients(self) -> tuple[staff_notices.StaffRecipient, ...]:
        """Return who of the site's staff gets which mail."""
        return staff_notices.merge(self.moderators, self.notices)

    @property
    def name(self) -> str:
        """Return the name that people see: the title, or the id if the site has no title."""
        return self.title or self.id

    @property
    def snippet_id(self) -> str:
        """Return the id for new snippets: the site's current alias, or the id if there is none."""
        return self.alias or self.id

    @property
    def scheme(self) -> sorthash.Scheme:
        """Return the scheme for the sort hashes of the site's comments."""
        return _scheme(self.digits, self.width, self.levels)


@functools.lru_cache(maxsize=64)
def _scheme(digits: str, width: int, levels: int) -> sorthash.Scheme:
    return sorthash.Scheme(digits, width, levels)


class ThreadName(msgspec.Struct, frozen=True):
    """The name of a thread: a site and a canonical thread id (`thread_ids`)."""

    site: str
    id: str


class SetName(msgspec.Struct, frozen=True):
    """The name of a large set of ids; `text` names the set's owner in at most 700 bytes."""

    text: str


class VotedComment(msgspec.Struct, frozen=True):
    """A comment with votes that are still to be counted."""

    id: str


class ImportUndo(msgspec.Struct, frozen=True):
    """An undo of an import, after the undo has begun: the site and the import's id."""

    site: str
    id: str


class BulkDecision(msgspec.Struct, frozen=True):
    """A bulk decision that has work to do: the site and the job's id."""

    site: str
    id: str


class SiteErasure(msgspec.Struct, frozen=True):
    """An erasure of a deleted site that is due or has begun."""

    site: str


class Thread(msgspec.Struct, frozen=True):
    """The discussion of one page.

    `child_count` counts all roots that the thread has ever had; `url` and `title` may be empty.

    The thread's `policy` overrides the site's policy. `title`, `url` and `categories` come from the
    comment `named_by` ("" for none), except for the fields in `own`, which a moderator set. `pins`
    contains the ids of all pinned comments, and perhaps ids of comments that are no longer pinned.
    `active` is the approximate time of the newest comment. `alias` is "" unless the thread has
    moved (`thread_aliases`).
    """

    name: ThreadName
    title: str
    url: str
    state: ThreadState
    child_count: int
    categories: tuple[str, ...] = ()
    policy: Policy | None = None
    created: datetime | None = None
    named_by: str = ""
    own: tuple[str, ...] = ()
    pins: tuple[str, ...] = ()
    active: datetime | None = None
    alias: str = ""

    @property
    def shown_id(self) -> str:
        """Return the canonical id: the id of the thread's page now, which others see."""
        return self.alias or self.name.id


class ThreadTerms(msgspec.Struct, frozen=True, array_like=True):
    """The part of a thread that decides whether it accepts comments, see `Thread`."""

    state: ThreadState = ThreadState.OPEN
    policy: Policy | None = None
    created: datetime | None = None


class ThreadHeading(msgspec.Struct, frozen=True, array_like=True):
    """The title and address that a thread shows (see `Thread`).

    `by` is the comment that set the title and address, or "" if there is none. In directories that
    older releases wrote, `by` is None.
    """

    title: str
    url: str
    by: str | None = None


class Author(msgspec.Struct, frozen=True):
    """The author of a comment.

    `id` identifies the author's token or account and never leaves the server.

    `email` is personal data and never part of a public response. The address is plain when the
    author has just entered it, and encrypted in a stored comment (`guest_addresses`). `is_staff`
    says whether the author had a role on the site at the time of writing.
    """

    name: str
    website: str = ""
    email: str = ""
    id: str = ""
    is_staff: bool = False


class Actor(msgspec.Struct, frozen=True):
    """The person who performs a recorded action.

    `id` is the id of the person's account, and `name` is displayed. An actor without an account has
    an id without ":", such as "cli" for the command line.
    """

    id: str
    name: str


BY_MODERATOR = "moderator"  # The rule stored for a moderator's decision.


class Ruling(msgspec.Struct, frozen=True):
    """The decision about a text: its status, the rule that decided, and a reason for moderators.

    `why` is the reason in English. `reasons` contains the same reasons as codes, if the service
    found them.
    """

    status: Status
    rule: str = ""
    why: str = ""
    reasons: tuple[HoldReason, ...] = ()


class Audit(msgspec.Struct, frozen=True):
    """A moderator's decision in the audit log.

    `before` and `after` are statuses or other changed values.

    `subject` is the id of a comment, a thread or an author. The entry contains no comment text.
    `back` is the previous value in a form that `policy_changes` can restore. `back` is empty for
    decisions that are undone in a different way or cannot be undone.
    """

    id: str
    site: str
    subject: str
    verb: str
    actor: Actor
    at: datetime
    before: str
    after: str
    reason: str = ""
    back: str = ""


class Case(msgspec.Struct, frozen=True):
    """A comment as moderators see it, with the rule and the reason that determined its status.

    `stood` is the status before the last decision. It is None if there was no decision or if that
    decision was undone. `judged` is the time of the last decision. `brought` contains the thread's
    title, address and categories as this comment gave them (`naming`). `category_terms` contains
    the terms that find the thread's categories (`categories`).
    """

    comment: "Comment"
    rule: str
    why: str
    stood: Status | None
    judged: datetime | None
    brought: str = ""
    reasons: tuple[HoldReason, ...] = ()
    category_terms: tuple[str, ...] = ()


class Comment(msgspec.Struct, frozen=True):
    """A stored comment.

    `parent` is the comment above this one in the tree, and `reply_to` is the comment that this one
    answers.

    `changed` is the time of the last change that readers saw (a post, edit or retraction); None if
    readers never saw the comment. `text_revision` is the revision of the current text; later
    revisions changed only votes. `pinned` comments are marked as pinned for readers. `shape` is the
    shape of the tree to which the comment's place belongs (`reshaping`). `edited_by_staff` is true
    if the last edit of the text was by an owner or moderator of the site.
    """

    id: str
    site: str
    thread: str
    sort_hash: str
    level: int
    number: int
    child_count: int
    parent: str | None
    reply_to: str | None
    slug: str
    author: Author
    body: str
    html: str
    status: Status
    listed: bool
    revision: int
    created: datetime
    edited: datetime | None
    score: int = 0
    up: int = 0
    down: int = 0
    changed: datetime | None = None
    text_revision: int = 1
    pinned: bool = False
    shape: int = 0
    edited_by_staff: bool = False

    @property
    def is_tombstone(self) -> bool:
        """Return whether readers see only the comment's place, because it has listed replies."""
        return self.status is not Status.APPROVED

    def has_text_of(self, revision: int) -> bool:
        """Return whether the text at a revision is still the current text; votes are ignored."""
        return self.text_revision <= revision <= self.revision


class MovedComment(msgspec.Struct, frozen=True):
    """Facts about a comment that only a Flatthread export contains; they are stored unchanged.

    `author` is the author's id, None if the import derives a new one.

    `number` is the comment's number among its siblings, or None to assign a new one. `parent` is
    the comment above this one. `slugs` contains the comment's former slugs. `brought` is the
    comment's thread data as the tree encodes it (`naming`). `votes` contains voters with their
    votes, which `up` and `down` of the comment include. See `Case` for the other fields.
    """

    number: int | None = None
    parent: str | None = None
    slugs: tuple[str, ...] = ()
    author: str | None = None
    is_staff: bool = False
    edited_by_staff: bool = False
    rule: str = ""
    why: str = ""
    reasons: tuple[HoldReason, ...] = ()
    stood: Status | None = None
    judged: datetime | None = None
    brought: str | None = None
    votes: tuple[tuple[str, int], ...] = ()
    source: str = ""


class MovedThread(msgspec.Struct, frozen=True):
    """Facts about a thread that only a Flatthread export contains; see `Thread` for the fields."""

    policy: Policy | None = None
    categories: tuple[str, ...] = ()
    created: datetime | None = None
    own: tuple[str, ...] = ()
    named_by: str = ""
    named_at: datetime | None = None
    aliases: tuple[str, ...] = ()


class ImportedComment(msgspec.Struct, frozen=True):
    """A comment from another system's export, not yet placed in a tree.

    `id` is derived from the source's id, so a repeated import finds the rows that the first import
    wrote. `reply_to` is the id of the comment that this comment answers; the tree determines its
    place.
    """

    id: str
    reply_to: str | None
    author: Author
    body: str
    html: str
    renderer: str
    status: Status
    created: datetime
    source: str
    up: int = 0
    down: int = 0
    edited: datetime | None = None
    pinned: bool = False
    kept: MovedComment | None = None


class PinnedComments(msgspec.Struct, frozen=True):
    """The pinned comments that readers see, in reading order, each with its number of replies.

    `starts` contains the place of each comment in reading order, counted from 1.
    """

    comments: tuple[Comment, ...] = ()
    replies: tuple[int, ...] = ()
    starts: tuple[int, ...] = ()


class OrderedPage(msgspec.Struct, frozen=True):
    """A page of a listing. `replies[i]` is the number of listed comments below `comments[i]`.

    `cursor` continues after the last comment and is None at the end. `changed` is the time of the
    thread's newest visible change; None if readers never saw any comment.

    `positions` contains the place of each comment in the listing's order, and `starts` the place in
    reading order. Both count from 1 and contain None for places that are not known. If `in_order`
    is set, the listing is in reading order, so `positions` and `starts` are the same.
    """

    comments: tuple[Comment, ...]
    replies: tuple[int, ...]
    cursor: str | None
    total: int
    changed: datetime | None
    positions: tuple[int | None, ...]
    starts: tuple[int | None, ...]
    in_order: bool


def newest(moments: Iterable[datetime | None]) -> datetime | None:
    """Return the latest of several times; None if there are none."""
    return max((moment for moment in moments if moment is not None), default=None)


def visible(rows: Iterable[Comment]) -> Iterator[Comment]:
    """Yield the rows that a reader sees, in the given order.

    A comment is listed if it is approved or if a listed comment is below it; `tree` keeps `listed`
    correct. `listed` is stored, not derived here, because a single query must select the listed
    comments.
    """
    return (row for row in rows if row.listed)
