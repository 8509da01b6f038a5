"""A clock that tests move: expiry and the times of commits under their control.

Owns nothing else. Time never goes back: versions are times, and must rise.
"""

import threading
import time


class Clock:
    """Seconds since 1970, for `open_engine(..., clock=Clock())`.

    Args:
        start: where it stands until it is moved. None lets it run: real time, and what was added.
    """

    def __init__(self, start: float | None = None) -> None:
        self._start = start
        self._ahead = 0.0
        self._lock = threading.Lock()

    def __call__(self) -> float:
        """Return the time."""
        return (time.time() if self._start is None else self._start) + self._ahead

    def advance(self, seconds: float) -> float:
        """Move on and return the new time.

        Raises:
            ValueError: that would be back, or not a time.
        """
        if not 0 <= seconds < float("inf"):
            raise ValueError(f"A clock does not move by {seconds} seconds.")
        with self._lock:
            self._ahead += seconds
        return self()
