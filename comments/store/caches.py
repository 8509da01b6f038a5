"""The only cache implementation: values by key in a process, bounded in size and age.

The values belong to the caller. A value must never change once it is in the cache: put a new one
instead.

Invariants:

1. The sizes of all values, as the callers state them, add up to at most `most`. The least recently
   used values are evicted first.
2. A value older than `seconds` is never returned.
3. If the caller notes `drops` before it reads a value and passes it to `keep`, the value is not
   stored if any key was dropped in between. A process therefore never keeps a copy that is older
   than its own change.
4. Every method is safe for many threads: it holds the lock only for a few dictionary operations.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cache(Generic[K, V]):
    """Values by key.

    Args:
        most: the maximum sum of all sizes, in any unit that the callers agree on.
        seconds: the maximum age of a value; None to keep it until it is evicted.
    """

    def __init__(self, most: int, seconds: float | None = None) -> None:
        self._most = most
        self._seconds = seconds
        self._lock = threading.Lock()
        self._kept: OrderedDict[K, tuple[V, int, float]] = OrderedDict()
        self._size = 0
        self._drops = 0

    @property
    def size(self) -> int:
        """The sum of the sizes of all values."""
        return self._size

    @property
    def drops(self) -> int:
        """The number of keys dropped so far; see `keep`."""
        return self._drops

    def get(self, key: K, *, within: float | None = None) -> V | None:
        """Return the value of a key; None if there is no value or it is too old.

        `within` is a maximum age in seconds for this call, instead of the cache's own.
        """
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            seconds = self._seconds if within is None else within
            if seconds is not None and time.monotonic() - found[2] > seconds:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def keep(self, key: K, value: V, size: int = 1, *, drops: int | None = None) -> None:
        """Store a value, unless it is larger than the cache.

        `drops` is the cache's `drops` before the value was read. If a key was dropped since, the
        value is not stored: it may be older than the change that dropped the key.
        """
        with self._lock:
            if drops not in {None, self._drops}:
                return
            self._remove(key)
            if size > self._most:
                return
            self._kept[key] = value, size, time.monotonic()
            self._size += size
            while self._size > self._most:
                _, (_, gone, _) = self._kept.popitem(last=False)
                self._size -= gone

    def drop(self, key: K) -> None:
        """Remove a key."""
        with self._lock:
            self._drops += 1
            self._remove(key)

    def _remove(self, key: K) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._size -= found[1]
