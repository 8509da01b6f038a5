"""What travels above the data rows: frozen values without a store behind them.

Owns the words of a comment's life (`Status`) and which rows a reader sees (`visible`).
A record never changes; a change makes a new one. Times are aware UTC with microseconds,
as a Datastore keeps them.
"""

import enum
import functools
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Literal

import msgspec

from comments.domain import sorthash


class Status(enum.StrEnum):
    """Where a comment stands. Stored as text: renaming one is a migration.

    Readers see approved ones only. `HIDDEN` is taken out of sight without a judgement; `SHADOWED`
    is out of sight of everybody but its author, who is not told.
    """

    APPROVED = "approved"
    PENDING = "pending"
    SPAM = "spam"
    REJECTED = "rejected"
    HIDDEN = "hidden"
    SHADOWED = "shadowed"
    RETRACTED = "retracted"


class Policy(enum.StrEnum):
    """What becomes of new texts where no rule speaks. Stored as text.

    `FIRST` holds until the author has an approved comment, `LINKS` what holds a link, `ALL`
    everything. `CLOSED` takes no comments, `READ_ONLY` no edits either.
    """

    OFF = "off"
    FIRST = "first"
    LINKS = "links"
    ALL = "all"
    CLOSED = "closed"
    READ_ONLY = "read-only"


class Verb(enum.StrEnum):
    """What moderators do, as the audit names it. Stored as text: renaming one is a migration."""

    APPROVE = "approve"
    REJECT = "reject"
    SPAM = "spam"
    HIDE = "hide"
    HOLD = "hold"
    RESTORE = "restore"
    PIN = "pin"
    UNPIN = "unpin"


class ThreadState(enum.StrEnum):
    """Whether a thread takes comments. Stored as text."""

    OPEN = "open"
    CLOSED = "closed"


