"""The first page of a thread, made when the thread is folded (pure).

Owns the stored form of a *head*: the first rows in reading order with their numbers of replies, and
what else the first page says. It lies in the directory's entity and is written with it, so the
first page of a thread at rest is one look-up, whatever the thread's size, and neither the directory
nor a bucket is unpacked for it. What must stay true: a head shows what the view of its directory
shows where nothing beside it has changed, and carries that view's tag; a reader uses it only then.

    head      the form's number, one byte
              msgpack [tag, total, changed, about, weight, hashes, sent]

`sent` is the JSON of the rows with their numbers of replies, as an answer sends them. Nothing is
compressed: reading a few pages more takes less time than unpacking them.

A thread whose first rows are too long has none; nor has what an older release folded, and a form
that this release does not know counts as none. All of these are read without it.
"""

import itertools
from datetime import datetime

import msgspec

from comments.domain import presentation, records
from comments.domain.crypto import cursors
from comments.reading.materialized import merged_view

ROWS = 50  # as many as a page has whose reader names no limit
BYTES = 96 * 1024  # of the rows' JSON; the directory in the same entity leaves room for them
_FORM = b"\x02"


class Head(msgspec.Struct, frozen=True, array_like=True):
    """The first rows, all of them if there are no more. `weight` is that of the directory."""

    tag: str
    total: int
    changed: datetime | None
    about: records.ThreadHeading | None
    weight: int
    hashes: tuple[str, ...]
    sent: bytes

    def holds(self, limit: int) -> bool:
        """Whether it is enough for a page of this length."""
        return len(self.hashes) >= min(limit, self.total)

    def page(self, limit: int, *, label: str, secret: str) -> presentation.ThreadPage:
        """The first page, of a length that it `holds`; `label` is the listing's."""
        run = presentation.Run(self.sent)
        hashes = self.hashes[:limit]
        has_more = self.total > len(hashes)
        return presentation.ThreadPage(
            rows=run if hashes == self.hashes else run.first(limit),
            cursor=cursors.seal([hashes[-1]], label, secret) if has_more else None,
            total=self.total,
            changed=self.changed,
        )


def of(view: merged_view.View) -> Head | None:
    """The head of a directory, from its view without a delta; None if its rows are too long."""
    rows = list(itertools.islice(view.rows(limit=ROWS), ROWS))
    if sum(len(row.json) for row in rows) > BYTES:
        return None
    replies = tuple(view.below(row.sort_hash) for row in rows)
    return Head(
        tag=view.tag,
        total=view.total,
        changed=view.changed,
        about=view.directory.content.about,
        weight=view.directory.weight,
        hashes=tuple(row.sort_hash for row in rows),
        sent=presentation.Rows(tuple(row.json for row in rows), replies).json(),
    )


def about(view: merged_view.View) -> records.ThreadHeading | None:
    """What the directory of a view says of its thread; None where the thread has to be asked.

    It has to be while the comment that the title came with is out of readers' sight and no folding
    has followed yet: whatever that one brought is shown no more from the moment of the decision.
    """
    found = view.directory.content.about
    if found is None or not view.total:
        return None
    if not found.by:
        return None if view.is_patched else found
    mark = view.mark_of(found.by)
    return found if mark is None or (mark.json and presentation.is_shown(mark.json)) else None


def encode(head: Head | None) -> bytes:
    """Write a head; nothing for none."""
    return b"" if head is None else _FORM + msgspec.msgpack.encode(head)


def decode(stored: bytes) -> Head | None:
    """Read a head; None where there is none of this form."""
    if not stored.startswith(_FORM):
        return None
    return _HEAD.decode(memoryview(stored)[1:])


_HEAD = msgspec.msgpack.Decoder(Head)
