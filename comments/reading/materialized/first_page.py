"""Make a thread's first page during compaction, and define the page's stored format (pure).

The stored first page is called the *head*. The head contains the first rows in reading order, with
their reply counts, and the page's other values. The head is part of the directory's entity. If a
thread has not changed since its compaction, its first page costs one lookup, regardless of the
thread's size. Neither the directory nor a bucket is decoded for that page.

    head      the number of the stored format, one byte
              msgpack [tag, total, changed, about, weight, hashes, sent, pinned, shape]

`sent` is the JSON of the rows with their reply counts and places, in the form that a response
contains; `pinned` is the same for the pinned comments.
Nothing is compressed, because reading a few more pages of data is faster than decompressing.

A thread has no head if its first rows are too long, or if an older release compacted the thread. A
head in an unknown format is treated as missing. Threads without a head are read from a view.

A head shows the same page, and has the same tag, as the view of its directory without a delta.
Readers use a head only while nothing has changed since the directory was written.
"""

import itertools
from datetime import datetime

import msgspec

from comments.domain import decoders, presentation, records
from comments.domain.crypto import cursors
from comments.reading.materialized import arrangements, merged_view

ROWS = 50  # The default length of a page.
BYTES = 96 * 1024  # Maximum bytes of the rows' JSON, which the directory leaves room for.
_FORM = b"\x04"


class FirstPage(msgspec.Struct, frozen=True, array_like=True):
    """The first page of a thread. `weight` is the directory's approximate memory use in bytes."""

    tag: str
    total: int
    changed: datetime | None
    about: records.ThreadHeading | None
    weight: int
    hashes: tuple[str, ...]
    sent: bytes
    pinned: bytes
    shape: int = 0

    def has_enough(self, limit: int) -> bool:
        """Return whether the head has enough rows for a page of this length."""
        return len(self.hashes) >= min(limit, self.total)

    def page(self, limit: int, *, label: str, secret: str) -> presentation.ThreadPage:
        """Make the first page. The head must have enough rows; `label` identifies the listing."""
        run = presentation.JoinedRows(self.sent)
        hashes = self.hashes[:limit]
        has_more = self.total > len(hashes)
        page = presentation.ThreadPage(
            rows=run if hashes == self.hashes else run.first(limit),
            cursor=(
                cursors.seal([hashes[-1]], label, secret, shape=self.shape) if has_more else None
            ),
            total=self.total,
            changed=self.changed,
            pinned=presentation.JoinedRows(self.pinned),
        )
        return presentation.with_ends(page, presentation.consecutive_places(1, len(hashes)))


def of(view: merged_view.View) -> FirstPage | None:
    """Make a directory's head from its view without a delta. Return None if rows are too long."""
    rows = list(itertools.islice(view.rows(limit=ROWS), ROWS))
    if sum(len(row.json) for row in (*rows, *view.pinned_entries)) > BYTES:
        return None
    replies = tuple(view.below(row.sort_hash) for row in rows)
    return FirstPage(
        tag=view.tag,
        total=view.total,
        changed=view.changed,
        about=view.directory.content.about,
        weight=view.directory.weight,
        hashes=tuple(row.sort_hash for row in rows),
        sent=presentation.Rows(
            tuple(row.json for row in rows), replies, presentation.consecutive_places(1, len(rows))
        ).json(),
        pinned=pinned_rows(view).json(),
        shape=view.shape,
    )


def pinned_rows(
    view: merged_view.View, order: arrangements.Arrangement | None = None
) -> presentation.Rows:
    """Return the pinned comments of a thread, for its first page in an order.

    Without an order, return their places for reading order.
    """
    rows = view.pinned_entries
    below = tuple(view.below(row.sort_hash) for row in rows)
    starts = [view.position(row.sort_hash) for row in rows]
    places = tuple(
        presentation.Place(
            1 + (order.position(row.sort_hash, start) if order else start), 1 + start
        )
        for row, start in zip(rows, starts, strict=True)
    )
    return presentation.Rows(tuple(row.json for row in rows), below, places)


def about(view: merged_view.View) -> records.ThreadHeading | None:
    """Return the thread's heading from a view's directory, or None if the thread must be read."""
    # If the comment that set the title has been hidden since the last compaction, the thread must
    # be read, because the title must disappear together with the comment.
    heading = view.directory.content.about
    if heading is None or not view.total:
        return None
    if not heading.by:
        return None if view.is_patched else heading
    mark = view.mark_of(heading.by)
    return heading if mark is None or (mark.json and presentation.is_shown(mark.json)) else None


def encode(page: FirstPage | None) -> bytes:
    """Encode a head in the stored format. For None, return empty bytes."""
    return b"" if page is None else _FORM + msgspec.msgpack.encode(page)


def decode(stored: bytes) -> FirstPage | None:
    """Decode a stored head. Return None if the head is missing or not in the current format."""
    if not stored.startswith(_FORM):
        return None
    return _HEAD.decode(memoryview(stored)[1:])


_HEAD = decoders.msgpack(FirstPage)
