"""Public comments: the form of a comment that readers see, and its JSON.

This module defines what the public may learn about a comment: exactly the fields of
`PublicComment`. No field contains an author's id or e-mail address. The JSON is made once per
revision, as a *fragment*. A fragment contains everything except the number of replies and the
place in the thread, which can change without the comment and are added to each response.
"""

import enum
from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple

import msgspec

from comments.domain import decoders, records
from comments.domain.ids import author_ids


class Shown(enum.StrEnum):
    """The statuses that readers can see. Only the comment's author sees `pending`."""

    APPROVED = "approved"
    PENDING = "pending"
    REMOVED = "removed"


class AuthorKind(enum.StrEnum):
    """An author's relation to the site at the time of writing.

    The server determines the kind; authors cannot choose it.

    A guest can use any name, even a moderator's, so only the kind distinguishes a guest from a
    moderator.
    """

    GUEST = "guest"
    MEMBER = "member"
    STAFF = "staff"


class PublicAuthor(msgspec.Struct, frozen=True):
    """The public form of a comment's author.

    `kind` is absent in two cases: for imported comments, whose authors are unknown, and in buckets
    of older releases until these buckets are compacted again. Treat an absent kind as a guest.
    """

    name: str
    website: str
    kind: AuthorKind | msgspec.UnsetType = msgspec.UNSET


class PublicComment(msgspec.Struct, frozen=True):
    """The public form of a comment.

    `html` is sanitized; `replies` counts all comments below this one.

    A removed comment keeps only its place and has no text or author. `replies` is absent if it was
    not counted.

    `position` is the place in the thread in the page's order; the first comment has 1. `subtree`
    contains the positions in reading order of the first and the last comment of the subtree: the
    comment itself and its last descendant. docs/api.md says when these numbers are null or absent.

    `edited_by` is "staff" if the last edit was by an owner or moderator, otherwise absent.

    `pinned` and the fields after it must stay the last fields, because `with_replies` appends them
    to a fragment.
    """

    id: str
    slug: str
    parent: str | None
    reply_to: str | None
    level: int
    html: str
    author: PublicAuthor | None
    created: datetime
    edited: datetime | None
    score: int
    status: Shown
    revision: int
    edited_by: Literal["staff"] | msgspec.UnsetType = msgspec.UNSET
    pinned: bool = False
    replies: int | msgspec.UnsetType = msgspec.UNSET
    position: int | msgspec.UnsetType | None = msgspec.UNSET
    subtree: tuple[int, int] | msgspec.UnsetType | None = msgspec.UNSET


class OwnComment(PublicComment, frozen=True):
    """A comment in an answer to its author.

    The author can edit the text until `editable_until`, which is None if that time has passed.
    """

    editable_until: datetime | None = None


class Place(NamedTuple):
    """The place of a comment. Both numbers count from 1 and are None if they are not known.

    `position` is the place in the page's order, and `start` is the place in reading order.
    """

    position: int | None
    start: int | None


def consecutive_places(first: int, count: int) -> tuple[Place, ...]:
    """Return the places of consecutive comments on a page in reading order."""
    return tuple(Place(position, position) for position in range(first, first + count))


class Rows(msgspec.Struct, frozen=True):
    """Comments as fragments, each with its number of replies.

    `places` contains the place of each comment, or nothing if the response has no places.
    """

    comments: tuple[bytes, ...]
    replies: tuple[int, ...]
    places: tuple[Place, ...] = ()

    def json(self) -> bytes:
        """Return the comments' JSON for a response."""
        if not self.places:
            return b",".join(map(with_replies, self.comments, self.replies))
        return b",".join(map(with_place, self.comments, self.replies, self.places))


