"""Run the background work of a serving process in a thread.

This module owns the timing. The worker handles its own process's changes within moments. At
intervals (`LOOK_EVERY`, `SWEEP_EVERY`), the worker searches for work that other processes left. The
worker starts after the fork. It also starts four more threads, for messages, for mail, for uploaded
files and for jobs (`worker_threads`).

No failure ends the worker. `stop` waits until the current step has ended.
"""

import logging
import math
import threading
import time
from collections.abc import Sequence

from comments import errors
from comments.events import backlog, dispatcher, message_sender, outbox
from comments.limits import usage
from comments.store import connection
from comments.upkeep import scheduler, worker_threads
from comments.upkeep.backups import backup_process
from comments.upkeep.integrity import thread_audit

SWEEP_EVERY = 30.0  # Seconds between two sweeps for events left by ended processes.
LOOK_EVERY = 300.0  # Seconds between two searches for work left by ended processes.
AUDIT_EVERY = 300.0  # Seconds between two rounds of the audit.
BACKUP_EVERY = 60.0  # Seconds between two checks whether a nightly backup is due.
_PORTIONS = 10  # Maximum portions of the process's own events to deliver in a row.
OLD = 600  # Seconds that events and messages wait before the log reports them.

_log = logging.getLogger("flatthread")


class BackgroundWorker:
    """The background worker of a process.

    Args:
        store: the store to work on.
        handlers: the handlers that receive events (`scheduler.Scheduler`).
        first: seconds until the worker first searches for work that other processes left. The
            process's own changes do not wait for this search.
        reach: makes the channels for sending messages.
        secret: the service's secret, with which uploaded files are encrypted.
        audit_reads: maximum reads per hour for `thread_audit`; 0 switches the audit off.
        backups: starts the nightly backups, if the service makes any.
    """

    def __init__(  # noqa: PLR0913 - independent options, passed by keyword
        self,
        store: connection.Store,
        handlers: scheduler.Handlers | None = None,
        *,
        first: float = 0.0,
        reach: message_sender.Reach = message_sender.channels,
        secret: str = "",
        audit_reads: int = 0,
        backups: backup_process.BackupProcess | None = None,
    ) -> None:
        self._store = store
        self._audit_reads = audit_reads
        self._backlog = waiting = backlog.BACKLOG.of(store)
        self._upkeep = scheduler.UPKEEP.of(
            store,
            lambda: scheduler.Scheduler(clock=waiting.clock, handlers=handlers, reach=reach),
        )
        self._messenger = worker_threads.MessageThread(
            store, self._upkeep.now, first=first, reach=self._upkeep.reach
        )
        self._postman = worker_threads.MailThread(
            store, lambda: self._upkeep.handlers, self._upkeep.now
        )
        uploads = worker_threads.UploadThread(store, secret, self._upkeep.now)
        jobs = worker_threads.JobThread(store, self._upkeep, first=first)
        self._others = (self._messenger, self._postman, uploads, jobs)
        self._thread = threading.Thread(target=self._run, name="upkeep", daemon=True)
        self._next_look = self._next_sweep = self._backlog.clock() + first
        self._next_audit = self._next_look + AUDIT_EVERY if audit_reads else math.inf
        self._backups = backups
        self._next_backup = math.inf if backups is None else self._next_look

    def start(self) -> None:
        """Start the threads.

        Call this method after the fork, because threads do not survive a fork.
        """
        self._backlog.open()
        self._thread.start()
        for thread in self._others:
            thread.start()

    def stop(self, seconds: float) -> bool:
        """Stop after the current step; return whether all threads ended within `seconds`."""
        self._backlog.close()
        end = time.monotonic() + seconds
        has_ended = self._backups is None or self._backups.stop(seconds)
        for thread in self._others:
            has_ended &= thread.stop(max(0.0, end - time.monotonic()))
        self._thread.join(max(0.0, end - time.monotonic()))
        return has_ended and not self._thread.is_alive()

    def _run(self) -> None:
        with self._store.context():
            while self._backlog.wait(self._next_step):
                self.step()
            usage.settle(now=self._upkeep.now())

    @property
    def _next_step(self) -> float:
        return min(
            self._next_look,
            self._next_sweep,
            self._next_audit,
            self._next_backup,
            self._upkeep.next_clearing,
        )

    def step(self) -> scheduler.RoundSummary:
        """Do all work that is due now.

        Events do not wait for compactions: events that become due during a round are delivered
        between two entries of the round.
        """
        self._deliver()
        if self._next_look <= self._backlog.clock():
            self._collect_due_work()
        done = self._upkeep.round(self._upkeep.due_names(self._backlog), self._deliver)
        if self._next_audit <= self._backlog.clock():
            self._audit()
        if self._backups is not None and self._next_backup <= self._backlog.clock():
            self._next_backup = self._backlog.clock() + BACKUP_EVERY
            self._backups.step()
        return done

    def _audit(self) -> None:
        self._next_audit = self._backlog.clock() + AUDIT_EVERY
        try:
            thread_audit.check_threads(self._audit_reads, now=self._upkeep.now())
        except Exception as error:  # noqa: BLE001 - the next round continues
            scheduler.log_failure("Checking threads", error)

    def _deliver(self) -> None:
        try:
            for _ in range(_PORTIONS):
                self._hand_out(events := self._backlog.take_events())
                if len(events) < backlog.TOLD_AT_ONCE:
                    break
            if self._next_sweep <= self._backlog.clock():
                usage.settle(now=self._upkeep.now())
                self._next_sweep = self._backlog.clock() + SWEEP_EVERY
                due = dispatcher.overdue_ids(
                    now=self._upkeep.now(), limit=dispatcher.SWEPT + worker_threads.MOST_MAIL
                )
                if self._hand_out(due) == dispatcher.SWEPT:
                    self._next_sweep = self._backlog.clock()  # More events may be due.
        except Exception as error:  # noqa: BLE001 - the next sweep tries again
            scheduler.log_failure("Delivering events", error)

    def _hand_out(self, events: Sequence[str]) -> int:
        """Pass mail events to the mail thread and deliver all other events.

        Return the number of events delivered here.
        """
        self._postman.take(filter(outbox.is_of_mail, events))
        others = [event for event in events if not outbox.is_of_mail(event)][: dispatcher.SWEPT]
        delivered = self._upkeep.deliver(others).delivered
        if delivered:
            self._messenger.nudge()
        return delivered

    def _collect_due_work(self) -> None:
        self._next_look = self._backlog.clock() + LOOK_EVERY
        try:
            for name in scheduler.find_due_work():
                self._backlog.add(name, changes=0, within=0.0)
            self._upkeep.plan_digests()
        except Exception as error:  # noqa: BLE001 - the next search tries again
            scheduler.log_failure("Searching for threads to compact", error)
        self._warn()

    def _warn(self) -> None:
        try:
            waiting = self._upkeep.waiting_messages()
        except errors.Overloaded as error:
            scheduler.log_failure("Counting waiting events and messages", error)
            return
        if waiting.oldest >= OLD:
            _log.warning(
                "%d events and %d messages are waiting, the oldest for %d s; %d dead letters",
                *waiting[:3],
                waiting.dead,
            )
