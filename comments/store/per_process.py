"""Objects that a process keeps for as long as it runs: caches, queues, counts, HTTP clients.

The module that owns such an object declares it once and asks for it where it needs it:

    _COPIES = per_process.PerProcess(Copies)
    ...
    copies = _COPIES.get()

Invariants:

1. Each store has its own object, so two stores in one process share nothing.
2. An object is made once, by the first thread that asks, and is never made again, not even if it
   is empty or false. Only `put`, `forget` and `fresh_process` replace it.
"""

from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

from comments.store import connection

T = TypeVar("T")


def _missing() -> NoReturn:
    raise RuntimeError("nobody has made or put this object yet")


class PerProcess(Generic[T]):
    """An object of each store in this process. Safe for many threads.

    Args:
        make: makes the object when a thread first asks for it. Leave it out where the object takes
            settings: `of` is told how to make it then, or `put` stores it.
    """

    def __init__(self, make: Callable[[], T] = _missing) -> None:
        self._make = make

    def get(self) -> T:
        """Return the object of the store that the current thread is in."""
        store = connection.state.store
        if store is not None and self in store.kept:
            found: T = store.kept[self]
            return found
        return self.of(connection.current())

    def of(self, store: connection.Store, make: Callable[[], T] | None = None) -> T:
        """Return the object of a store. `make` makes it instead, if there is none yet."""
        if self not in store.kept:
            # Making one may ask for another, so the lock is reentrant.
            with store.keeping:
                if self not in store.kept:
                    store.kept[self] = (make or self._make)()
        found: T = store.kept[self]
        return found

    def put(self, store: connection.Store, value: T) -> T:
        """Replace the object of a store, and return the new one."""
        store.kept[self] = value
        return value

    def forget(self, store: connection.Store) -> None:
        """Drop the object of a store: the next caller makes another one."""
        store.kept.pop(self, None)


def fresh_process(store: connection.Store) -> None:
    """Drop everything that this process keeps about a store, as a restart does.

    Only for stores that no other thread uses at the moment.
    """
    store.kept.clear()
