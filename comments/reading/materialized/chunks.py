"""A whole run of a thread as pieces of JSON, one for each bucket (pure).

Owns what a piece depends on, so that after a change only the pieces that show it are made again.
A piece lists the rows of one bucket and those that stand among them, with their numbers of replies.
It depends on the bucket, on the changed rows in its range, and on what stands behind it below a
comment that it shows: nothing else. That is its *mark*, known without reading the bucket. Pieces of
one mark are the same bytes.

Rows stand in reading order, so what is below a comment follows it: numbers of replies come from
one walk over the piece, with what lies behind its end added to the comments above that.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from comments.domain import presentation, sorthash
from comments.reading.materialized import buckets, merged_view


class Piece(msgspec.Struct, frozen=True):
    """A part of the list; with its comma, if others come before. `start` lies in its bucket."""

    mark: bytes
    start: str
    make: Callable[[], bytes]


class Whole(msgspec.Struct, frozen=True):
    """A list in pieces. `about` is the page without its comments.

    `read` reads the buckets of pieces that are to be made, in one call.
    """

    about: presentation.ThreadPage
    pieces: tuple[Piece, ...]
    read: Callable[[Sequence[Piece]], None]

    @property
    def head(self) -> bytes:
        """What comes before the pieces."""
        return b'{"comments":['

    @property
    def end(self) -> bytes:
        """What comes after them."""
        return b"],%b}" % self.about.end()

    def json(self) -> bytes:
        """All of it."""
        self.read(self.pieces)
        return b"".join((self.head, *(piece.make() for piece in self.pieces), self.end))


def cut(view: merged_view.View, low: str = "", high: str = sorthash.ABOVE) -> Whole:
    """The rows with low <= hash < high, all of them."""
    about = presentation.ThreadPage(presentation.Rows((), ()), None, view.total, view.changed)
    return Whole(
        about,
        tuple(_pieces(view, low, high)),
        lambda pieces: view.read(piece.start for piece in pieces),
    )


def _pieces(view: merged_view.View, low: str, high: str) -> Iterator[Piece]:
    is_first = True
    for start, end, key, beyond in _runs(view.directory, low, high):
        # What is cut by `high` has nothing behind it: the list ends there.
        behind = {
            above: count + view.weight(end, sorthash.subtree_range(above)[1])
            for above, count in beyond.items()
            if above >= start
        }
        made_of = (key, start, end, is_first, view.changes(start, end), behind)
        mark = hashlib.sha256(msgspec.msgpack.encode(made_of)).digest()
        yield Piece(mark, start, _maker(view, start, end, behind, is_first=is_first))
        is_first = is_first and not view.count(start, end)


def _runs(
    directory: buckets.Directory, low: str, high: str
) -> Iterator[tuple[str, str, str, Mapping[str, int]]]:
    """The ranges of the pieces, each with its bucket's key and what lies behind its end."""
    lines = directory.lines
    if not lines:
        yield low, high, "", {}
        return
    first = directory.line_of(low)
    for place in range(first, len(lines)):
        start = low if place == first else lines[place].first
        if start >= high:
            return
        end = lines[place + 1].first if place + 1 < len(lines) else sorthash.ABOVE
        beyond = directory.beyond(place) if end < high else {}
        yield start, min(end, high), lines[place].key, beyond


def _maker(
    view: merged_view.View, start: str, end: str, behind: Mapping[str, int], *, is_first: bool
) -> Callable[[], bytes]:
    def make() -> bytes:
        rows = list(view.rows(start, end))
        sizes = _sizes([row.sort_hash for row in rows], behind)
        made = b",".join(
            presentation.with_replies(row.json, size) for row, size in zip(rows, sizes, strict=True)
        )
        return made if is_first or not made else b"," + made

    return make


def _sizes(hashes: Sequence[str], behind: Mapping[str, int]) -> list[int]:
    """How many rows stand below each of a run, by one walk with a stack of open ones."""
    sizes = [0] * len(hashes)
    open_: list[int] = []
    for place, sort_hash in enumerate(hashes):
        while open_ and not sort_hash.startswith(hashes[open_[-1]]):
            open_.pop()
        for above in open_:
            sizes[above] += 1
        sizes[place] = behind.get(sort_hash, 0)
        open_.append(place)
    return sizes
