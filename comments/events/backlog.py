"""The backlog of this process: compactions, votes to count, undos, erasures, events to deliver.

A thread is due `ERASE_AFTER` seconds after an edit or a retraction. Otherwise, it is due when it
has `FOLD_ROWS` pending changes or when its oldest pending change is `FOLD_AFTER` seconds old. A
list is due when one of its marks requests compaction; a comment is due `COUNT_AFTER` seconds after
its first uncounted vote. An undo of an import, an erasure of a site and a bulk decision are due
immediately. Each of them, and each thread, list and comment, is in the backlog only once, no matter
how often it changes.

No work depends on the backlog alone. The commit of a change also stores that compaction, counting
or delivery is needed. If a process dies, a query (`scheduler`) therefore finds the work of that
process. A process without a worker adds nothing to its backlog. On App Engine, a task queue
replaces the backlog (`cloud_tasks`).
"""

import dataclasses
import itertools
import math
import threading
import time
from collections.abc import Callable
from typing import Protocol

from comments.domain import records
from comments.store.memory import per_process

Name = (
    records.ThreadName
    | records.SetName
    | records.VotedComment
    | records.ImportUndo
    | records.SiteErasure
    | records.BulkDecision
)
TELL_AFTER = 0.5  # Seconds without a new event after which the collected events are delivered.
# Maximum number of seconds that an event waits while more events arrive. A larger delivery takes
# less processor time for each event, and writes a busy site's counter rows less often.
TELL_WITHIN = 2.0
TOLD_AT_ONCE = 200  # Maximum number of events delivered together.
MOST_EVENTS = 10_000  # Maximum number of events in the backlog; a sweep finds all other events.
FOLD_ROWS = 64  # Compacting fewer changed rows costs more writes (test_compactor_costs.py).
FOLD_AFTER = 900.0  # Seconds; each row stores its own deadline (`fold_by`) for other processes.
# In seconds. The delay is short, but long enough that a burst of edits needs only one compaction.
# Including the grace period and the minute until cron runs, an erased text leaves every stored form
# within minutes, although the promise is an hour.
ERASE_AFTER = 1.0
COUNT_AFTER = 10.0  # Minimum number of seconds between two updates of a comment's row for votes.


@dataclasses.dataclass(slots=True)
class _Waiting:
    changes: int
    due: float


