"""Schedule a process's compaction, vote counting and delivery.

The scheduler compacts threads that are due and records the time of each switch by this process's
monotonic clock. After `compactor.GRACE`, the scheduler clears the flags and deletes replaced and
unreferenced buckets. The scheduler also compacts large sets (`set_compaction`) and counts votes
(`cast_vote`), neither of which needs a second step. The scheduler runs undos of imports, erasures
of sites and bulk decisions in parts, so that other work can run in between, and continues an undo
as soon as the compactions for which the undo waits are cleared. The scheduler delivers the
process's own events shortly after their commit. A sweep delivers the events of processes that have
ended (`dispatcher`).

On a single machine, a thread in each serving process runs the scheduler (`background_worker`). On
App Engine, where no code runs after a response, cron calls `/tasks/upkeep`, which calls
`compact_and_clear`. Only the instance's own clock may measure the grace period, and the instance
may end after the call. The call therefore waits until the grace period is over. Replaced rankings
are kept for an hour, but no call waits for them. Instead, the directory stores the time when its
replaced rankings expire, measured by the clock of the process that replaced them. Any later call
then deletes them.

Failed work is retried later, and a failure does not end the round. If this process loses its
memory, no work is lost: the flags are in the store, and each process searches for flagged threads
and sets at its start and from time to time (`find_due_work`).
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
from comments.accounts import security_log
from comments.domain import records
from comments.events import backlog, dead_letters, dispatcher, message_sender, outbox
from comments.limits import rate_limits
from comments.moderation import bans, bulk_decisions, retention
from comments.notifications import inbox
from comments.posting import cast_vote
from comments.reading.compaction import compactor, due_threads, leftovers, rebuilding
from comments.sites import notice_recipients, site_settings
from comments.store import connection, reads
from comments.store.large_sets import set_compaction, set_search
from comments.store.memory import per_process
from comments.transfer.importing import import_undo
from comments.transfer.moves import doubled_threads, move_journal, thread_joins, thread_moves
from comments.tree.bulk import recategorize
from comments.tree.counters import sharding, thread_counts
from comments.tree.counters.declared import declared_backfill
from comments.upkeep import site_erasure, wiring
from comments.upkeep.migrations import rescheming, thread_count_rows, upgrades

_RETRY_AFTER = 5.0  # Seconds; a random factor of up to 2 keeps processes apart
# Seconds until an undo is tried again if another process may have compacted its threads.
_UNDO_AGAIN = compactor.GRACE + 15.0
STEPS = 20  # Maximum steps per job and call of `continue_jobs`, to leave time for other work.
_TRIES = 5  # Maximum number of attempts by a command to compact one thread.

_log = logging.getLogger("flatthread")


@dataclasses.dataclass(frozen=True, slots=True)
class UnclearedCompaction:
    """A compaction to be cleared when this process's clock reaches `due`."""

    due: float
    result: compactor.CompactionResult
    orphans: tuple[str, ...]


@dataclasses.dataclass(frozen=True, slots=True)
class RoundSummary:
    """Numbers of threads and lists compacted, threads cleared, and threads still to be cleared."""

    compacted: int
    cleared: int
    waiting: int


# Handlers that send mail come and go with the mail server.
Handlers = Sequence[dispatcher.Handler] | Callable[[], Sequence[dispatcher.Handler]]


