"""Combine the work of a process's threads that wait for the same row into one transaction.

Each line of waiting threads has a leader. The leader does its own work together with the work of
the threads that wait at that moment, and gives each of them its answer. Then the first thread that
still waits becomes the leader. A thread does its work at once if no other thread is in the line.

Work is done in the order in which threads join the line, and never by two threads of one line at
the same time. If a batch of several items fails, each item is done again alone, by its own thread
and within its own deadline. No item therefore gets an error that another item caused. When an item
is done again, `Work` learns from a flag that an earlier run may have been applied. A thread whose
deadline passes leaves the line. If its item is part of a running batch, the item may still be done.
A batch contains at most `most` items, no two of which have the same key. The sizes of these items
add up to at most `most_size`, unless a single item is larger.
"""

import collections
import dataclasses
import enum
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from comments import errors
from comments.store import connection

P = TypeVar("P")
R = TypeVar("R")

# A function that does the work of several items and returns an answer for each item. The flag is
# true if an earlier run for these items may have been applied.
Work = Callable[[Sequence[P], bool], Sequence[R]]


class _State(enum.Enum):
    WAITING = enum.auto()
    LEADING = enum.auto()
    TAKEN = enum.auto()
    DONE = enum.auto()
    GONE = enum.auto()


@dataclasses.dataclass(slots=True, eq=False)
class _Waiter(Generic[P, R]):
    """A thread's place in a line. `is_alone` is True after a batch with this item has failed."""

    item: P
    key: str
    size: int
    state: _State = _State.WAITING
    is_alone: bool = False
    answer: R | None = None
    changed: threading.Event = dataclasses.field(default_factory=threading.Event)

    def move(self, state: _State) -> None:
        self.state = state
        self.changed.set()


class Batches(Generic[P, R]):
    """The lines of one process, by name. The class is thread-safe.

    A line exists only while a thread leads it.
    """

    def __init__(self, most: int, most_size: int) -> None:
        self._most = most
        self._most_size = most_size
        self._guard = threading.Lock()
        self._lines: dict[str, collections.deque[_Waiter[P, R]]] = {}

    def run(self, line: str, item: P, work: Work[P, R], *, key: str, size: int) -> R:
        """Do an item's work, alone or in a batch, and return its answer.

        Call this function within a deadline (`connection.within`).

        Raises:
            errors.Overloaded: the deadline passed. The work may still have been done.
            Exception: `work` failed for this item alone.
        """
        own_place = _Waiter[P, R](item, key, size)
        self._join(line, own_place)
        while True:
            self._wait(line, own_place)
            if own_place.state is _State.DONE:
                return own_place.answer  # type: ignore[return-value]
            batch = self._take(line, own_place)
            answers: Sequence[R] | None = None
            is_again = False
            try:
                answers = work([waiter.item for waiter in batch], own_place.is_alone)
            except Exception:
                if len(batch) == 1:
                    raise
                is_again = True
            finally:
                others = batch if is_again else batch[1:]
                self._end(line, others, None if answers is None else answers[1:])
            if answers is not None:
                return answers[0]

    def _join(self, line: str, waiter: _Waiter[P, R]) -> None:
        with self._guard:
            if line in self._lines:
                self._lines[line].append(waiter)
                return
            self._lines[line] = collections.deque()
            waiter.move(_State.LEADING)

    def _wait(self, line: str, waiter: _Waiter[P, R]) -> None:
        """Wait until `waiter` leads the line or is done."""
        try:
            waiter.changed.wait(connection.seconds_left())
        except BaseException:
            if not self._leave(line, waiter) and waiter.state is _State.LEADING:
                self._end(line, [], [])
            raise
        with self._guard:
            if waiter.state in {_State.LEADING, _State.DONE}:
                return
        if self._leave(line, waiter):
            raise errors.Overloaded("the work before this one took too long")

    def _leave(self, line: str, waiter: _Waiter[P, R]) -> bool:
        """Leave the line. Return False if `waiter` already leads the line or is done."""
        with self._guard:
            if waiter.state in {_State.LEADING, _State.DONE}:
                return False
            if waiter.state is _State.WAITING:
                self._lines[line].remove(waiter)
            waiter.state = _State.GONE
            return True

    def _take(self, line: str, leader: _Waiter[P, R]) -> list[_Waiter[P, R]]:
        """Take the next batch from the line."""
        batch, keys, size = [leader], {leader.key}, leader.size
        with self._guard:
            waiting = self._lines[line]
            while waiting and len(batch) < self._most and not leader.is_alone:
                following = waiting[0]
                size += following.size
                if following.is_alone or following.key in keys or size > self._most_size:
                    break
                keys.add(following.key)
                batch.append(waiting.popleft())
                following.state = _State.TAKEN
        return batch

    def _end(self, line: str, batch: Sequence[_Waiter[P, R]], answers: Sequence[R] | None) -> None:
        """Deliver the answers, or put the waiters back if there are none; then pass on the line."""
        with self._guard:
            waiting = self._lines[line]
            present = [waiter for waiter in batch if waiter.state is not _State.GONE]
            if answers is None:
                for waiter in reversed(present):
                    waiter.is_alone, waiter.state = True, _State.WAITING
                    waiter.changed.clear()
                    waiting.appendleft(waiter)
            else:
                for waiter, answer in zip(batch, answers, strict=True):
                    waiter.answer = answer
                    if waiter.state is not _State.GONE:
                        waiter.move(_State.DONE)
            if waiting:
                waiting.popleft().move(_State.LEADING)
            else:
                del self._lines[line]
