"""A comment as the public sees it, and as the JSON that is sent.

Owns what may be said of a comment to anyone: exactly the fields of `Comment`. An author's id and
e-mail have no field here. Its JSON is made once per revision, as a *fragment*: everything but the
number of replies, which changes without the comment and is put in when an answer is made.
"""

import enum
from datetime import datetime

import msgspec

from comments.domain import author_ids, records


class Shown(enum.StrEnum):
    """What readers learn of a comment's state. Only its author learns that one is `pending`."""

    APPROVED = "approved"
    PENDING = "pending"
    REMOVED = "removed"


class Kind(enum.StrEnum):
    """What an author was to the site when they wrote. Made by the server, never by the author.

    A guest may have any name, that of a moderator too, so this is what tells them apart.
    """

    GUEST = "guest"
    MEMBER = "member"
    STAFF = "staff"


class Author(msgspec.Struct, frozen=True):
    """What the public learns of who wrote a comment.

    `kind` is absent for imported comments, whose authors nobody knows, and in buckets of releases
    that did not have it, until their comments are folded again: treat that as a guest.
    """

    name: str
    website: str
    kind: Kind | msgspec.UnsetType = msgspec.UNSET


class Comment(msgspec.Struct, frozen=True):
    """A comment as the public sees it. `html` is sanitised; `replies` counts all below it.

    A removed comment keeps its place only: no text, no author. `replies` is absent where it was
    not counted, and stays the last field: `with_replies` puts it behind a fragment. `pinned` is
    there where it is true.
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
    pinned: bool | msgspec.UnsetType = msgspec.UNSET
    replies: int | msgspec.UnsetType = msgspec.UNSET


class Rows(msgspec.Struct, frozen=True):
    """Comments as fragments, each with its number of replies."""

    comments: tuple[bytes, ...]
    replies: tuple[int, ...]

    def json(self) -> bytes:
        """The comments as they are sent."""
        return b",".join(map(with_replies, self.comments, self.replies))


class Run(msgspec.Struct, frozen=True):
    """Comments that were put together as they are sent. Taken apart only for who asks."""

    sent: bytes

    def json(self) -> bytes:
        """The comments as they are sent."""
        return self.sent

    @property
    def comments(self) -> tuple[bytes, ...]:
        """The fragments."""
        return tuple(comment for comment, _ in map(without_replies, self._shown()))

    @property
    def replies(self) -> tuple[int, ...]:
        """The number of replies of each."""
        return tuple(replies for _, replies in map(without_replies, self._shown()))

    def first(self, count: int) -> "Run":
        """No more than so many of them."""
        return Run(b",".join(self._shown()[:count]))

    def _shown(self) -> list[msgspec.Raw]:
        return _RAW.decode(b"[%b]" % self.sent)


class ThreadPage(msgspec.Struct, frozen=True):
    """A run of a listing.

    `cursor` continues after the last one and is None at the end. `total` counts the comments of
    the thread and `changed` is its newest change, None where nobody wrote yet.
    """

    rows: Rows | Run
    cursor: str | None
    total: int
    changed: datetime | None

    @property
    def comments(self) -> tuple[bytes, ...]:
        """The fragments of its comments."""
        return self.rows.comments

    @property
    def replies(self) -> tuple[int, ...]:
        """How many replies each of them has."""
        return self.rows.replies

    def json(self) -> bytes:
        """The page as it is sent."""
        return b'{"comments":[%b],%b}' % (self.rows.json(), self.end())

    def end(self) -> bytes:
        """What is sent behind the comments."""
        cursor = msgspec.json.encode(self.cursor)
        changed = msgspec.json.encode(self.changed)
        return b'"cursor":%b,"total":%d,"changed":%b' % (cursor, self.total, changed)


class _State(msgspec.Struct, frozen=True):
    """What of a fragment says whether it is a tombstone."""

    status: Shown


_STATE = msgspec.json.Decoder(_State)
_DECODER = msgspec.json.Decoder(Comment)
_RAW = msgspec.json.Decoder(list[msgspec.Raw])
_SEEMING = {
    records.Status.SPAM: records.Status.PENDING,
    records.Status.SHADOWED: records.Status.APPROVED,
}
# What an author is shown of a comment that is not taken away from him.
_OWN = {
    records.Status.PENDING: Shown.PENDING,
    records.Status.APPROVED: Shown.APPROVED,
}


def page(listing: records.OrderedPage) -> ThreadPage:
    """A page of the floor as the public may see it."""
    rows = Rows(tuple(map(fragment, listing.comments)), listing.replies)
    return ThreadPage(rows, listing.cursor, listing.total, listing.changed)


def comment(record: records.Comment, replies: int | msgspec.UnsetType = msgspec.UNSET) -> Comment:
    """A comment as the public may see it: of a tombstone, its place and nothing of its content."""
    gone = record.status is not records.Status.APPROVED  # a tombstone
    return Comment(
        id=record.id,
        slug=record.slug,
        parent=record.parent,
        reply_to=record.reply_to,
        level=record.level,
        html="" if gone else record.html,
        author=None if gone else author(record.author),
        created=record.created,
        edited=record.edited if record.edited and not gone else None,
        score=0 if gone else record.score,
        status=Shown.REMOVED if gone else Shown.APPROVED,
        revision=record.revision,
        pinned=True if record.pinned and not gone else msgspec.UNSET,
        replies=replies,
    )


def author(record: records.Author) -> Author:
    """The author of a comment as the public may see them, with the server's mark."""
    return Author(record.name, record.website, kind(record) or msgspec.UNSET)


def kind(record: records.Author) -> Kind | None:
    """The mark of an author; None where nobody knows who they were."""
    if record.is_staff:
        return Kind.STAFF
    if record.id.startswith(author_ids.ACCOUNT):
        return Kind.MEMBER
    return Kind.GUEST if record.id.startswith(author_ids.GUEST) else None


def own(record: records.Comment, replies: int | msgspec.UnsetType = msgspec.UNSET) -> Comment:
    """A comment as its author may see it: what waits with its text, and a word that it waits.

    See `seeming`.
    """
    shown = _OWN.get(seeming(record.status))
    if shown is None:
        return comment(record, replies)
    approved = msgspec.structs.replace(record, status=records.Status.APPROVED)
    return msgspec.structs.replace(comment(approved, replies), status=shown)


def seeming(status: records.Status) -> records.Status:
    """What a comment's author is told that became of it.

    What a rule holds for spam seems to wait like everything else, and what is in the shadow seems
    to be there: who tries again and again learns nothing.
    """
    return _SEEMING.get(status, status)


def fragment(record: records.Comment) -> bytes:
    """The JSON of a comment, a whole object without `replies`."""
    return msgspec.json.encode(comment(record))


def is_shown(made: bytes) -> bool:
    """Whether a fragment is of a comment that readers see, and not of a tombstone."""
    return _STATE.decode(made).status is not Shown.REMOVED


def read(made: bytes, replies: int) -> Comment:
    """The comment of a fragment, with its number of replies."""
    return _DECODER.decode(with_replies(made, replies))


def with_replies(made: bytes, replies: int) -> bytes:
    """The JSON of a comment with its number of replies."""
    return b'%b,"replies":%d}' % (made[:-1], replies)


def without_replies(shown: msgspec.Raw) -> tuple[bytes, int]:
    """The fragment that `with_replies` was given, and the number."""
    made, _, replies = bytes(shown).rpartition(b',"replies":')
    return made + b"}", int(replies[:-1])