class Scheduler:
    """The background work that one process does on one store.

    Args:
        clock: returns monotonic time in seconds; measures the grace period.
        now: returns the current time; determines how long replaced rankings are kept.
        handlers: the handlers that receive events, or a function that returns the current ones;
            by default, those that only write to the store.
        reach: makes the channels for sending messages.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        handlers: Handlers | None = None,
        reach: message_sender.Reach = message_sender.channels,
    ) -> None:
        self.reach = reach
        self._clock = clock
        self.now = now
        self._handlers = wiring.HANDLERS if handlers is None else handlers
        self._switched: list[UnclearedCompaction] = []
        # The undos that wait for compactions, each with those of its threads that are not cleared
        # yet.
        self._undos: dict[records.ImportUndo, set[records.ThreadName]] = {}
        self._turn = threading.Lock()
        self._visitor = threading.Lock()

    @property
    def handlers(self) -> Sequence[dispatcher.Handler]:
        """The handlers that receive events now."""
        return self._handlers() if callable(self._handlers) else self._handlers

    @property
    def uncleared_compactions(self) -> Sequence[UnclearedCompaction]:
        """Return the compactions that are not yet cleared."""
        return tuple(self._switched)

    @property
    def next_clearing(self) -> float:
        """Return when the next clearing is due on this process's clock; infinity if none is."""
        return min((compaction.due for compaction in self._switched), default=float("inf"))

    def deliver(self, events: Sequence[str]) -> dispatcher.DeliveryCounts:
        """Deliver events to this process's handlers."""
        return _complete_thread_counts(
            dispatcher.deliver(events, now=self.now(), handlers=self.handlers)
        )

    def sweep(self) -> dispatcher.DeliveryCounts:
        """Deliver a limited number of events that other processes left undelivered."""
        return _complete_thread_counts(dispatcher.sweep(now=self.now(), handlers=self.handlers))

    def sweep_fresh(self) -> dispatcher.DeliveryCounts:
        """Do the same as `sweep`, but include events that no process has tried yet."""
        return _complete_thread_counts(
            dispatcher.sweep_fresh(now=self.now(), handlers=self.handlers)
        )

    def send(self, within: float) -> message_sender.SendingCounts:
        """Send pending messages, but start no new attempt after `within` seconds."""
        return message_sender.serve(self.now, within=within, reach=self.reach)

    def plan_digests(self) -> None:
        """Plan the digests that are due, if this process sends mail."""
        if any(outbox.EventKind.MAIL in handler.kinds for handler in self.handlers):
            notice_recipients.plan_digests(self.now())

    def waiting_messages(self) -> dead_letters.Waiting:
        """Count pending and dead letters, and return the age of the oldest pending letter."""
        return dead_letters.count_waiting(self.now())

    def due_names(self, backlog: backlog.Backlog) -> Iterator[backlog.Name]:
        """Yield the entries in a backlog that are due.

        This method first checks the store and drops threads that another process has already
        compacted.
        """
        for name in backlog.take():
            left = self._seconds_left(name) if isinstance(name, records.ThreadName) else 0.0
            if left <= 0:
                yield name
            elif left < math.inf:
                backlog.add(name, changes=0, within=left)

    def _seconds_left(self, name: records.ThreadName) -> float:
        try:
            return due_threads.wait(name, self.now())
        except Exception as error:  # noqa: BLE001 - the compaction checks the rows itself
            log_failure(f"Checking whether {name.site} {name.id} is due", error)
            return 0.0

    def round(
        self, names: Iterable[backlog.Name], between: Callable[[], None] = lambda: None
    ) -> RoundSummary:
        """Count votes, continue undos and erasures, compact other entries, and clear compactions.

        A compaction is cleared after its grace period.

        Only one round runs at a time. `between` is called after each entry, because a round with
        many compactions takes long.
        """
        compacted = 0
        with self._turn:
            # False sorts first, so votes are counted before anything is compacted.
            for name in sorted(names, key=lambda each: not isinstance(each, records.VotedComment)):
                is_compaction = isinstance(name, records.ThreadName | records.SetName)
                compacted += self._try(name) and is_compaction
                between()
            return RoundSummary(compacted, self._clear(), len(self._switched))

    def compact_and_clear(
        self, names: Iterable[backlog.Name], wait: Callable[[float], None]
    ) -> RoundSummary:
        """Compact entries, `wait` for the grace period, and clear the compactions, all in one call.

        If there are several concurrent calls, only one of them waits; the others leave the clearing
        to that call or to the next one.
        """
        done = self.round(names)
        self.expire()
        if not done.waiting or not self._visitor.acquire(blocking=False):
            return done
        try:
            wait(max(0.0, self.uncleared_compactions[-1].due - self._clock()))
        finally:
            self._visitor.release()
        last = self.round(())
        return RoundSummary(done.compacted, done.cleared + last.cleared, last.waiting)

    def expire(self) -> None:
        """Delete expired rankings, voter networks, refused texts, rate limits and ban marks.

        This method also deletes expired entries of security logs, and the journals of old imports
        and moves.
        """
        try:
            for owner in (
                leftovers,
                cast_vote,
                retention,
                rate_limits,
                bans,
                import_undo,
                thread_joins,
                move_journal,
                bulk_decisions,
                security_log,
            ):
                owner.expire(self.now())
        except Exception as error:  # noqa: BLE001 - the next call tries again
            log_failure("Deleting expired data", error)

    def compact(self, name: records.ThreadName, *, only_due: bool = False) -> bool:
        """Compact a thread and schedule its clearing.

        Return False if another process compacted it first.
        """
        if site_settings.is_being_erased(name.site):
            return True
        scheme = site_settings.scheme_of(name.site)
        result = compactor.compact(scheme, name, now=self.now(), only_due=only_due)
        if result is None:
            return False
        if result.left:
            # The rows that were due are compacted, and their flags stay set for the grace period.
            # The other rows changed later and are not due yet.
            backlog.again(name, within=result.left)
        due = self._clock() + compactor.GRACE
        orphans = tuple(leftovers.orphans(name))
        if result.directory.content.clearing or result.directory.content.dead or orphans:
            self._switched.append(UnclearedCompaction(due, result, orphans))
        return True

    def _try(self, name: backlog.Name) -> bool:
        try:
            if self._compact_or_continue(name):
                return True
        except Exception as error:  # noqa: BLE001 - one failure must not stop the others
            log_failure(f"{_work(name)} {' '.join(msgspec.structs.astuple(name))}", error)
        retry = _RETRY_AFTER * (1 + random.random())  # noqa: S311 - only to spread retries
        backlog.again(name, within=retry)
        return False

    def _compact_or_continue(self, name: backlog.Name) -> bool:
        if isinstance(name, records.SetName):
            return set_compaction.compact(name, most=inbox.most_of(name))
        if isinstance(name, records.VotedComment):
            cast_vote.count(name.id, now=self.now())
            return True
        if isinstance(name, records.ImportUndo):
            self._undo(name)
            return True
        if isinstance(name, records.SiteErasure):
            if site_erasure.run_part(name.site, now=self.now()).is_left:
                backlog.note_site_erasure(name.site)
            return True
        if isinstance(name, records.BulkDecision):
            bulk_decisions.run_part(name, now=self.now())
            return True
        return self.compact(name, only_due=True)

    def _undo(self, undo: records.ImportUndo) -> None:
        """Run the next part of an undo, and schedule the part after it."""
        done = import_undo.go_on(undo.site, undo.id, now=self.now(), steps=import_undo.STEPS)
        self._undos.pop(undo, None)
        if done.is_left:
            backlog.note_undo(undo)
        elif done.found.is_being_undone:
            self._undos[undo] = set(done.waiting)
            backlog.again(undo, within=_UNDO_AGAIN)

    def _clear(self) -> int:
        due = [compaction for compaction in self._switched if compaction.due <= self._clock()]
        cleared = set()
        for compaction in due:
            self._switched.remove(compaction)
            try:
                compactor.clear(compaction.result, compaction.orphans)
                cleared.add(compaction.result.name)
            except Exception as error:  # noqa: BLE001 - one failure must not stop the others
                log_failure(
                    f"Clearing {compaction.result.name.site} {compaction.result.name.id}", error
                )
                later = dataclasses.replace(compaction, due=self._clock() + _RETRY_AFTER)
                self._switched.append(later)
        self._continue_undos(
            cleared.difference(compaction.result.name for compaction in self._switched)
        )
        return len(due)

    def _continue_undos(self, cleared: set[records.ThreadName]) -> None:
        """Continue the undos that waited only for these threads."""
        for undo, threads in self._undos.items():
            if threads:
                threads.difference_update(cleared)
                if not threads:
                    backlog.note_undo(undo)


