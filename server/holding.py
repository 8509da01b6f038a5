"""The memory held by answers that wait for their clients.

Answers share bytes: an application that caches a page gives the same object to every reader. A
shared object counts once.
"""

from collections import Counter
from collections.abc import Iterable, Sequence


class Holding:
    """The total size of the distinct objects that are held.

    Callers keep an object alive while it is counted here, so its id is not reused.
    """

    def __init__(self) -> None:
        self.size = 0  # bytes
        self._holders: Counter[int] = Counter()

    def hold(self, pieces: Iterable[bytes]) -> None:
        """Count the pieces of an answer."""
        for piece in pieces:
            if not self._holders[id(piece)]:
                self.size += len(piece)
            self._holders[id(piece)] += 1

    def release(self, pieces: Sequence[bytes]) -> None:
        """Stop counting the pieces of an answer."""
        for piece in pieces:
            self._holders[id(piece)] -= 1
            if not self._holders[id(piece)]:
                del self._holders[id(piece)]
                self.size -= len(piece)
