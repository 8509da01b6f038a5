"""Count this process's recent challenge requests per website (the demand).

Owns the rule by which demand makes proofs of work harder. Above `CALM` challenges per minute for a
site, the work doubles whenever the number of challenges doubles, up to `MOST` times the normal
work. The count is kept only in this process, because requesting a challenge is a read, and reads
must not write. Each process counts only its own share of an attack.
"""

import threading
import time
from collections.abc import Callable

from comments.store.memory import per_process

CALM = 60
MOST = 32
_MINUTE = 60.0


class Demand:
    """The number of challenges requested for each site in the current and the previous minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._minute = 0
        self._now: dict[str, int] = {}
        self._before: dict[str, int] = {}

    def factor(self, site: str) -> int:
        """Count a challenge request for a site. Return the factor for the request's work."""
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
