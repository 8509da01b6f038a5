"""The scheduler: what a process compacts and delivers, and in which order.

Owns the way from a changed thread to a cleared one within a process: fold what is due, remember
what was switched and when by this process's own monotonic clock, and after `compactor.GRACE` clear
it and delete what it replaced, with the orphans found beside it. Large lists (`follower_lists`) are
folded here too, and votes counted (`voting`), without a second step. Events of this process are
delivered a moment after their commit, those of processes that are gone by a sweep (`dispatcher`).

On one machine a thread of each serving process does this (`background_worker`). On App Engine,
where nothing runs after an answer, cron asks `/tasks/compact` for a `visit`: the instance may live
for that call alone and no clock but its own may measure the grace, so the call waits for it.
Rankings are kept for an hour, which no call waits for: their directory says, by the clock of who
replaced them, until when, and whoever comes later deletes them.

What must stay true: whatever fails is tried again later, and nothing that fails ends a round.
What is remembered here may be lost: flags stand in the store, so a process that starts, and from
time to time each one, looks for the threads and lists that have some (`look`).
"""

import dataclasses
import logging
import math
import random
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from comments import errors
from comments.domain import records, sorthash
from comments.events import backlog, dead_letters, dispatcher, message_sender
from comments.jobs import recategorize, upgrades, wiring
from comments.moderation import bans, retention
from comments.notifications import follower_compaction, follower_lists
from comments.posting import cast_vote
from comments.reading.compaction import compactor, due_threads, leftovers
from comments.sites import rate_limits
from comments.store import connection, per_process, reads
from comments.tree.counters import sharding

_RETRY_AFTER = 5.0  # seconds, doubled at random so that two folders do not meet again
_TRIES = 5  # of a command for one thread

_log = logging.getLogger("flatthread")


@dataclasses.dataclass(frozen=True, slots=True)
class Switched:
    """What is to be cleared at a time of this process's clock."""

    due: float
    folded: compactor.Compacted
    orphans: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """What a round did: threads and lists folded; threads cleared, and waiting for their grace."""

    folded: int
    cleared: int
    waiting: int


class Scheduler:
    """The upkeep of one store by one process.

    Args:
        scheme: of the sites' sort hashes.
        clock: seconds, monotonic: measures the grace.
        now: the time of day: says until when rankings are kept.
        handlers: who is told of events; without, those that only write to the store.
        reach: how those outside are told of messages.
    """

    def __init__(
        self,
        scheme: sorthash.Scheme,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        handlers: Sequence[dispatcher.Handler] | None = None,
        reach: message_sender.Reach = message_sender.channels,
    ) -> None:
        self._scheme = scheme
        self.reach = reach
        self._clock = clock
        self.now = now
        self.handlers = wiring.HANDLERS if handlers is None else handlers
        self._switched: list[Switched] = []
        self._turn = threading.Lock()
        self._visitor = threading.Lock()

    @property
    def waiting(self) -> Sequence[Switched]:
        """What is not cleared yet."""
        return tuple(self._switched)

    @property
    def next_clearing(self) -> float:
        """When there is something to clear, by this process's clock."""
        return min((each.due for each in self._switched), default=float("inf"))

    def deliver(self, events: Sequence[str]) -> dispatcher.Done:
        """Deliver these events."""
        return dispatcher.deliver(events, now=self.now(), handlers=self.handlers)

    def sweep(self) -> dispatcher.Done:
        """Deliver events of processes that did not; a bounded number of them."""
        return dispatcher.sweep(now=self.now(), handlers=self.handlers)

    def sweep_fresh(self) -> dispatcher.Done:
        """The same, and those that nobody tried yet."""
        return dispatcher.sweep_fresh(now=self.now(), handlers=self.handlers)

    def send(self, within: float) -> message_sender.Done:
        """Tell what waits to be told outside, beginning nothing after so many seconds."""
        return message_sender.serve(self.now, within=within, reach=self.reach)

    def waiting_letters(self) -> dead_letters.Waiting:
        """How much waits to be delivered or told, and for how long."""
        return dead_letters.waiting(self.now())

    def due(self, backlog: backlog.Backlog) -> Iterator[backlog.Name]:
        """Take from a backlog what is to be done now; others may have folded a thread meanwhile."""
        for name in backlog.take():
            left = self._left(name) if isinstance(name, records.ThreadName) else 0.0
            if left <= 0:
                yield name
            elif left < math.inf:
                backlog.add(name, changes=0, within=left)

    def _left(self, name: records.ThreadName) -> float:
        try:
            return due_threads.wait(name, self.now())
        except Exception as error:  # noqa: BLE001 - whoever folds it sees what is there
            report(f"looking at {name.site} {name.id}", error)
            return 0.0

    def round(self, names: Iterable[backlog.Name]) -> Done:
        """Fold these, votes counted first, and clear what was switched long enough ago.

        One at a time.
        """
        with self._turn:
            for voted in filter(_is_voted, due := list(names)):
                self._try(voted)
            folded = sum(self._try(name) for name in due if not _is_voted(name))
            return Done(folded, self._clear(), len(self._switched))

    def visit(self, names: Iterable[backlog.Name], wait: Callable[[float], None]) -> Done:
        """Do all there is in one call: fold these, `wait` for the grace, and clear.

        Of several calls at once only one waits; the others leave it to that one, or the next.
        """
        done = self.round(names)
        self.expire()
        if not done.waiting or not self._visitor.acquire(blocking=False):
            return done
        try:
            wait(max(0.0, self.waiting[-1].due - self._clock()))
        finally:
            self._visitor.release()
        last = self.round(())
        return Done(done.folded, done.cleared + last.cleared, last.waiting)

    def expire(self) -> None:
        """Delete what is kept for a term: old rankings, networks, limits, refused texts."""
        try:
            leftovers.expire(self.now())
            cast_vote.expire(self.now())
            retention.expire(self.now())
            rate_limits.expire(self.now())
            bans.expire(self.now())
        except Exception as error:  # noqa: BLE001 - whoever comes next tries again
            report("deleting what has expired", error)

    def fold(self, name: records.ThreadName, *, only_due: bool = False) -> bool:
        """Fold a thread, and note what is to be cleared. False if somebody else was faster."""
        folded = compactor.compact(self._scheme, name, now=self.now(), only_due=only_due)
        if folded is None:
            return False
        if folded.left:
            # What was due is folded, its flags stand for the grace; the rest came since.
            backlog.again(name, within=folded.left)
        due = self._clock() + compactor.GRACE
        orphans = tuple(leftovers.sweep(name))
        if folded.directory.content.clearing or folded.directory.content.dead or orphans:
            self._switched.append(Switched(due, folded, orphans))
        return True

    def _try(self, name: backlog.Name) -> bool:
        try:
            if self._fold(name):
                return True
        except Exception as error:  # noqa: BLE001 - one thread's trouble must not stop the others
            report(f"folding {' '.join(msgspec.structs.astuple(name))}", error)
        retry = _RETRY_AFTER * (1 + random.random())  # noqa: S311 - to come apart
        backlog.again(name, within=retry)
        return False

    def _fold(self, name: backlog.Name) -> bool:
        if isinstance(name, records.ListName):
            return follower_compaction.compact(name)
        if isinstance(name, records.VotedComment):
            cast_vote.count(name.id, now=self.now())
            return True
        return self.fold(name, only_due=True)

    def _clear(self) -> int:
        due = [each for each in self._switched if each.due <= self._clock()]
        for each in due:
            self._switched.remove(each)
            try:
                clear(each)
            except Exception as error:  # noqa: BLE001 - same
                report(f"clearing {each.folded.name.site} {each.folded.name.id}", error)
                later = dataclasses.replace(each, due=self._clock() + _RETRY_AFTER)
                self._switched.append(later)
        return len(due)


