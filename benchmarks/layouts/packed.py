"""Comments packed into one property or as JSON, for layouts with many comments per entity.

A list in reading order contains comments with their levels, each comment before its descendants.
"""

import itertools
import zlib
from collections.abc import Sequence
from datetime import datetime

import msgspec

from benchmarks.threads.conversations import Said


class Public(msgspec.Struct, frozen=True):
    """A comment in the form that readers receive."""

    id: str
    parent: str | None
    level: int
    html: str
    author: dict[str, str]
    created: datetime
    edited: datetime | None
    score: int
    status: str
    revision: int


class Placed(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A comment in a list in reading order."""

    level: int
    said: Said

    @property
    def id(self) -> str:
        return self.said.id


_PACKED = msgspec.msgpack.Decoder(list[Placed])


def fragment(said: Said, level: int) -> bytes:
    """Return the JSON of a comment as the API sends it."""
    author = {"name": said.author_name, "website": said.author_website}
    return msgspec.json.encode(
        Public(
            said.id,
            said.parent,
            level,
            said.html,
            author,
            said.created,
            said.edited,
            said.score,
            said.status,
            said.revision,
        )
    )


def pack(run: Sequence[Placed]) -> bytes:
    """Serialize comments to the bytes of one property."""
    return zlib.compress(msgspec.msgpack.encode(run))


def unpack(stored: bytes) -> list[Placed]:
    return _PACKED.decode(zlib.decompress(stored))


def in_order(thread: Sequence[Said]) -> list[Placed]:
    """Return comments in reading order with their levels; `thread` is in order of time."""
    children: dict[str | None, list[Said]] = {}
    for said in thread:
        children.setdefault(said.parent, []).append(said)
    order: list[Placed] = []
    waiting = [Placed(0, root) for root in reversed(children.get(None, ()))]
    while waiting:
        placed = waiting.pop()
        order.append(placed)
        below = children.get(placed.id, ())
        waiting += [Placed(placed.level + 1, said) for said in reversed(below)]
    return order


def place_of(run: Sequence[Placed], comment_id: str) -> int:
    """Return the position of a comment in a list."""
    return next(place for place, placed in enumerate(run) if placed.id == comment_id)


def end_below(run: Sequence[Placed], first: int, level: int) -> int:
    """Return the first position from `first` on with a level of at most `level`, or the end."""
    below = enumerate(itertools.islice(run, first, None), first)
    return next((place for place, placed in below if placed.level <= level), len(run))


def edited(said: Said, html: str) -> Said:
    """Return a comment with a different text."""
    return msgspec.structs.replace(said, body=html, html=html, revision=said.revision + 1)
