"""Keep objects for as long as a process runs: caches, queues, counts, HTTP clients.

The owning module declares an object once, and gets it where it is needed:

    _COPIES = per_process.PerProcess(Copies)
    ...
    copies = _COPIES.get()

Each store has its own objects, so two stores in one process share none. An object is created once,
by the first thread that needs it. Only `put`, `forget` and `fresh_process` replace an object.
"""

from collections.abc import Callable
from typing import Generic, NoReturn, TypeVar

from comments.store import connection

T = TypeVar("T")


def _refuse() -> NoReturn:
    raise RuntimeError("this object has not been created yet")


class PerProcess(Generic[T]):
    """An object for each store in this process. The class is thread-safe.

    Args:
        make: creates the object when a thread first needs it. Omit `make` if the object needs
            settings. In this case, pass a `make` to `of`, or store the object with `put`.
    """

    def __init__(self, make: Callable[[], T] = _refuse) -> None:
        self._make = make

    def get(self) -> T:
        """Return the object for the current thread's store."""
        store = connection.state.store
        if store is not None and self in store.kept:
            value: T = store.kept[self]
            return value
        return self.of(connection.current())

    def of(self, store: connection.Store, make: Callable[[], T] | None = None) -> T:
        """Return a store's object. If there is no object, create one, with `make` if given."""
        if self not in store.kept:
            # The lock is reentrant, because creating one object may require another one.
            with store.keeping:
                if self not in store.kept:
                    store.kept[self] = (make or self._make)()
        value: T = store.kept[self]
        return value

    def put(self, store: connection.Store, value: T) -> T:
        """Replace the object for a store, and return the new object."""
        store.kept[self] = value
        return value

    def forget(self, store: connection.Store) -> None:
        """Drop the object for a store; the next caller creates a new one."""
        store.kept.pop(self, None)


def fresh_process(store: connection.Store) -> None:
    """Drop all objects that this process keeps for a store, as a restart does.

    Call this only while no other thread uses the store.
    """
    store.kept.clear()
