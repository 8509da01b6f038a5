"""The thread of a serving process that does its upkeep.

Owns when something is done: what this process changed, a moment later; what other processes left,
every `LOOK_EVERY` and `SWEEP_EVERY` seconds. It starts after the process was forked, and starts the
threads of those who may be kept waiting outside: what is told there is sent by a thread of its own
(`message_sender`), and mail by another (`mail_worker`), because recipients may be slow.

What must stay true: nothing that fails ends a worker, and `stop` waits for the step in hand.
"""

import logging
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from comments import errors
from comments.domain import sorthash
from comments.events import backlog, dispatcher, message_sender, outbox
from comments.jobs import scheduler
from comments.notifications import mail_worker
from comments.sites import usage
from comments.store import connection

SWEEP_EVERY = 30.0  # seconds between two sweeps for events whose process is gone
LOOK_EVERY = 300.0  # seconds between two looks for threads whose process is gone
OLD = 600  # seconds that something waits before the log says so

_log = logging.getLogger("flatthread")


class Worker:
    """The thread of a process that does its upkeep.

    Args:
        store: whose upkeep it is.
        scheme: of the sites' sort hashes.
        handlers: who is told of events.
        first: seconds until it looks for what other processes left. What this one changes does
            not wait for that.
        reach: how those outside are told of messages.
    """

    def __init__(
        self,
        store: connection.Store,
        scheme: sorthash.Scheme,
        handlers: Sequence[dispatcher.Handler] | None = None,
        *,
        first: float = 0.0,
        reach: message_sender.Reach = message_sender.channels,
    ) -> None:
        self._store = store
        self._backlog = waiting = backlog.BACKLOG.of(store)
        self._upkeep = scheduler.UPKEEP.of(
            store,
            lambda: scheduler.Scheduler(
                scheme, clock=waiting.clock, handlers=handlers, reach=reach
            ),
        )
        self._messenger = message_sender.Messenger(
            store, self._upkeep.now, first=first, reach=self._upkeep.reach
        )
        self._postman = mail_worker.MailThread(store, self._upkeep.handlers, self._upkeep.now)
        self._thread = threading.Thread(target=self._run, name="upkeep", daemon=True)
        self._next_look = self._next_sweep = self._backlog.clock() + first

    def start(self) -> None:
        """Begin, in the process that is to do the work: a thread does not survive a fork."""
        self._backlog.open()
        self._thread.start()
        self._messenger.start()
        self._postman.start()

    def stop(self, seconds: float) -> bool:
        """End after the step in hand; whether that was within the seconds."""
        self._backlog.close()
        end = time.monotonic() + seconds
        has_ended = self._messenger.stop(seconds)
        has_ended &= self._postman.stop(max(0.0, end - time.monotonic()))
        self._thread.join(max(0.0, end - time.monotonic()))
        return has_ended and not self._thread.is_alive()

    def _run(self) -> None:
        with self._store.context():
            while self._backlog.wait(self._next_step):
                self.step()
            usage.settle(now=self._upkeep.now())

    @property
    def _next_step(self) -> float:
        return min(self._next_look, self._next_sweep, self._upkeep.next_clearing)

    def step(self) -> scheduler.Done:
        """Do what is due now."""
        self._deliver()
        if self._next_look <= self._backlog.clock():
            self._look()
        return self._upkeep.round(self._upkeep.due(self._backlog))

    def _deliver(self) -> None:
        try:
            self._hand_out(self._backlog.take_events())
            if self._next_sweep <= self._backlog.clock():
                usage.settle(now=self._upkeep.now())
                self._next_sweep = self._backlog.clock() + SWEEP_EVERY
                due = dispatcher.due(
                    now=self._upkeep.now(), limit=dispatcher.SWEPT + mail_worker.MOST
                )
                if self._hand_out(due) == dispatcher.SWEPT:
                    self._next_sweep = self._backlog.clock()  # there are more
        except Exception as error:  # noqa: BLE001 - the next sweep is near
            scheduler.report("delivering events", error)

    def _hand_out(self, events: Sequence[str]) -> int:
        """Leave mail to the postman, and deliver the rest here; how many."""
        self._postman.take(filter(outbox.is_of_mail, events))
        others = [event for event in events if not outbox.is_of_mail(event)][: dispatcher.SWEPT]
        delivered = self._upkeep.deliver(others).delivered
        if delivered:
            self._messenger.nudge()
        return delivered

    def _look(self) -> None:
        self._next_look = self._backlog.clock() + LOOK_EVERY
        try:
            for name in scheduler.look():
                self._backlog.add(name, changes=0, within=0.0)
            scheduler.settle(datetime.now(UTC))
        except Exception as error:  # noqa: BLE001 - the next look is near
            scheduler.report("looking for what to fold", error)
        self._upkeep.expire()
        self._warn()

    def _warn(self) -> None:
        try:
            letters = self._upkeep.waiting_letters()
        except errors.Overloaded as error:
            scheduler.report("counting what waits", error)
            return
        if letters.oldest >= OLD:
            _log.warning(
                "%d events and %d messages wait, the oldest for %d s; %d were given up",
                *letters[:3],
                letters.dead,
            )
