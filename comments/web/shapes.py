"""What goes over the wire: every request and answer of the API as a typed value.

The same types decode requests, encode answers and describe both in the OpenAPI document, so the
three cannot disagree. What may be said of a comment in public is exactly `Comment`: an author's
id and e-mail have no field here.
"""

import enum
from datetime import datetime
from typing import Annotated

import msgspec

from comments import records

DEFAULT_LIMIT = 50
MAX_LIMIT = 200
MAX_COUNTS = 100

# The lengths hold where a pattern alone does not: "$" also matches before a final line break.
CommentId = Annotated[str, msgspec.Meta(pattern="^[a-z2-7]{26}$", min_length=26, max_length=26)]
Parent = Annotated[str, msgspec.Meta(pattern="^([a-z2-7]{26}|root)$", max_length=26)]
Cursor = Annotated[str, msgspec.Meta(min_length=1)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_LIMIT)]


class Shown(enum.StrEnum):
    """What readers learn of a comment's state."""

    APPROVED = "approved"
    REMOVED = "removed"


class Order(enum.StrEnum):
    """The orders a listing can be asked for."""

    THREAD = "thread"
    OLDEST = "oldest"
    NEWEST = "newest"


class _Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a caller sends: a field we do not know is refused, not dropped."""


class ListQuery(_Request, frozen=True):
    """The query of a listing, apart from `thread` and `page`."""

    order: Order = Order.THREAD
    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor | msgspec.UnsetType = msgspec.UNSET
    parent: Parent | msgspec.UnsetType = msgspec.UNSET
    around: CommentId | msgspec.UnsetType = msgspec.UNSET


class RepliesQuery(_Request, frozen=True):
    """The query of a subtree's listing."""

    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor | msgspec.UnsetType = msgspec.UNSET


class NoQuery(_Request, frozen=True):
    """No query, apart from `thread` and `page` where a call takes them."""


class NewComment(_Request, frozen=True):
    """A comment to be posted. `parent` is the comment it answers; absent for a root."""

    name: str
    body: str
    parent: CommentId | None = None
    website: str = ""
    email: str = ""
    title: str = ""
    url: str = ""


class NewBody(_Request, frozen=True):
    """A text in Markdown: an edit, or a preview."""

    body: str


class ThreadList(_Request, frozen=True):
    """Threads by id, to be counted."""

    threads: Annotated[list[str], msgspec.Meta(max_length=MAX_COUNTS)]


class Author(msgspec.Struct, frozen=True):
    """What the public learns of who wrote a comment."""

    name: str
    website: str


class Comment(msgspec.Struct, frozen=True):
    """A comment as the public sees it. `html` is sanitised; `replies` counts all below it.

    A removed comment keeps its place only: no text, no author. `replies` is absent where it was
    not counted.
    """

    id: str
    slug: str
    parent: str | None
    reply_to: str | None
    level: int
    html: str
    author: Author | None
    created: datetime
    edited: datetime | None
    score: int
    status: Shown
    revision: int
    replies: int | msgspec.UnsetType = msgspec.UNSET


class CommentPage(msgspec.Struct, frozen=True):
    """A run of a listing. `cursor` continues it; `total` counts the listed comments of it all."""

    comments: list[Comment]
    cursor: str | None
    total: int


class PostedComment(msgspec.Struct, frozen=True):
    """A comment just posted, and the token with which its guest may change it until `expires`."""

    comment: Comment
    token: str
    expires: datetime


class OneComment(msgspec.Struct, frozen=True):
    """A comment, and those it stands below, root first."""

    comment: Comment
    ancestors: list[Comment]


class ChangedComment(msgspec.Struct, frozen=True):
    """A comment after a change."""

    comment: Comment


class Preview(msgspec.Struct, frozen=True):
    """A text as it would be stored."""

    html: str


class Counts(msgspec.Struct, frozen=True):
    """Listed comments per thread, in the order asked."""

    counts: list[int]


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """An error (RFC 9457). `code` is stable; `field` names the value that was refused."""

    title: str
    status: int
    code: str
    detail: str
    field: str = ""


def comment(record: records.Comment, replies: int | msgspec.UnsetType = msgspec.UNSET) -> Comment:
    """A comment as the public may see it: of a tombstone, its place and nothing of its content."""
    gone = record.is_tombstone
    return Comment(
        id=record.id,
        slug=record.slug,
        parent=record.parent,
        reply_to=record.reply_to,
        level=record.level,
        html="" if gone else record.html,
        author=None if gone else Author(record.author.name, record.author.website),
        created=record.created,
        edited=record.edited if record.edited and not gone else None,
        score=0 if gone else record.score,
        status=Shown.REMOVED if gone else Shown.APPROVED,
        revision=record.revision,
        replies=replies,
    )


def page(listing: records.Page) -> CommentPage:
    """A run of a listing as the public may see it."""
    pairs = zip(listing.comments, listing.replies, strict=True)
    return CommentPage(
        comments=[comment(record, replies) for record, replies in pairs],
        cursor=listing.cursor,
        total=listing.total,
    )
