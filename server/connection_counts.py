"""The number of connections of each worker, in memory that all workers share.

All workers of a server accept connections from the same socket. The worker that wakes up first
would accept every connection that arrives at that moment, and one processor would do all the work.
Therefore a worker leaves a new connection to workers that have fewer connections.

Correctness does not depend on the numbers: a worker can read a number that is already outdated. A
number that is older than `FRESH` seconds is ignored. Therefore no connections are left to a worker
that was killed or does not respond.
"""

import mmap
import struct

FRESH = 0.5  # Seconds. Each loop writes its number at least four times a second.
_TOLERANCE = 8  # A worker may have an eighth more connections than the others.
# Two workers share an entry if one of them is 64 starts younger. Such workers ignore each other.
_PLACES = 64
_ENTRY = struct.Struct("dq")  # Time of writing (0 for no entry), and number of connections.


class ConnectionCounts:
    """The numbers of all workers. Create the object before the workers are forked."""

    def __init__(self) -> None:
        self.entries = mmap.mmap(-1, _PLACES * _ENTRY.size)

    def of(self, age: int) -> "OwnCount":
        """Return the place of a worker. `age` is the number of workers started so far."""
        return OwnCount(self.entries, age % _PLACES)


class OwnCount:
    """One worker's number of connections, and its comparison with the other workers."""

    def __init__(self, entries: mmap.mmap, place: int) -> None:
        self._entries = entries
        self._place = place

    def write(self, number: int, now: float) -> None:
        """Publish the worker's number of connections."""
        _ENTRY.pack_into(self._entries, self._place * _ENTRY.size, now, number)

    def remove(self) -> None:
        """Publish that the worker accepts no more connections."""
        self.write(0, 0.0)

    def is_above_others(self, number: int, now: float) -> bool:
        """Return whether another worker has fewer than `number` connections."""
        others: list[int] = [
            other
            for place, (written, other) in enumerate(_ENTRY.iter_unpack(self._entries))
            # The clock may begin at 0 when the machine boots, so a time of 0 could seem recent.
            if place != self._place and written and now - written < FRESH
        ]
        if not others:
            return False
        fewest = min(others)
        return number > fewest + fewest // _TOLERANCE
