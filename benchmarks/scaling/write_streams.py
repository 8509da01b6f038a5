"""Streams of new comments, with the keys that they write in our layout and in naive ones.

The synthetic streams place comments in threads as the product does (`sorthash`), and derive the
keys from whole rows (`recorded_writes.Recorder`), so a changed index changes the streams.
"""

import bisect
import hashlib
import itertools
import random
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from benchmarks.scaling import recorded_writes
from benchmarks.serving import gunicorn_process
from benchmarks.threads import conversations, loading
from comments.domain import sorthash
from comments.sites import site_settings
from comments.store import connection, reads
from comments.store.models import comment_rows
from emulator import inprocess, protobufs

SCHEME = sorthash.Scheme()
START = datetime(2026, 1, 1, tzinfo=UTC)

AUTO_INCREMENT = "naive: auto-increment ids"
TIME_ORDERED = "naive: time-ordered ids"
NAIVE = (AUTO_INCREMENT, TIME_ORDERED)
# Our key spaces that the plots show, by the label of their lines.
OURS = {
    "comments, random ids": "Comment rows",
    "reading order of a thread": "Comment thread, listed, sort_hash",
    "time order of a thread": "Comment thread, listed, created, sort_hash",
    "time order of all comments": "Comment created",
}
Streams = dict[str, list[list[bytes]]]  # The keys of each interval, by line of the plots.


class Naive:
    """The ids of naive layouts for the same comments."""

    def __init__(self, chance: random.Random, rate: float) -> None:
        self._chance, self._rate, self._number = chance, rate, 0

    def interval(self, count: int) -> dict[str, list[bytes]]:
        """Return the ids of the next comments."""
        numbers = range(self._number, self._number + count)
        self._number += count
        return {
            AUTO_INCREMENT: [number.to_bytes(8) for number in numbers],
            TIME_ORDERED: [
                int(number / self._rate * 1000).to_bytes(6) + self._chance.randbytes(10)
                for number in numbers
            ],
        }


class _Thread:
    """A growing thread: comments answer one of its last comments, or start a discussion."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._roots = 0
        self._hashes: list[str] = []
        self._parents: list[int | None] = []
        self._children: list[int] = []

    def place(self, chance: random.Random) -> str:
        """Return the sort hash of the next comment."""
        parent = self._answered(chance)
        if parent is None:
            above, number = "", self._roots
            self._roots += 1
        else:
            self._children[parent] += 1
            above, number = self._hashes[parent], self._children[parent]
        self._hashes.append(sorthash.child(SCHEME, above, number))
        self._parents.append(parent)
        self._children.append(0)
        return self._hashes[-1]

    def _answered(self, chance: random.Random) -> int | None:
        """Choose the parent. An answer on the last level becomes a sibling of its parent."""
        if not self._hashes or chance.random() < 0.2:
            return None
        parent = max(0, len(self._hashes) - 1 - int(chance.expovariate(1 / 15)))
        is_deepest = sorthash.level(SCHEME, self._hashes[parent]) == SCHEME.levels - 1
        return self._parents[parent] if is_deepest else parent


def synthetic(
    threads: int, intervals: int, size: int, rate: float = 5_000.0, seed: int = 1
) -> Streams:
    """Return streams of new comments; the thread at place n gets a share of 1/n (Zipf's law)."""
    chance = random.Random(seed)
    template, recorder = _template(), recorded_writes.Recorder()
    talks = [_Thread(f"bench/page-{number}") for number in range(threads)]
    shares = list(itertools.accumulate(1 / rank for rank in range(1, threads + 1)))
    naive, numbers = Naive(chance, rate), itertools.count()
    found: Streams = {}
    for _ in range(intervals):
        for number in itertools.islice(numbers, size):
            thread = talks[bisect.bisect_left(shares, chance.random() * shares[-1])]
            recorder.insert(_row(template, number, thread, chance, rate))
        written = recorder.taken()
        add(found, {line: written[space] for line, space in OURS.items()})
        add(found, naive.interval(size))
    return found


def recorded(recording: recorded_writes.Recording, rate: float, seed: int = 1) -> Streams:
    """Return the same streams from a recording of the product."""
    naive, found = Naive(random.Random(seed), rate), Streams()
    for keys in recording.intervals:
        add(found, {line: keys.get(space, []) for line, space in OURS.items()})
        add(found, naive.interval(recording.posts // len(recording.intervals)))
    return found


def add(streams: Streams, interval: dict[str, list[bytes]]) -> None:
    """Append one interval to streams."""
    for line, keys in interval.items():
        streams.setdefault(line, []).append(keys)


def _template() -> protobufs.Entity:
    """Return the row of a comment as the product stores it."""
    with inprocess.open_engine(
        None, indexes=gunicorn_process.ROOT / "index.yaml", durability="fast", history=0
    ) as engine:
        store = connection.Store(inprocess.Channel(engine), project=loading.PROJECT)
        with store.context():
            name = loading.NAME
            site_settings.add(name.site, ["http://localhost"], scheme=SCHEME, now=START)
            loading.store_imported(conversations.thread([None]))
            (row,) = reads.fetch(reads.Query("Comment"))
            return row


def _row(
    template: protobufs.Entity, number: int, thread: _Thread, chance: random.Random, rate: float
) -> protobufs.Entity:
    row = protobufs.Entity()
    row.CopyFrom(template)
    digest = hashlib.sha256(f"comment {number} {chance.random()}".encode()).digest()
    row.key.path[-1].name = comment_rows.comment_id(digest)
    placed = thread.place(chance)
    for name, text in (("thread", thread.name), ("sort_hash", placed)):
        row.properties[name].string_value = text
    row.properties["level"].integer_value = sorthash.level(SCHEME, placed)
    row.properties["created"].timestamp_value.FromDatetime(START + timedelta(seconds=number / rate))
    return row


def lines(streams: Streams) -> Iterator[tuple[str, Sequence[Sequence[bytes]]]]:
    """Yield our lines first, then the naive ones."""
    for line in (*OURS, *NAIVE):
        yield line, streams[line]