def deliver(
    events: Sequence[str], *, now: datetime, handlers: Sequence[dispatcher.Handler]
) -> None:
    """Deliver events in a command, which has no background worker."""
    _complete_thread_counts(dispatcher.deliver(events, now=now, handlers=handlers))


def _complete_thread_counts(found: dispatcher.DeliveryCounts) -> dispatcher.DeliveryCounts:
    """Complete the rows of thread counts that a delivery found incomplete."""
    for site in thread_counts.take_incomplete():
        try:
            thread_count_rows.complete(site)
        except Exception as error:  # noqa: BLE001 - the next delivery for the site tries again
            log_failure(f"Completing the thread counts of {site}", error)
    return found


UPKEEP = per_process.PerProcess[Scheduler]()


def of_process(
    handlers: Handlers | None = None,
    reach: message_sender.Reach = message_sender.channels,
) -> Scheduler:
    """Return this process's scheduler for the current store."""
    return UPKEEP.of(connection.current(), lambda: Scheduler(handlers=handlers, reach=reach))


def find_due_work(now: datetime | None = None) -> list[backlog.Name]:
    """Find all due work in the store: votes, undos, erasures, and threads and lists to compact."""
    now = datetime.now(UTC) if now is None else now
    return [
        *cast_vote.waiting_comments(now),
        *import_undo.unfinished_undos(),
        *site_erasure.due_erasures(now),
        *bulk_decisions.unfinished_jobs(),
        *due_threads.find(now),
        *set_search.sets_to_compact(),
    ]


