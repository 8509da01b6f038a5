"""Keep copies of rows in the process, and notice when another process has changed a row.

The copied rows decide about posts: a site's settings, and its policy, rules and bans. With the
copies, most posts and pages read none of these rows from the store.

The embedded engine gives each entity a version. Asking for this version costs a hundredth of what a
post costs. Other stores cannot tell without a read whether an entity has changed, so on these
stores, the age of a copy decides whether it is used.

On the embedded engine, `current` returns what was stored when it was called or later. On other
stores, the result is at most `RECENT` seconds old. On the embedded engine, `get` returns a copy
that is at most `GLANCE` seconds old. On other stores, the copy is at most `LONGEST` seconds old. A
copy that was read before a change by this process is not kept.
"""

import time
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from comments.store import connection
from comments.store.memory import caches

V = TypeVar("V")

RECENT = 3.0  # Seconds
GLANCE = 1.0
LONGEST = 60.0
_MOST = 10_000  # Maximum number of rows


def delay() -> float:
    """Return the seconds after which a change applies to posts in all processes of this store."""
    return 0.0 if connection.current().tells_versions else RECENT


class _Copy(NamedTuple, Generic[V]):
    """A copy, its row's key and version, and when the row was known to have this version."""

    value: V
    key: Any
    version: int | None
    since: float


class RowCopies(Generic[V]):
    """Copies of one kind's rows, by key name.

    Args:
        kind: the kind.
        read: reads a row from the store and decodes it; a missing row may be an error.
    """

    def __init__(self, kind: str, read: Callable[[str], V]) -> None:
        self._kind, self._read = kind, read
        self._copies = caches.Cache[str, _Copy[V]](_MOST)

    def get(self, name: str) -> V:
        """Return a row's value for a page."""
        return self._find(name, GLANCE if connection.current().tells_versions else LONGEST)

    def current(self, name: str) -> V:
        """Return a row's value for a decision about a post."""
        return self._find(name, delay())

    def peek(self, name: str) -> V | None:
        """Return this process's copy, of any age, or None."""
        copy = self._copies.get(name)
        return None if copy is None else copy.value

    def drop(self, name: str) -> None:
        """Drop a copy after a change by this process."""
        self._copies.drop(name)

    def _find(self, name: str, age: float) -> V:
        copy, now = self._copies.get(name), time.monotonic()
        if copy is not None and now - copy.since < age:
            return copy.value
        store, drops = connection.current(), self._copies.drops
        key = store.key((self._kind, name)) if copy is None else copy.key
        version = store.version(key)
        if copy is None or version is None or version != copy.version:
            # If the row changes in between, its version is older than its value, and the row is
            # then read again.
            copy = _Copy(self._read(name), key, version, now)
        self._copies.keep(name, copy._replace(since=now), drops=drops)
        return copy.value
