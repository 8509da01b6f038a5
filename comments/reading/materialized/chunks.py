"""Divide a whole thread or subtree into pieces of JSON, one for each bucket (pure).

A piece contains the rows of one bucket, merged with the changed rows in the bucket's range. It also
contains the number of replies to each row. A piece's *mark* is a digest of all inputs of the piece:
the bucket, the changed rows in the bucket's range, and the number of later rows below each comment
in the piece. The mark is known without reading the bucket. Pieces with the same mark have the same
bytes, so after a change, only the pieces that show the change are made again.

In reading order, replies follow the comment that they answer, so one pass over a piece counts the
replies in the piece. Replies after the end of the piece are added to these counts.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from comments.domain import presentation
from comments.domain.ids import sorthash
from comments.reading.materialized import buckets, merged_view


class Piece(msgspec.Struct, frozen=True):
    """A part of the list. A piece starts with a comma unless it is the first piece with rows.

    `start` is a hash in the range of the piece's bucket. `make` returns the JSON.
    """

    mark: bytes
    start: str
    make: Callable[[], bytes]


class Whole(msgspec.Struct, frozen=True):
    """A list of comments in pieces. `about` is the page without its comments.

    `read` loads the buckets of the given pieces in one call.
    """

    about: presentation.ThreadPage
    pieces: tuple[Piece, ...]
    read: Callable[[Sequence[Piece]], None]

    @property
    def head(self) -> bytes:
        """Return the JSON before the pieces."""
        return b'{"comments":['

    def end(self, members: bytes = b"") -> bytes:
        """Return the JSON after the pieces. `members` are further JSON members, after a comma."""
        return b"],%b%b}" % (self.about.end(), members)

    def json(self, members: bytes = b"") -> bytes:
        """Make the complete JSON."""
        self.read(self.pieces)
        pieces = (piece.make() for piece in self.pieces)
        return b"".join((self.head, *pieces, self.end(members)))


def divide(view: merged_view.View, low: str = "", high: str = sorthash.ABOVE) -> Whole:
    """Divide all rows with low <= hash < high into pieces."""
    about = presentation.ThreadPage(presentation.Rows((), ()), None, view.total, view.changed)
    return Whole(
        about,
        tuple(_pieces(view, low, high)),
        lambda pieces: view.load_buckets(piece.start for piece in pieces),
    )


def _pieces(view: merged_view.View, low: str, high: str) -> Iterator[Piece]:
    is_first = True
    for start, end, key, beyond in _runs(view.directory, low, high):
        # Rows at or after `high` are not in the list and are not counted.
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
    """Yield each piece's range, its bucket's key, and the descendant counts after the range."""
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
    """Count the rows below each row, in one pass with a stack of open ancestors."""
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
