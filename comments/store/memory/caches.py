"""Implement the only cache: values by key in one process, bounded in size and age.

The values belong to the caller. The caller must never modify a cached value, only replace it with a
new one.

Invariant: If any key is dropped after a value was read, that value is not stored (`drops`, `keep`),
so a process never keeps a copy that is older than its own change
(test_caches.py::test_a_value_read_before_a_drop_is_not_stored_after_it).

The sizes that callers state for the values add up to at most `most`. The least recently used values
are evicted first. A value older than `seconds` is never returned. Every method is thread-safe, and
holds the lock only for a few dictionary operations.
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
        seconds: the maximum age of a value, or None to keep values until they are evicted.
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
        """Return the sum of all values' sizes."""
        return self._size

    @property
    def drops(self) -> int:
        """Return the number of keys dropped so far; see `keep`."""
        return self._drops

    def get(self, key: K, *, within: float | None = None) -> V | None:
        """Return a key's value, or None if there is no value or the value is too old.

        `within` is the maximum age in seconds for this call, instead of the cache's maximum age.
        """
        with self._lock:
            entry = self._kept.get(key)
            if entry is None:
                return None
            seconds = self._seconds if within is None else within
            if seconds is not None and time.monotonic() - entry[2] > seconds:
                return None
            self._kept.move_to_end(key)
            return entry[0]

    def keep(self, key: K, value: V, size: int = 1, *, drops: int | None = None) -> None:
        """Store a value, unless it is larger than the cache.

        The argument `drops` is the cache's number of drops before the caller read `value`. If any
        key has been dropped since then, `value` is not stored, because it may be older than the
        change that dropped the key.
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
        """Remove a key and its value."""
        with self._lock:
            self._drops += 1
            self._remove(key)

    def _remove(self, key: K) -> None:
        entry = self._kept.pop(key, None)
        if entry is not None:
            self._size -= entry[1]