class JoinedRows(msgspec.Struct, frozen=True):
    """The JSON of several comments, already joined for a response.

    The JSON is split only on demand.
    """

    sent: bytes

    def json(self) -> bytes:
        """Return the comments' JSON for a response."""
        return self.sent

    @property
    def comments(self) -> tuple[bytes, ...]:
        """Return the fragments."""
        return tuple(comment for comment, _ in map(without_replies, self._split()))

    @property
    def replies(self) -> tuple[int, ...]:
        """Return each comment's number of replies."""
        return tuple(replies for _, replies in map(without_replies, self._split()))

    def first(self, count: int) -> "JoinedRows":
        """Return the first `count` comments."""
        return JoinedRows(b",".join(self._split()[:count]))

    def _split(self) -> list[msgspec.Raw]:
        return _RAW.decode(b"[%b]" % self.sent)


class ThreadPage(msgspec.Struct, frozen=True):
    """A page of a listing.

    `cursor` continues after the last comment and is None at the end. `total` counts the thread's
    comments; `changed` is the time of the thread's newest change, None if the thread has no
    comments yet. `pinned` are the thread's pinned comments; only a first page has them. `first` and
    `last` are the positions of the first and the last comment on the page; None if they are not
    known or if the page is empty. A page around a comment has the comment's id in `around`.
    """

    rows: Rows | JoinedRows
    cursor: str | None
    total: int
    changed: datetime | None
    pinned: Rows | JoinedRows | None = None
    first: int | None = None
    last: int | None = None
    around: str = ""

    @property
    def comments(self) -> tuple[bytes, ...]:
        """Return the fragments of the page's comments."""
        return self.rows.comments

    @property
    def replies(self) -> tuple[int, ...]:
        """Return each comment's number of replies."""
        return self.rows.replies

    def json(self, members: bytes = b"") -> bytes:
        """Return the page's JSON for a response. `members`, with a leading comma, is added."""
        return b'{"comments":[%b],%b%b}' % (self.rows.json(), self.end(), members)

    def end(self) -> bytes:
        """Return the part of the JSON that follows the comments and ends with `members`."""
        cursor = msgspec.json.encode(self.cursor)
        changed = msgspec.json.encode(self.changed)
        ends = _number(self.first), _number(self.last)
        end = b'"cursor":%b,"first":%b,"last":%b,"total":%d,"changed":%b' % (
            cursor, *ends, self.total, changed,
        )  # fmt: skip
        if self.around:
            end = b'%b,"around":"%b"' % (end, self.around.encode())
        return end if self.pinned is None else b'%b,"pinned":[%b]' % (end, self.pinned.json())


class _State(msgspec.Struct, frozen=True):
    """The field of a fragment that identifies tombstones."""

    status: Shown


_STATE = decoders.json(_State)
_DECODER = decoders.json(PublicComment)
_RAW = decoders.json(list[msgspec.Raw])
_PINNED, _UNPINNED = b',"pinned":true}', b',"pinned":false'
_SEEMING = {
    records.Status.SPAM: records.Status.PENDING,
    records.Status.SHADOWED: records.Status.APPROVED,
}
# The statuses that authors see for their own comments; comments with any other status appear as
# removed.
_OWN = {
    records.Status.PENDING: Shown.PENDING,
    records.Status.APPROVED: Shown.APPROVED,
}


def page(listing: records.OrderedPage, pinned: records.PinnedComments | None = None) -> ThreadPage:
    """Convert a page of the ordered query to a public page."""
    places = tuple(map(Place, listing.positions, listing.starts))
    rows = Rows(tuple(map(fragment, listing.comments)), listing.replies, places)
    top = None
    if pinned is not None:
        starts = pinned.starts
        tops = tuple(map(Place, starts if listing.in_order else [None] * len(starts), starts))
        top = Rows(tuple(map(fragment, pinned.comments)), pinned.replies, tops)
    made = ThreadPage(rows, listing.cursor, listing.total, listing.changed, top)
    return with_ends(made, places)


def with_ends(page: ThreadPage, places: Sequence[Place]) -> ThreadPage:
    """Set a page's `first` and `last` from the places of its comments."""
    if not places:
        return page
    return msgspec.structs.replace(page, first=places[0].position, last=places[-1].position)


