"""The first page of a thread, made when the thread is folded (pure).

Owns the stored form of a *head*: the first rows in reading order with their numbers of replies, and
what else the first page says. It lies in the directory's entity and is written with it, so the
first page of a thread at rest is one look-up, whatever the thread's size, and neither the directory
nor a bucket is unpacked for it. What must stay true: a head shows what the view of its directory
shows where nothing beside it has changed, and carries that view's tag; a reader uses it only then.

    head      the form's number, one byte; zlib(msgpack [tag, total, changed, about, weight, rows])
    row       [hash, json, replies]

A thread whose first rows are too long has none; nor has what an older release folded, and a form
that this release does not know counts as none. All of these are read without it.
"""

import itertools
import zlib
from collections.abc import Sequence
from datetime import datetime

import msgspec

from comments import buckets, cursors, public, views

ROWS = 50  # as many as a page has whose reader names no limit
BYTES = 96 * 1024  # of the rows' JSON; the directory in the same entity leaves room for them
_FORM = b"\x01"


class Row(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One of the first rows. `json` is its fragment (`public.fragment`)."""

    sort_hash: str
    json: bytes
    replies: int


class Head(msgspec.Struct, frozen=True, array_like=True):
    """The first rows, all of them if there are no more. `weight` is that of the directory."""

    tag: str
    total: int
    changed: datetime | None
    about: buckets.About | None
    weight: int
    rows: tuple[Row, ...]

    def holds(self, limit: int) -> bool:
        """Whether it is enough for a page of this length."""
        return len(self.rows) >= min(limit, self.total)

    def page(self, limit: int, *, label: str, secret: str) -> public.Page:
        """The first page, of a length that it `holds`; `label` is the listing's."""
        rows: Sequence[Row] = self.rows[:limit]
        has_more = self.total > len(rows)
        return public.Page(
            comments=tuple(row.json for row in rows),
            replies=tuple(row.replies for row in rows),
            cursor=cursors.seal([rows[-1].sort_hash], label, secret) if has_more else None,
            total=self.total,
            changed=self.changed,
            about=self.about,
        )


def of(view: views.View) -> Head | None:
    """The head of a directory, from its view without a delta; None if its rows are too long."""
    rows = list(itertools.islice(view.rows(limit=ROWS), ROWS))
    if sum(len(row.json) for row in rows) > BYTES:
        return None
    return Head(
        tag=view.tag,
        total=view.total,
        changed=view.changed,
        about=view.directory.content.about,
        weight=view.directory.weight,
        rows=tuple(Row(row.sort_hash, row.json, view.below(row.sort_hash)) for row in rows),
    )


def encode(head: Head | None) -> bytes:
    """Write a head; nothing for none."""
    return b"" if head is None else _FORM + zlib.compress(msgspec.msgpack.encode(head))


def decode(stored: bytes) -> Head | None:
    """Read a head; None where there is none of this form."""
    if not stored.startswith(_FORM):
        return None
    return _HEAD.decode(zlib.decompress(memoryview(stored)[1:]))


_HEAD = msgspec.msgpack.Decoder(Head)