class OwnGuard(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a website asks of those who post, where it differs from the service (`post_limits`)."""

    proof_of_work: int | None = None
    form_seconds: int | None = None
    posts_per_network: int | None = None
    posts_per_author: int | None = None
    posts_per_thread: int | None = None
    same_texts: int | None = None


class Budget(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a website may use on a day, 0 for any number, and what happens then (`budgets`)."""

    reads: int = 0
    writes: int = 0
    mails: int = 0
    posts: int = 0
    previews: int = 0
    then: Literal["slow", "read-only"] = "slow"


NO_BUDGET = Budget()


class Turnstile(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a website asks Turnstile about those who post (`turnstile`).

    `key` is for browsers, `secret` is sealed. Where nobody answers a comment is held, or refused
    with `refuses`. `url` is where it is asked, "" for Cloudflare.
    """

    key: str
    secret: str
    refuses: bool = False
    url: str = ""


class Site(msgspec.Struct, frozen=True):
    """One website. `origins` are exact web origins, `query_keys` those that tell pages apart.

    `cdn_seconds` is how long a cache in front of us may answer readers for us; 0 for never.
    `freshness` is for how many seconds a process may show a thread again without a probe.
    `categories` are those that pages may file their threads under.
    `moderators` are mail addresses that are told of comments that wait for approval.
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
    guard: OwnGuard = OwnGuard()
    budget: Budget = Budget()
    turnstile: Turnstile | None = None
    freshness: int = 0

    @property
    def scheme(self) -> sorthash.Scheme:
        """How the hashes of its comments are written."""
        return _scheme(self.digits, self.width)


@functools.lru_cache(maxsize=64)
def _scheme(digits: str, width: int) -> sorthash.Scheme:
    return sorthash.Scheme(digits, width)


class ThreadName(msgspec.Struct, frozen=True):
    """Which thread: a site and a canonical thread id (`thread_ids`)."""

    site: str
    id: str


class ListName(msgspec.Struct, frozen=True):
    """Which large list of ids: `text` says whose it is, in at most 700 bytes."""

    text: str


class VotedComment(msgspec.Struct, frozen=True):
    """Which comment has votes that are to be counted."""

    id: str


class Thread(msgspec.Struct, frozen=True):
    """A discussion. `child_count` counts the roots it ever had; `url` and `title` may be empty.

    Its `policy` goes before that of its site. `title`, `url` and `categories` are those that the
    comment `named_by` brought, "" for none, but for the fields in `own`: a moderator set those.
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
    """What a thread shows of itself: see `Thread`.

    `by` is the comment that brought it, "" for none; None in directories of older releases.
    """

    title: str
    url: str
    by: str | None = None


class Author(msgspec.Struct, frozen=True):
    """Who wrote a comment. `id` is the capability or account behind it and never leaves the server.

    `email` is personal data and never part of a public answer: as somebody gives it, or of a stored
    comment as it is stored, sealed (`guest_addresses`). `is_staff` says that they held a role on
    the site when they wrote it.
    """

    name: str
    website: str = ""
    email: str = ""
    id: str = ""
    is_staff: bool = False


class Actor(msgspec.Struct, frozen=True):
    """Who does something that others are told of: `id` is his account's, and `name` is shown.

    What acts without an account has an id without ":", as the command line has ("cli").
    """

    id: str
    name: str


BY_MODERATOR = "moderator"  # the rule of what a moderator decided; stored as text


class Ruling(msgspec.Struct, frozen=True):
    """What becomes of a text: the status it gets, by which rule, and why, for moderators' eyes."""

    status: Status
    rule: str = ""
    why: str = ""


class Audit(msgspec.Struct, frozen=True):
    """What somebody decided. `before` and `after` are statuses, or what else was changed.

    `subject` is what it was about: a comment's id, or a thread's or an author's. It holds no text.
    `back` is what stood before, as whoever undoes it reads it (`policy_changes`); empty for what is
    undone otherwise, or not at all.
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
    """A comment as its moderators see it: by which rule it is where it is, and why.

    `stood` is what it was before the last decision, None where there was none or it was undone.
    `judged` is when that was. `brought` is what it said of its thread (`naming`).
    """

    comment: "Comment"
    rule: str
    why: str
    stood: Status | None
    judged: datetime | None
    brought: str = ""


class Comment(msgspec.Struct, frozen=True):
    """A comment as stored. `parent` is its place in the tree, `reply_to` whom it answers.

    `changed` is when readers last got to see another state of it: when it was posted, edited or
    retracted; None if they never saw it. `text_revision` is the revision that its text came with:
    what came after it were votes. `pinned` ones are marked for readers.
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
        """Whether readers see only that something was here: listed for its replies' sake."""
        return self.status is not Status.APPROVED

    def has_text_of(self, revision: int) -> bool:
        """Whether what somebody saw at a revision is what stands here, but for votes."""
        return self.text_revision <= revision <= self.revision


class ImportedComment(msgspec.Struct, frozen=True):
    """A comment read from another system's export, on its way into a tree.

    `id` is derived from the source's id, so a second import finds the first one's rows.
    `reply_to` is the id of the comment it answers; the tree decides where that puts it.
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
    """A run of a listing. `replies[i]` is how many listed comments stand below `comments[i]`.

    `cursor` continues after the last one and is None at the end. `changed` is the newest change
    of the thread, None where readers never saw anything.
    """

    comments: tuple[Comment, ...]
    replies: tuple[int, ...]
    cursor: str | None
    total: int
    changed: datetime | None


def newest(moments: Iterable[datetime | None]) -> datetime | None:
    """The latest of some moments, None if there is none."""
    return max((moment for moment in moments if moment is not None), default=None)


def visible(rows: Iterable[Comment]) -> Iterator[Comment]:
    """The rows a reader sees, in the order given.

    `listed` is stored rather than derived here because one query must answer it: a comment is
    listed when it is approved or when something listed stands below it (`tree` keeps that true).
    """
    return (row for row in rows if row.listed)
