"""What changed in this process: threads and lists to fold, votes to count, events to deliver.

Owns when a thread is due: `ERASE_AFTER` an edit or a retraction, else when `FOLD_ROWS` changes wait
or the oldest is `FOLD_AFTER` seconds old. A list is due when a mark of it asks, a comment
`COUNT_AFTER` its first vote that is not counted. Each waits once, however often it changed.

What must stay true: nothing depends on this. What is not folded stands in the store, in the commit
that changed it; what is lost here with a process is found again by a query (`scheduler`).
A process without a worker keeps nothing, so nothing grows where nobody folds. On App Engine a queue
takes the place of the backlog (`cloud_tasks`).
"""

import dataclasses
import itertools
import math
import threading
import time
from collections.abc import Callable
from typing import Protocol

from comments.domain import records
from comments.store import per_process

Name = records.ThreadName | records.ListName | records.VotedComment
TELL_AFTER = 0.5  # seconds: a burst of events is delivered together
TOLD_AT_ONCE = 200  # events
MOST_EVENTS = 10_000  # that wait; what is beyond is found by a sweep
FOLD_ROWS = 64  # changes; fewer cost more writes a change (test_compactor_costs.py)
FOLD_AFTER = 900.0  # seconds; a row says itself by when (`fold_by`), so whoever looks knows it
# Seconds: at once, but a burst of edits is one folding. With the grace, and the minute that cron
# may take, an erased text leaves every stored form within minutes; the promise is an hour.
ERASE_AFTER = 1.0
COUNT_AFTER = 10.0  # seconds: votes on a comment change its row this often, at most


@dataclasses.dataclass(slots=True)
class _Waiting:
    changes: int
    due: float


class Backlog:
    """Names of threads and lists, and when each is due. Safe for many threads.

    Args:
        clock: seconds, monotonic.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._waiting: dict[Name, _Waiting] = {}
        self._events: dict[str, None] = {}
        self._events_due = math.inf
        self._changed = threading.Condition()
        self._is_open = False

    def __len__(self) -> int:
        return len(self._waiting)

    def open(self) -> None:
        """Keep what is added from now on: somebody here will fold it."""
        with self._changed:
            self._is_open = True

    def close(self) -> None:
        """Forget everything and wake who waits."""
        with self._changed:
            self._is_open = False
            self._waiting.clear()
            self._events.clear()
            self._events_due = math.inf
            self._changed.notify_all()

    def add(self, name: Name, *, changes: int = 1, within: float = math.inf) -> None:
        """Note changes of something that is to be folded `within` seconds at the latest."""
        with self._changed:
            if not self._is_open:
                return
            now = self.clock()
            waiting = self._waiting.setdefault(name, _Waiting(0, now + FOLD_AFTER))
            waiting.changes += changes
            within = 0.0 if waiting.changes >= FOLD_ROWS else within
            waiting.due = min(waiting.due, now + within)
            self._changed.notify_all()

    def tell(self, event: str) -> None:
        """Note an event that is to be delivered, with those that follow it in a moment."""
        with self._changed:
            if not self._is_open or len(self._events) >= MOST_EVENTS:
                return
            self._events[event] = None
            self._events_due = min(self._events_due, self.clock() + TELL_AFTER)
            self._changed.notify_all()

    def take_events(self) -> list[str]:
        """Take events to be delivered, if it is time, in the order they came; the rest is due."""
        with self._changed:
            if self.clock() < self._events_due:
                return []
            events = list(itertools.islice(self._events, TOLD_AT_ONCE))
            for event in events:
                del self._events[event]
            if not self._events:
                self._events_due = math.inf
            return events

    def take(self) -> list[Name]:
        """Take what is due, those that wait longest first."""
        with self._changed:
            now = self.clock()
            due = [name for name, waiting in self._waiting.items() if waiting.due <= now]
            due.sort(key=lambda name: self._waiting[name].due)
            for name in due:
                del self._waiting[name]
            return due

    @property
    def next_due(self) -> float:
        """When something is due, by the clock; infinite where nothing waits."""
        with self._changed:
            return min((self._events_due, *(each.due for each in self._waiting.values())))

    def wait(self, until: float) -> bool:
        """Wait for something to be due, for `until` or for the end. False when that has come."""
        with self._changed:
            seconds = min(self.next_due, until) - self.clock()
            if self._is_open and seconds > 0:
                self._changed.wait(min(seconds, FOLD_AFTER))
            return self._is_open


class Notes(Protocol):
    """What takes note of what changed: a `Backlog`, or whoever has others begin at once."""

    def tell(self, event: str, /) -> None:
        """Note an event that is to be delivered."""

    def add(self, name: Name, /, *, changes: int = 1, within: float = math.inf) -> None:
        """Note changes of something that is to be folded `within` seconds."""


BACKLOG = per_process.PerProcess(Backlog)
# What takes the backlog's place in a process without a worker.
ELSEWHERE = per_process.PerProcess[Notes | None](lambda: None)


def _notes() -> Notes:
    return ELSEWHERE.get() or BACKLOG.get()


def tell(event: str) -> None:
    """Say that an event is committed. Call it after the commit; without an id nothing happened."""
    if event:
        _notes().tell(event)


def changed(name: records.ThreadName, *, changes: int = 1) -> None:
    """Say that rows of a thread changed and readers gained something. Call it after the commit."""
    _notes().add(name, changes=changes)


def erased(name: records.ThreadName) -> None:
    """Say that a thread lost a text that its buckets may hold. Call it after the commit."""
    _notes().add(name, within=ERASE_AFTER)


def voted(name: records.VotedComment) -> None:
    """Say that votes on a comment wait to be counted. Call it after the commit."""
    _notes().add(name, changes=0, within=COUNT_AFTER)


def again(name: Name, *, within: float) -> None:
    """Say that something could not be folded, and is to be tried again."""
    _notes().add(name, changes=0, within=within)


def asked(name: records.ListName) -> None:
    """Say that a mark asks for its list to be folded. Call it after the commit."""
    _notes().add(name, within=0.0)
