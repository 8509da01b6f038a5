"""The sockets at which a worker accepts connections, and when it leaves a connection to others.

A worker with more connections than another one (`connection_counts`) stops watching its listening
sockets for a moment, so that the other worker accepts. Then it looks again.

Invariants:

1. A new connection is left to others for at most `patience` seconds, even if no other worker
   accepts it. Then the worker accepts all connections that wait.
2. While a worker leaves connections to others, it serves its own.
"""

import select
import selectors
import time
from collections.abc import Callable
from typing import Any

from server import connection_counts

_PAUSE = 0.001  # Seconds until a worker looks again.


class Listening:
    """The listening sockets of a worker.

    Args:
        selector: the loop's selector.
        own: the worker's published number of connections.
        patience: the maximum time for which a connection is left to others, in seconds.
    """

    def __init__(
        self,
        selector: selectors.BaseSelector,
        own: connection_counts.OwnCount,
        patience: float,
    ) -> None:
        self._selector = selector
        self._own = own
        self._patience = patience
        self._accepting: dict[Any, Callable[[int], object]] = {}
        self._poll = select.poll()  # tells at the end of a pause whether connections wait
        self._is_paused = False
        self._resumes = 0.0
        self._until: float | None = None  # The end of the patience with the waiting connections.

    def add(self, listener: Any, accept: Callable[[int], object]) -> None:
        """Call `accept` when connections wait at a socket."""
        self._accepting[listener] = accept
        self._poll.register(listener, select.POLLIN)
        self._selector.register(listener, selectors.EVENT_READ, accept)

    def remove(self, listener: Any) -> None:
        """Accept no more connections at a socket, and leave all new ones to other workers."""
        self._own.remove()
        del self._accepting[listener]
        self._poll.unregister(listener)
        if not self._is_paused:
            self._selector.unregister(listener)

    def publish(self, number: int) -> None:
        """Publish the number of this worker's connections, while it accepts any."""
        self._resumes = 0.0  # Others may have more connections now.
        if self._accepting:
            self._own.write(number, time.monotonic())

    def leaves(self, number: int) -> bool:
        """Decide whether to leave a waiting connection to others; if so, pause.

        `number` is the number of this worker's connections.
        """
        now = time.monotonic()
        if not self._own.is_above_others(number, now):
            self._until = None
            return False
        if self._until is None:
            self._until = now + self._patience
        elif now >= self._until:
            return False
        self._resumes = now + _PAUSE
        self._is_paused = True
        for each in self._accepting:
            self._selector.unregister(each)
        return True

    def none_waits(self) -> None:
        """Note that all waiting connections were accepted."""
        self._until = None

    def longest_wait(self, most: float) -> float:
        """Return how long the loop may wait for events, in seconds."""
        return _PAUSE if self._is_paused else most

    def resume(self) -> None:
        """Look again for connections if the pause is over."""
        if not self._is_paused or time.monotonic() < self._resumes:
            return
        self._is_paused = False
        for listener, accept in self._accepting.items():
            self._selector.register(listener, selectors.EVENT_READ, accept)
        if not self._poll.poll(0):
            self.none_waits()  # Others have accepted them.
