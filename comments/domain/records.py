"""Records: frozen values that the code above the store works with.

Owns the states of a comment (`Status`) and which rows a reader sees (`visible`). A record never
changes; a change makes a new one. Times are aware UTC with microseconds, as Datastore stores them.
"""

import enum
import functools
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Literal

import msgspec

from comments.domain import site_options, sorthash


class Status(enum.StrEnum):
    """The status of a comment. Stored as text: renaming one is a migration.

    Readers see only approved comments. A `HIDDEN` comment was hidden from readers without a
    judgment. A `SHADOWED` comment is visible only to its author, who is not told.
    """

    APPROVED = "approved"
    PENDING = "pending"
    SPAM = "spam"
    REJECTED = "rejected"
    HIDDEN = "hidden"
    SHADOWED = "shadowed"
    RETRACTED = "retracted"


class Policy(enum.StrEnum):
    """The default moderation of new texts that no rule matches. Stored as text.

    `FIRST` holds texts until the author has an approved comment, `LINKS` holds texts with a link,
    `ALL` holds everything. `CLOSED` accepts no comments; `READ_ONLY` accepts no comments or edits.
    """

    OFF = "off"
    FIRST = "first"
    LINKS = "links"
    ALL = "all"
    CLOSED = "closed"
    READ_ONLY = "read-only"


class Verb(enum.StrEnum):
    """Moderators' actions, by their names in the audit log. Stored: renaming one is a migration."""

    APPROVE = "approve"
    REJECT = "reject"
    SPAM = "spam"
    HIDE = "hide"
    HOLD = "hold"
    RESTORE = "restore"
    PIN = "pin"
    UNPIN = "unpin"


class ThreadState(enum.StrEnum):
    """Whether a thread accepts comments. Stored as text."""

    OPEN = "open"
    CLOSED = "closed"


class OwnPostLimits(msgspec.Struct, frozen=True, omit_defaults=True):
    """A website's own limits for posts, if they differ from the service's (`post_limits`)."""

    proof_of_work: int | None = None
    form_seconds: int | None = None
    posts_per_network: int | None = None
    posts_per_author: int | None = None
    posts_per_thread: int | None = None
    same_texts: int | None = None


class Budget(msgspec.Struct, frozen=True, omit_defaults=True):
    """A website's limits per day, 0 for no limit, and the effect of exceeding them (`budgets`)."""

    reads: int = 0
    writes: int = 0
    mails: int = 0
    posts: int = 0
    previews: int = 0
    then: Literal["slow", "read-only"] = "slow"


NO_BUDGET = Budget()


class Turnstile(msgspec.Struct, frozen=True, omit_defaults=True):
    """A website's Turnstile settings (`turnstile`).

    `key` is for browsers; `secret` is encrypted. If Turnstile does not answer, the comment is held
    or, with `refuses`, refused. `url` is the service to ask, "" for Cloudflare.
    """

    key: str
    secret: str
    refuses: bool = False
    url: str = ""


class Site(msgspec.Struct, frozen=True):
    """One website. `origins` are exact web origins; `query_keys` are those that identify pages.

    `cdn_seconds` is how long a shared cache in front of the service may reuse an answer; 0 for
    never. `freshness` is the number of seconds for which a process may reuse a thread without a
    probe. `categories` are those under which pages may file their threads. `moderators` are e-mail
    addresses that are notified of pending comments.
    """

    id: str
    origins: tuple[str, ...]
    digits: str
    width: int
    query_keys: tuple[str, ...] = ()
    keep_trailing_slash: bool = False
    cdn_seconds: int = 0
    categories: tuple[str, ...] = ()
    moderators: tuple[str, ...] = ()
    guard: OwnPostLimits = OwnPostLimits()
    budget: Budget = Budget()
    turnstile: Turnstile | None = None
    freshness: int = 0
    options: site_options.SiteOptions = site_options.SiteOptions()

    @property
    def scheme(self) -> sorthash.Scheme:
        """Return the scheme of its comments' sort hashes."""
        return _scheme(self.digits, self.width)


@functools.lru_cache(maxsize=64)
def _scheme(digits: str, width: int) -> sorthash.Scheme:
    return sorthash.Scheme(digits, width)


class ThreadName(msgspec.Struct, frozen=True):
    """The name of a thread: a site and a canonical thread id (`thread_ids`)."""

    site: str
    id: str