def comment(
    record: records.Comment, replies: int | msgspec.UnsetType = msgspec.UNSET
) -> PublicComment:
    """Return the public form of a comment; a tombstone contains only its place."""
    gone = record.status is not records.Status.APPROVED  # A tombstone.
    return PublicComment(
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
        edited_by="staff" if record.edited_by_staff and not gone else msgspec.UNSET,
        pinned=record.pinned and not gone,
        replies=replies,
    )


def author(record: records.Author) -> PublicAuthor:
    """Return the public form of a comment's author, with the kind that the server determined."""
    return PublicAuthor(record.name, record.website, kind(record) or msgspec.UNSET)


def kind(record: records.Author) -> AuthorKind | None:
    """Return the kind of an author; None if the kind is unknown."""
    if record.is_staff:
        return AuthorKind.STAFF
    if record.id.startswith(author_ids.ACCOUNT):
        return AuthorKind.MEMBER
    return AuthorKind.GUEST if record.id.startswith(author_ids.GUEST) else None


def author_view(
    record: records.Comment,
    replies: int | msgspec.UnsetType = msgspec.UNSET,
    *,
    editable_until: datetime | None = None,
) -> OwnComment:
    """Return the author's view of their own comment; a pending comment has its text and status.

    `status_for_author` defines the status. A comment that appears as removed cannot be edited.
    """
    shown = _OWN.get(status_for_author(record.status))
    if shown is None:
        return OwnComment(**msgspec.structs.asdict(comment(record, replies)))
    approved = msgspec.structs.replace(record, status=records.Status.APPROVED)
    seen = msgspec.structs.asdict(comment(approved, replies))
    return OwnComment(**seen | {"status": shown, "editable_until": editable_until})


def status_for_author(status: records.Status) -> records.Status:
    """Return the status that a comment's author sees.

    Spam appears as pending and a shadowed comment as approved, so persistent authors learn nothing
    about the decision.
    """
    return _SEEMING.get(status, status)


# The statuses of the comments that their author sees.
OWN_STATUSES = tuple(status for status in records.Status if status_for_author(status) in _OWN)


def fragment(record: records.Comment) -> bytes:
    """Encode a comment as a JSON object without `replies`, and with `pinned` only if it is true.

    `with_replies` adds both, so buckets need not store the same words for every comment.
    """
    made = msgspec.json.encode(comment(record))
    return made if is_pinned(made) else made.removesuffix(_UNPINNED + b"}") + b"}"


def is_pinned(made: bytes) -> bool:
    """Return whether a fragment contains a pinned comment."""
    return made.endswith(_PINNED)


def is_shown(made: bytes) -> bool:
    """Return whether a fragment contains a visible comment rather than a tombstone."""
    return _STATE.decode(made).status is not Shown.REMOVED


def read(made: bytes, replies: int) -> PublicComment:
    """Decode a fragment and set its number of replies."""
    return _DECODER.decode(with_replies(made, replies))


def with_replies(made: bytes, replies: int) -> bytes:
    """Append the number of replies to a fragment, and `pinned` if it is missing."""
    mark = b"" if is_pinned(made) else _UNPINNED
    return b'%b%b,"replies":%d}' % (made[:-1], mark, replies)


def with_place(made: bytes, replies: int, place: Place) -> bytes:
    """Append what `with_replies` appends, and the comment's place."""
    position, start = place
    subtree = b"null" if start is None else b"[%d,%d]" % (start, start + replies)
    return b'%b,"position":%b,"subtree":%b}' % (
        with_replies(made, replies)[:-1], _number(position), subtree,
    )  # fmt: skip


def _number(number: int | None) -> bytes:
    return b"null" if number is None else b"%d" % number


def without_replies(shown: msgspec.Raw) -> tuple[bytes, int]:
    """Split a comment's JSON into the fragment and the number of replies. The place is dropped."""
    made, _, rest = bytes(shown).rpartition(b',"replies":')
    replies = rest[:-1].partition(b",")[0]
    return made.removesuffix(_UNPINNED) + b"}", int(replies)
