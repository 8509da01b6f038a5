"""Count this process's commits to each thread's comments.

A caller that caches data about a thread notes the count before it reads the data. As long as the
count is the same, this process has not changed the thread. It can therefore reuse the data and
still show authors their own changes.
"""

import math
import threading
import time
import zlib
from collections.abc import Callable, Iterable

from comments.store.memory import per_process

_SLOTS = 4096  # Threads that share a slot only invalidate each other's cached data


class CommitCounts:
    """Commit counts by thread, in a bounded number of slots. The class is thread-safe.

    Args:
        clock: returns monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._lock = threading.Lock()
        self._counts = [0] * _SLOTS
        self._times = [-math.inf] * _SLOTS

    def note(self, threads: Iterable[str]) -> None:
        """Count a commit that may have been applied to these threads."""
        # Without the lock, two concurrent increments could count as one even if a reader noted the
        # count between them.
        with self._lock:
            for slot in map(_slot, threads):
                self._counts[slot] += 1
                self._times[slot] = self.clock()

    def of(self, thread: str) -> int:
        """Return a thread's count."""
        return self._counts[_slot(thread)]

    def age(self, thread: str) -> float:
        """Return the seconds since the last commit to a thread, or infinity if there was none."""
        return self.clock() - self._times[_slot(thread)]


_WRITTEN = per_process.PerProcess(CommitCounts)


def _slot(thread: str) -> int:
    return zlib.crc32(thread.encode()) % _SLOTS


def of_thread(thread: str) -> int:
    """Return the number of this process's commits to a thread, given the thread's key name."""
    return _WRITTEN.get().of(thread)


def note(threads: Iterable[str]) -> None:
    """Count a commit that may have been applied."""
    _WRITTEN.get().note(threads)


def is_recent(thread: str, *, within: float) -> bool:
    """Return whether this process committed to a thread within the last `within` seconds.

    A commit to a different thread in the same slot also counts.
    """
    return _WRITTEN.get().age(thread) <= within
