"""Discussions for the benchmarks: the comments of a shape, with texts.

This module defines the data of a comment that every layout stores, and an order that depends only
on parent links. Texts are generated from an invented vocabulary whose words have the frequencies of
a natural language, with the lengths of real comments (median 18 words). zlib compresses them about
as well as real comments, unlike repeated sentences.
"""

import hashlib
import itertools
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import msgspec

from benchmarks.threads import shapes
from comments.store.models import comment_rows

START = datetime(2026, 1, 1, tzinfo=UTC)
_WORDS = 12_000
_MEDIAN_WORDS, _SPREAD, _MOST_WORDS = 2.9, 0.95, 600  # exp(2.9) = 18.


class Said(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One comment with all its stored data."""

    id: str
    parent: str | None
    author_name: str
    author_website: str
    author_email: str
    author_id: str
    body: str
    html: str
    created: datetime
    edited: datetime | None = None
    status: str = "approved"
    score: int = 0
    revision: int = 1


def thread(shape: shapes.Shape, seed: int = 1, first: int = 0) -> list[Said]:
    """Return the comments of a shape, in order of time; a different `first` gives different ids."""
    chance = random.Random(seed)
    vocabulary = _vocabulary(chance)
    names = ids(len(shape), first)
    return [
        _said(
            names[place],
            None if parent is None else names[parent],
            place,
            _text(chance, vocabulary),
        )
        for place, parent in enumerate(shape)
    ]


def ids(count: int, first: int = 0) -> list[str]:
    """Return only the ids of a thread's comments."""
    return [_id(first + place) for place in range(count)]


def _said(comment_id: str, parent: str | None, place: int, body: str) -> Said:
    """Return one comment, posted `place` seconds after the first."""
    reader = place % 400
    return Said(
        id=comment_id,
        parent=parent,
        author_name=f"reader {reader}",
        author_website="",
        author_email=f"reader{reader}@example.org",
        author_id=f"g:{_id(reader)}",
        body=body,
        html=f"<p>{body}</p>\n",
        created=START + timedelta(seconds=place),
    )


def walk(thread: Sequence[Said]) -> list[str]:
    """Return the ids of a thread in reading order, by traversal of the parent links."""
    children: dict[str | None, list[Said]] = {}
    for each in thread:
        children.setdefault(each.parent, []).append(each)
    order: list[str] = []
    waiting = children.get(None, [])[::-1]
    while waiting:
        found = waiting.pop()
        order.append(found.id)
        waiting += children.get(found.id, [])[::-1]
    return order


def _id(place: int) -> str:
    return comment_rows.comment_id(hashlib.sha256(f"talk {place}".encode()).digest())


def _vocabulary(chance: random.Random) -> tuple[list[str], list[float]]:
    syllables = ["".join(pair) for pair in itertools.product("bdfgklmnprstvw", "aeiou")]
    words = [
        "".join(chance.choices(syllables, k=chance.choice((1, 1, 2, 2, 3)))) for _ in range(_WORDS)
    ]
    return words, list(itertools.accumulate(1 / (rank + 3) for rank in range(_WORDS)))


def _text(chance: random.Random, vocabulary: tuple[list[str], list[float]]) -> str:
    count = min(_MOST_WORDS, 1 + int(chance.lognormvariate(_MEDIAN_WORDS, _SPREAD)))
    return " ".join(chance.choices(vocabulary[0], cum_weights=vocabulary[1], k=count))