class ListName(msgspec.Struct, frozen=True):
    """The name of a large list of ids: `text` names its owner, in at most 700 bytes."""

    text: str


class VotedComment(msgspec.Struct, frozen=True):
    """A comment with votes to count."""

    id: str


class Thread(msgspec.Struct, frozen=True):
    """A discussion.

    `child_count` counts all roots that it has ever had; `url` and `title` may be empty.

    Its `policy` overrides its site's. `title`, `url` and `categories` are those of the comment
    `named_by` ("" for none), except for the fields in `own`, which a moderator set.
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


class ThreadHeading(msgspec.Struct, frozen=True, array_like=True):
    """The title and address that a thread shows, see `Thread`.

    `by` is the comment that set them, "" for none; None in directories of older releases.
    """

    title: str
    url: str
    by: str | None = None


class Author(msgspec.Struct, frozen=True):
    """The author of a comment. `id` is the token or account behind it and never leaves the server.

    `email` is personal data and never part of a public answer. It is plain when the author has just
    entered it, and encrypted in a stored comment (`guest_addresses`). `is_staff` says that they
    held a role on the site when they wrote.
    """

    name: str
    website: str = ""
    email: str = ""
    id: str = ""
    is_staff: bool = False


class Actor(msgspec.Struct, frozen=True):
    """The person who performs a recorded action: `id` is their account's id, and `name` is shown.

    An actor without an account has an id without ":", such as "cli" for the command line.
    """

    id: str
    name: str


BY_MODERATOR = "moderator"  # the rule of a moderator's decision; stored as text


class Ruling(msgspec.Struct, frozen=True):
    """The decision about a text: its status, the rule that decided, and why, for moderators."""

    status: Status
    rule: str = ""
    why: str = ""


class Audit(msgspec.Struct, frozen=True):
    """One decision of a moderator. `before` and `after` are statuses or other changed values.

    `subject` is the id of a comment, a thread or an author. It contains no text. `back` is the
    previous value, in the form in which `policy_changes` restores it; empty for decisions that are
    undone in another way, or not at all.
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
    """The form of a comment that moderators see, with the rule and the reason for its status.

    `stood` is its status before the last decision, None if there was none or it was undone.
    `judged` is the time of that decision. `brought` is what it said about its thread (`naming`).
    """

    comment: "Comment"
    rule: str
    why: str
    stood: Status | None
    judged: datetime | None
    brought: str = ""


class Comment(msgspec.Struct, frozen=True):
    """A comment as stored. `parent` is its place in the tree, `reply_to` the comment it answers.

    `changed` is the last change that readers saw (a post, edit or retraction); None if they never
    saw the comment. `text_revision` is the revision of its text; later revisions were votes.
    `pinned` comments are marked for readers.
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

    @property
    def is_tombstone(self) -> bool:
        """Whether readers see only the comment's place, because it has listed replies."""
        return self.status is not Status.APPROVED

    def has_text_of(self, revision: int) -> bool:
        """Whether the text seen at a revision is the current one; votes do not matter."""
        return self.text_revision <= revision <= self.revision


class ImportedComment(msgspec.Struct, frozen=True):
    """A comment read from another system's export, to be placed in a tree.

    `id` is derived from the source's id, so a second import finds the rows of the first. `reply_to`
    is the id of the comment it answers; the tree decides its place.
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


class OrderedPage(msgspec.Struct, frozen=True):
    """A page of a listing. `replies[i]` is the number of listed comments below `comments[i]`.

    `cursor` continues after the last comment and is None at the end. `changed` is the newest change
    of the thread, None if readers never saw any.
    """

    comments: tuple[Comment, ...]
    replies: tuple[int, ...]
    cursor: str | None
    total: int
    changed: datetime | None


def newest(moments: Iterable[datetime | None]) -> datetime | None:
    """Return the latest of these times; None if there is none."""
    return max((moment for moment in moments if moment is not None), default=None)


def visible(rows: Iterable[Comment]) -> Iterator[Comment]:
    """Yield the rows that a reader sees, in the given order.

    `listed` is stored rather than derived here because one query must answer it: a comment is
    listed if it is approved or if a listed comment is below it (`tree` keeps that true).
    """
    return (row for row in rows if row.listed)