def clear(switched: Switched) -> None:
    """Delete what is not needed and clear what was folded, its grace being over."""
    compactor.clear(switched.folded, switched.orphans)


UPKEEP = per_process.PerProcess[Scheduler]()


def of_process(
    scheme: sorthash.Scheme,
    handlers: Sequence[dispatcher.Handler] | None = None,
    reach: message_sender.Reach = message_sender.channels,
) -> Scheduler:
    """The upkeep that this process does for the current store."""
    return UPKEEP.of(
        connection.current(), lambda: Scheduler(scheme, handlers=handlers, reach=reach)
    )


def look(now: datetime | None = None) -> list[backlog.Name]:
    """What is to be done, whoever left it: votes to count, threads to fold, lists."""
    now = datetime.now(UTC) if now is None else now
    return [*cast_vote.waiting(now), *due_threads.due(now), *follower_lists.asking()]


def settle(now: datetime) -> int:
    """Gather the counters of threads that were busy and are quiet again; how many.

    Finish what others began and did not finish, a bounded part of it.
    """
    recategorize.finish(now=now)
    upgrades.go_on()
    sharding.notice_spread()
    return sharding.gather_quiet()


def threads(site: str) -> Iterator[records.ThreadName]:
    """The threads of a site."""
    query = reads.Query("Thread", where=(("site", "=", site),))
    for entity in reads.walk(query):
        yield records.ThreadName(site, entity.properties["thread"].string_value)


def compact_whole(
    scheme: sorthash.Scheme,
    names: Iterable[records.ThreadName],
    *,
    wait: Callable[[float], None] | None,
) -> Done:
    """Fold threads now, and clear them after the grace if there is a way to `wait` for it.

    Raises:
        errors.Overloaded: a thread is folded by others faster than here, or the store is busy.
    """
    upkeep = Scheduler(scheme)
    names = list(names)
    for name in names:
        if not any(upkeep.fold(name) for _ in range(_TRIES)):
            raise errors.Overloaded(f"{name.site} {name.id} is folded by others just now")
    if wait is None or not upkeep.waiting:
        return Done(len(names), 0, len(upkeep.waiting))
    wait(compactor.GRACE)
    for each in upkeep.waiting:
        clear(each)
    upkeep.expire()
    return Done(len(names), len(upkeep.waiting), 0)


def _is_voted(name: backlog.Name) -> bool:
    return isinstance(name, records.VotedComment)


def report(what: str, error: Exception) -> None:
    """Say in the log what failed, and is tried again."""
    if isinstance(error, errors.Overloaded):
        _log.warning("%s failed, and is tried again: %s", what, error)
    else:
        _log.error("%s failed, and is tried again", what, exc_info=error)
