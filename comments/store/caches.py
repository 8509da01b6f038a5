"""A cache of this process: bounded in bytes, least recently used first to go (pure).

Owns nothing of what is kept. Values never change once they are in; who replaces one puts another.
Safe for many threads: every call holds the lock for a few dictionary steps.
"""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any


class Cache:
    """Keeps values by key, up to `most` bytes by the sizes that their keepers say."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._bytes = 0

    @property
    def size(self) -> int:
        """The bytes that are kept."""
        return self._bytes

    def get(self, key: Hashable) -> Any:
        """Return what is kept under a key, None for nothing."""
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def keep(self, key: Hashable, value: Any, size: int) -> None:
        """Keep a value of `size` bytes. One that is larger than the cache is not kept."""
        with self._lock:
            self._drop(key)
            if size > self._most:
                return
            self._kept[key] = value, size
            self._bytes += size
            while self._bytes > self._most:
                _, (_, gone) = self._kept.popitem(last=False)
                self._bytes -= gone

    def drop(self, key: Hashable) -> None:
        """Forget a key."""
        with self._lock:
            self._drop(key)

    def _drop(self, key: Hashable) -> None:
        found = self._kept.pop(key, None)
        if found is not None:
            self._bytes -= found[1]
