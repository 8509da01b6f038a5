"""A clock that tests can move to control expiry and commit times.

The clock never goes backward, because versions are commit times and must increase.
"""

import threading
import time


class Clock:
    """A callable that returns seconds since 1970, for `open_engine(..., clock=Clock())`.

    Args:
        start: The fixed time until the clock is moved. With None, the clock shows real time plus
            all advances.
    """

    def __init__(self, start: float | None = None) -> None:
        self._start = start
        self._ahead = 0.0
        self._lock = threading.Lock()

    def __call__(self) -> float:
        """Return the time."""
        return (time.time() if self._start is None else self._start) + self._ahead

    def advance(self, seconds: float) -> float:
        """Move the clock forward and return the new time.

        Raises:
            ValueError: The number is negative, infinite or not a number.
        """
        if not 0 <= seconds < float("inf"):
            raise ValueError(f"A clock cannot move by {seconds} seconds.")
        with self._lock:
            self._ahead += seconds
        return self()