def continue_jobs(now: datetime, *, steps: int = STEPS) -> int:
    """Continue unfinished jobs for up to `steps` steps each; return how many ran.

    The jobs are recategorizations, moves to other schemes, moves of threads, searches for doubled
    threads, upgrades and the jobs of declared counters. This function also merges the counter
    shards of threads that are no longer busy.
    """
    declared_backfill.finish(now=now)
    done = (
        recategorize.finish(now=now, steps=steps),
        rescheming.finish(steps=steps),
        thread_moves.finish(steps),
        doubled_threads.finish(steps),
        upgrades.go_on(steps=steps),
    )
    sharding.notice_spread()
    sharding.gather_quiet()
    return sum(done)


def threads(site: str) -> Iterator[records.ThreadName]:
    """Yield the names of a site's threads."""
    query = reads.Query("Thread", where=(("site", "=", site),))
    for entity in reads.walk(query):
        yield records.ThreadName(site, entity.properties["thread"].string_value)


def compact_whole(
    names: Iterable[records.ThreadName],
    *,
    wait: Callable[[float], None] | None,
) -> RoundSummary:
    """Compact threads now; if `wait` is given, wait for the grace period and clear them too.

    Raises:
        errors.Overloaded: other processes keep compacting the same thread, or the store is busy.
    """
    upkeep = Scheduler()
    names = list(names)
    for name in names:
        if not any(upkeep.compact(name) for _ in range(_TRIES)):
            raise errors.Overloaded(f"another process is compacting {name.site} {name.id}")
    if wait is None or not upkeep.uncleared_compactions:
        return RoundSummary(len(names), 0, len(upkeep.uncleared_compactions))
    wait(compactor.GRACE)
    for compaction in upkeep.uncleared_compactions:
        compactor.clear(compaction.result, compaction.orphans)
    upkeep.expire()
    return RoundSummary(len(names), len(upkeep.uncleared_compactions), 0)


def rebuild_whole(
    names: Sequence[records.ThreadName],
    *,
    wait: Callable[[float], None] | None,
) -> RoundSummary:
    """Rebuild threads from their comments now; `wait` has the same meaning as in `compact_whole`.

    Raises:
        errors.Overloaded: see `compact_whole`. The next compaction rebuilds the other threads.
    """
    for name in names:
        rebuilding.request(name)
    return compact_whole(names, wait=wait)


def _work(name: backlog.Name) -> str:
    words = {
        records.ImportUndo: "Undoing the import",
        records.SiteErasure: "Erasing the site",
        records.BulkDecision: "The bulk decision",
    }
    return words.get(type(name), "Compacting")


def log_failure(what: str, error: Exception) -> None:
    """Log a failure of work that will be retried."""
    if isinstance(error, errors.Overloaded):
        _log.warning("%s failed and will be retried: %s", what, error)
    else:
        _log.error("%s failed and will be retried", what, exc_info=error)
