"""Lines: where the threads of one process wait for a row that many of them want to write.

Transactions that meet abort one another, and the losers come back to meet again. Standing in line
saves that work within a process. It decides nothing: the store's transaction is what is right, so
whoever has waited long enough goes on without the lock.
"""

import contextlib
import threading
from collections.abc import Iterator


class Lines:
    """One lock per name for as long as somebody holds or awaits it."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._locks: dict[str, tuple[threading.Lock, int]] = {}

    @contextlib.contextmanager
    def wait(self, name: str, *, seconds: float) -> Iterator[None]:
        """Take the line of `name`; without a name, or after `seconds`, go on without.

        Going on without the lock is safe: the line saves work, the transaction is what is right.
        """
        if not name:
            yield
            return
        with self._guard:
            lock, users = self._locks.get(name, (threading.Lock(), 0))
            self._locks[name] = (lock, users + 1)
        taken = lock.acquire(timeout=seconds)
        try:
            yield
        finally:
            if taken:
                lock.release()
            with self._guard:
                lock, users = self._locks.pop(name)
                if users > 1:
                    self._locks[name] = (lock, users - 1)
