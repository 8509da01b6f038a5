"""What a process holds of the threads of a store: a bounded cache, and the clock of its ages.

Owns the clock, what is said beside a directory that is kept, what one request has probed, and
probes that later requests may use again (a site's freshness).

Invariants:

1. The clock also runs while the machine sleeps.
2. A probe counts only beside the directory that it was asked with: both together are the thread as
   of the moment of the probe.
3. A probe is used again only if this process has committed nothing to the thread since before it
   was asked, and only for the time that the caller gives, counted from before it was asked.
"""

import threading
import time
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import msgspec

from comments.domain import records
from comments.reading.materialized import buckets, first_page
from comments.store import caches, per_process

Parts = caches.Cache[Hashable, Any]  # of threads, each kind under keys of its own
CACHE_BYTES = 64 * 1024 * 1024  # of one process
OVERHEAD = 200  # bytes of Python around an entry, roughly

# It counts the time that the machine sleeps; so does the one that macOS has instead.
_CLOCK: int = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def seconds() -> float:
    """Seconds of the clock that ages are told by."""
    return time.clock_gettime(_CLOCK)


class Kept(msgspec.Struct, frozen=True):
    """A directory with its head, and when it was asked for."""

    directory: buckets.Directory
    head: first_page.Head | None
    since: float


class Moment(msgspec.Struct, frozen=True):
    """What the last view of a thread was made of, and its tag.

    `probed` are the revisions of the rows that were not folded and not in the directory either.
    """

    version: str
    probed: Mapping[str, int]
    tag: str


class Recent(msgspec.Struct, frozen=True):
    """A probe for later requests: when it was asked, and `commit_counts.of_thread` at that time."""

    kept: Kept
    probed: Mapping[str, int]
    since: float
    written: int


class _AtHand(threading.local):
    """A probe that this thread has just asked, until its request is over.

    It is worth something beside the directory only that it was asked with: that is older.
    """

    name: records.ThreadName | None = None
    kept: Kept | None = None
    probed: Mapping[str, int] | None = None


class Holdings:
    """What a process holds of the threads of a store: a cache, and the clock of its ages.

    Args:
        clock: seconds, monotonic, counting also the time the machine sleeps.
        most: bytes that are kept.
    """

    def __init__(self, clock: Callable[[], float] = seconds, most: int = CACHE_BYTES) -> None:
        self.clock = clock
        self.cache = Parts(most)
        self.at_hand = _AtHand()
        self._lock = threading.Lock()

    def hand_on(self, name: records.ThreadName, kept: Kept, probed: Mapping[str, int]) -> None:
        """Leave what was probed to who asks next in this request."""
        hand = self.at_hand
        hand.name, hand.kept, hand.probed = name, kept, probed

    def recent(
        self, name: records.ThreadName, kept: Kept, age: float, written: int
    ) -> Mapping[str, int] | None:
        """What was probed beside this directory at most `age` seconds ago, if that still counts."""
        found: Recent | None = self.cache.get(("recent", name)) if age else None
        if found is None or found.kept is not kept or found.written != written:
            return None
        return found.probed if self.clock() - found.since < age else None

    def keep_recent(self, name: records.ThreadName, recent: Recent, age: float) -> None:
        """Keep a probe for later requests, if there may be any that take one of some age.

        An exact request replaces a probe that is kept, or the next reader would see an older thread
        than somebody has seen here.
        """
        place = ("recent", name)
        with self._lock:
            known: Recent | None = self.cache.get(place)
            if known is None and not age:
                return
            # A slow request must not put an older probe in a newer one's place.
            if known is None or known.since <= recent.since:
                self.cache.keep(place, recent, OVERHEAD * (1 + len(recent.probed)))

    def handed(self, name: records.ThreadName, kept: Kept) -> Mapping[str, int] | None:
        """What this request has probed already, once."""
        hand = self.at_hand
        probed, hand.probed = hand.probed, None
        return probed if hand.name == name and hand.kept is kept else None


HOLDINGS = per_process.PerProcess(Holdings)
