"""The copies of threads that a process keeps, and how a change here ends them at once.

Owns the cache that `threads` reads. What must stay true: a copy that was read before a change of
this process is not kept after it.
"""

import dataclasses
import threading
import time

from comments.domain import records
from comments.store import caches, per_process

TERM = 60.0  # seconds
_BYTES = 1024 * 1024  # of one process
_OVERHEAD = 500  # bytes of Python around a copy, roughly


@dataclasses.dataclass(frozen=True, slots=True)
class _Copy:
    thread: records.Thread
    loaded: float


class Copies:
    """Copies of threads by name, each for `TERM` seconds at most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._cache = caches.Cache(_BYTES)
        self._drops = 0

    @property
    def drops(self) -> int:
        """How many copies were dropped: what was read before the last drop may be old."""
        return self._drops

    def get(self, name: records.ThreadName) -> records.Thread | None:
        """The copy of a thread, if there is a young one."""
        copy: _Copy | None = self._cache.get(name)
        is_young = copy is not None and time.monotonic() - copy.loaded <= TERM
        return copy.thread if copy is not None and is_young else None

    def keep(self, thread: records.Thread, *, drops: int) -> None:
        """Keep a thread that was read when `drops` was this number."""
        name = thread.name
        size = _OVERHEAD + 4 * (len(name.id) + len(thread.title) + len(thread.url))
        with self._lock:
            if drops == self._drops:
                self._cache.keep(name, _Copy(thread, time.monotonic()), size)

    def drop(self, name: records.ThreadName) -> None:
        """Forget a thread."""
        with self._lock:
            self._drops += 1
            self._cache.drop(name)


COPIES = per_process.PerProcess(Copies)


def of_process() -> Copies:
    """The copies of the current store's threads."""
    return COPIES.get()
