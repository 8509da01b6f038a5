"""Threads that a served benchmark reads and writes, stored with the product's own code."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from benchmarks import measuring
from benchmarks.threads import conversations, loading, shapes
from comments.domain import records
from comments.sites import site_settings
from comments.upkeep.integrity import recount
from datastore_emulator import inprocess

SITE = "bench"
COUNTED = 50  # The number of threads in one request for counts.
OTHERS = COUNTED - 1  # Small threads with the first keys; a process reads them at its start.
_OTHER = 20  # Comments in a small thread.


class Thread(NamedTuple):
    """A stored thread: its name and its number of comments."""

    name: str
    size: int

    @property
    def path(self) -> str:
        """The path of the thread's comments."""
        return path(self.name)


def path(thread: str) -> str:
    """Return the path of a thread's comments."""
    return f"/api/v1/sites/{SITE}/comments?{urlencode({'thread': thread})}"


def other(number: int) -> str:
    """Return the id of a small thread."""
    return f"other {number % OTHERS}"


def counts(thread: Thread) -> tuple[str, str]:
    """Return the path and the body of a request for the counts of this and the small threads."""
    names = [thread.name, *map(other, range(OTHERS))]
    return f"/api/v1/sites/{SITE}/counts", json.dumps({"threads": names})


def store(data: Path, sizes: Sequence[int], copies: int = 0) -> list[Thread]:
    """Store 49 small threads, a compacted thread of each size, and copies of the second one."""
    data.mkdir()
    threads = [Thread(f"t{size}", size) for size in sizes]
    threads += [Thread(f"copy {number}", sizes[1]) for number in range(copies)]
    small = [Thread(other(number), _OTHER) for number in range(OTHERS)]
    shape, first = shapes.grown(2_251), 0
    # Only while filling the store, commits do not wait for the disk.
    with measuring.stored(data / "flatthread.db", durability="fast") as engine:
        now, scheme = conversations.START, loading.SCHEME
        site_settings.add(SITE, ["http://localhost"], scheme=scheme, now=now)
        for thread in (*small, *threads):
            said = conversations.thread(shapes.repeated(shape, thread.size), first=first)
            first += thread.size
            _store(engine, thread.name, said)
    return threads


def _store(engine: inprocess.Engine, name: str, said: Sequence[conversations.Said]) -> None:
    thread = records.ThreadName(SITE, name)
    loading.add_thread(engine, thread, said, is_folded=True)
    recount.thread(thread, tell=lambda _number: None, fixes=True)