class Backlog:
    """The threads, lists and comments with pending work, and when each is due.

    This class is thread-safe.

    Args:
        clock: returns monotonic time in seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._waiting: dict[Name, _Waiting] = {}
        self._events: dict[str, None] = {}
        self._events_due = self._events_end = math.inf
        self._wakes = -math.inf  # The time when the waiting worker wakes up by itself.
        self._changed = threading.Condition()
        self._is_open = False

    def __len__(self) -> int:
        return len(self._waiting)

    def open(self) -> None:
        """Accept additions from now on, because this process has a worker."""
        with self._changed:
            self._is_open = True

    def close(self) -> None:
        """Drop all entries and wake up waiting threads."""
        with self._changed:
            self._is_open = False
            self._waiting.clear()
            self._events.clear()
            self._events_due = self._events_end = math.inf
            self._changed.notify_all()

    def add(self, name: Name, *, changes: int = 1, within: float = math.inf) -> None:
        """Record changes to a thread, list or comment.

        The changes must be processed within `within` seconds.
        """
        with self._changed:
            if not self._is_open:
                return
            now = self.clock()
            waiting = self._waiting.setdefault(name, _Waiting(0, now + FOLD_AFTER))
            waiting.changes += changes
            within = 0.0 if waiting.changes >= FOLD_ROWS else within
            waiting.due = min(waiting.due, now + within)
            self._wake(waiting.due)

    def _wake(self, due: float) -> None:
        """Wake up a worker that would sleep for too long.

        Other workers keep sleeping; otherwise, every new post would wake them all up.
        """
        if due < self._wakes:
            self._changed.notify_all()

    def tell(self, event: str) -> None:
        """Record an event.

        Events are delivered together when no new event has arrived for `TELL_AFTER`, or when the
        oldest is `TELL_WITHIN` old.
        """
        with self._changed:
            if not self._is_open or len(self._events) >= MOST_EVENTS:
                return
            now = self.clock()
            if not self._events:
                self._events_end = now + TELL_WITHIN
            self._events[event] = None
            if self._events_due > now:
                self._events_due = min(now + TELL_AFTER, self._events_end)
            self._wake(self._events_due)

    def take_events(self) -> list[str]:
        """Take events in order of arrival if delivery is due. The remaining events stay due."""
        with self._changed:
            if self.clock() < self._events_due:
                return []
            events = list(itertools.islice(self._events, TOLD_AT_ONCE))
            for event in events:
                del self._events[event]
            if not self._events:
                self._events_due = self._events_end = math.inf
            return events

    def take(self) -> list[Name]:
        """Take all due work, longest overdue first."""
        with self._changed:
            now = self.clock()
            due = [name for name, waiting in self._waiting.items() if waiting.due <= now]
            due.sort(key=lambda name: self._waiting[name].due)
            for name in due:
                del self._waiting[name]
            return due

    @property
    def next_due(self) -> float:
        """Return the clock time at which work is next due; infinity if there is none."""
        with self._changed:
            return min((self._events_due, *(item.due for item in self._waiting.values())))

    def wait(self, until: float) -> bool:
        """Wait until work is due or `until` is reached; return False if the backlog is closed."""
        with self._changed:
            end = min(self.next_due, until)
            seconds = end - self.clock()
            if self._is_open and seconds > 0:
                self._wakes = end
                self._changed.wait(min(seconds, FOLD_AFTER))
                self._wakes = -math.inf
            return self._is_open


class Notes(Protocol):
    """The interface for reporting changes: a `Backlog`, or a queue to other processes."""

    def tell(self, event: str, /) -> None:
        """Record an event to deliver."""

    def add(self, name: Name, /, *, changes: int = 1, within: float = math.inf) -> None:
        """Record changes to a thread, list or comment.

        The changes must be processed within `within` seconds.
        """


BACKLOG = per_process.PerProcess(Backlog)
# Replaces the backlog in a process without a worker.
ELSEWHERE = per_process.PerProcess[Notes | None](lambda: None)


def _notes() -> Notes:
    return ELSEWHERE.get() or BACKLOG.get()


def tell(event: str) -> None:
    """Report a committed event. Call this function after the commit. An empty id is ignored."""
    if event:
        _notes().tell(event)


def note_changes(name: records.ThreadName, *, changes: int = 1) -> None:
    """Report changed rows of a thread.

    Call this function after the commit, unless the change removed a text (`note_erasure`).
    """
    _notes().add(name, changes=changes)


def note_erasure(name: records.ThreadName) -> None:
    """Report that a thread lost a text that its buckets may still contain.

    Call this function after the commit.
    """
    _notes().add(name, within=ERASE_AFTER)


def note_vote(name: records.VotedComment) -> None:
    """Report that a comment has votes to count. Call this function after the commit."""
    _notes().add(name, changes=0, within=COUNT_AFTER)


def note_undo(undo: records.ImportUndo) -> None:
    """Report that an undo of an import has work to do. Call this function after the commit."""
    _notes().add(undo, changes=0, within=0.0)


def note_site_erasure(site: str) -> None:
    """Report that the rows of a site must be erased. Call this function after the commit."""
    _notes().add(records.SiteErasure(site), changes=0, within=0.0)


def note_bulk(decision: records.BulkDecision) -> None:
    """Report that a bulk decision has work to do. Call this function after the commit."""
    _notes().add(decision, changes=0, within=0.0)


def again(name: Name, *, within: float) -> None:
    """Report work that could not be done, so that it is retried within `within` seconds."""
    _notes().add(name, changes=0, within=within)


def note_request(name: records.SetName) -> None:
    """Report that a mark requests compaction of its set. Call this function after the commit."""
    _notes().add(name, within=0.0)
