"""A clock that stands still until it is moved: expiry and times of commits under a test's control.

Owns nothing else. Time never goes back: versions are times, and must rise.
"""

import threading
import time


class Clock:
    """Seconds since 1970, for `open_engine(..., clock=Clock())`.

    Args:
        start: the first time that is shown. None is now.
    """

    def __init__(self, start: float | None = None) -> None:
        self._now = time.time() if start is None else start
        self._lock = threading.Lock()

    def __call__(self) -> float:
        """Return the time."""
        return self._now

    def advance(self, seconds: float) -> float:
        """Move on and return the new time.

        Raises:
            ValueError: that would be back, or not a time.
        """
        if not 0 <= seconds < float("inf"):
            raise ValueError(f"A clock does not move by {seconds} seconds.")
        with self._lock:
            self._now += seconds
            return self._now
