"""Choose which buckets to rewrite, and divide rows into buckets (pure).

This module applies the size limits (`Sizes`). Changed rows stay in the directory's tail until the
tail is full. Then the buckets with the most changed rows are rewritten. A bucket is rewritten
immediately if it contains text that must be removed.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from comments.reading.materialized import buckets

PART_BYTES = 900 * 1024  # Maximum bytes of a directory in one entity; Datastore's limit is 1 MiB


class Sizes(NamedTuple):
    """Upper limits for buckets and for the directory's tail."""

    bucket_rows: int
    bucket_bytes: int  # Maximum bytes of a bucket's JSON before compression
    tail_rows: int
    tail_bytes: int


def buckets_to_rewrite(
    sizes: Sizes, by_line: Mapping[int, Sequence[buckets.ChangedEntry]], urgent: set[str]
) -> Iterator[int]:
    """Yield the indexes of the buckets to rewrite.

    Yield the buckets with urgent rows first, and then the buckets with the most changed rows until
    the remaining rows fit in the tail.
    """
    left = dict(by_line)
    for place, marks in by_line.items():
        if any(mark.held and mark.id in urgent for mark in marks):
            del left[place]
            yield place
    busiest = sorted(left, key=lambda place: len(left[place]))
    while busiest and _is_too_long(sizes, left.values()):
        place = busiest.pop()
        del left[place]
        yield place


def _is_too_long(sizes: Sizes, groups: Iterable[Sequence[buckets.ChangedEntry]]) -> bool:
    marks = list(itertools.chain.from_iterable(groups))
    too_many = len(marks) > sizes.tail_rows
    return too_many or sum(len(mark.json) for mark in marks) > sizes.tail_bytes


def runs(
    sizes: Sizes, entries: Sequence[buckets.ListedEntry]
) -> Iterator[list[buckets.ListedEntry]]:
    """Divide rows into runs of about equal length, one for each new bucket."""
    if not entries:
        return
    most = max(1, -(-len(entries) // max(1, round(len(entries) / sizes.bucket_rows))))
    run: list[buckets.ListedEntry] = []
    size = 0
    for entry in entries:
        if run and (len(run) == most or size + len(entry.json) > sizes.bucket_bytes):
            yield run
            run, size = [], 0
        run.append(entry)
        size += len(entry.json)
    yield run


def parts(content: bytes) -> list[bytes]:
    """Split an encoded directory into parts that each fit in one entity."""
    return [
        content[first : first + PART_BYTES] for first in range(0, len(content) or 1, PART_BYTES)
    ]
