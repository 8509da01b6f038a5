"""Demand: how many want to post on a website just now, as far as this process sees.

Owns what makes a proof of work harder: above `CALM` challenges of a site in a minute, each doubling
of their number doubles the work, up to `MOST` times. It is of this process alone and forgotten with
it: a challenge is asked for by reading, and reading writes nothing. So an attack that several
processes share is met by each for its part.
"""

import threading
import time
from collections.abc import Callable

from comments.store import per_process

CALM = 60
MOST = 32
_MINUTE = 60.0


class Demand:
    """How many challenges of each site were asked for in this minute and in the one before it."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._minute = 0
        self._now: dict[str, int] = {}
        self._before: dict[str, int] = {}

    def factor(self, site: str) -> int:
        """How much harder the next challenge of a site is; that it was asked for is noted."""
        with self._lock:
            self._turn(int(self._clock() // _MINUTE))
            self._now[site] = self._now.get(site, 0) + 1
            asked = max(self._now[site], self._before.get(site, 0))
        factor = 1
        while asked > CALM * factor and factor < MOST:
            factor *= 2
        return factor

    def _turn(self, minute: int) -> None:
        if minute == self._minute:
            return
        self._before = self._now if minute == self._minute + 1 else {}
        self._now = {}
        self._minute = minute


DEMAND = per_process.PerProcess(Demand)
