"""The threads beside the background worker: for messages, mail, uploaded files and jobs.

Recipients can be slow, and imports and jobs take minutes, so no other work waits for these threads.

Nothing depends on a thread's memory. If the process ends, the work is still in the store, and
another process finds it. Each message, mail event and upload is claimed before a thread works on
it, so several processes can safely find the same work.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from comments.events import dispatcher, message_sender
from comments.store import connection
from comments.store.memory import per_process
from comments.transfer.uploads import upload_steps
from comments.upkeep import scheduler

MESSAGES_EVERY = 30.0  # Seconds between two rounds if this process has no new messages.
UPLOADS_EVERY = 60.0  # Seconds between two searches for uploads whose processes have ended.
JOBS_EVERY = 300.0  # Seconds between two searches for jobs and for expired data.
JOBS_PAUSE = 1.0  # Seconds between two parts of unfinished jobs, to leave time for requests.
MOST_MAIL = 1_000  # Maximum number of waiting mail events; a later sweep finds all other events.


class WorkerThread:
    """A thread that works when it is nudged, and at intervals.

    An exception is logged once, and the thread goes on. A subclass does one step of its work in
    `_step`, which nudges the thread if there is more to do, or returns the seconds until the next
    step if they differ from `every`.

    Args:
        store: the store to work on.
        name: the name of the thread.
        task: describes the work in the log.
        first: seconds until the first step, unless it is nudged earlier.
        every: seconds between two steps; None for steps only after a nudge.
    """

    def __init__(
        self,
        store: connection.Store,
        name: str,
        task: str,
        *,
        first: float = 0.0,
        every: float | None = None,
    ) -> None:
        self._store = store
        self._task = task
        self._first = first
        self._every = every
        self._is_open = True
        self._nudged = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread.

        Call this method after the fork, because threads do not survive a fork.
        """
        self._thread.start()

    def nudge(self) -> None:
        """Wake up the thread because there may be work."""
        self._nudged.set()

    def stop(self, seconds: float) -> bool:
        """Stop after the current step; return whether the thread ended within `seconds`."""
        self._is_open = False
        self.nudge()
        if self._thread.ident is not None:
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        pause: float | None = self._first
        with self._store.context():
            while True:
                self._nudged.wait(pause)
                self._nudged.clear()
                if not self._is_open:
                    return
                pause = None
                try:
                    pause = self._step()
                except Exception as error:  # noqa: BLE001 - a later step tries again
                    scheduler.log_failure(self._task, error)
                pause = pause or self._every

    def _step(self) -> float | None:
        raise NotImplementedError


class MessageThread(WorkerThread):
    """Sends messages through the channels that `reach` makes; `now` returns the current time."""

    def __init__(
        self,
        store: connection.Store,
        now: Callable[[], datetime],
        *,
        first: float = 0.0,
        reach: message_sender.Reach = message_sender.channels,
    ) -> None:
        super().__init__(
            store, "messenger", "Sending pending messages", first=first, every=MESSAGES_EVERY
        )
        self._now = now
        self._reach = reach

    def _step(self) -> None:
        if message_sender.serve(self._now, reach=self._reach).told:
            self.nudge()  # Other messages became due in the meantime.


class MailThread(WorkerThread):
    """Passes mail events to the handlers that send mail, one event at a time.

    The background worker recognizes mail events by their ids (`outbox.is_of_mail`).
    """

    def __init__(
        self,
        store: connection.Store,
        handlers: Callable[[], Sequence[dispatcher.Handler]],
        now: Callable[[], datetime],
    ) -> None:
        super().__init__(store, "postman", "Sending mail")
        self._handlers = handlers
        self._now = now
        self._waiting: dict[str, None] = {}
        self._lock = threading.Lock()

    def take(self, events: Iterable[str]) -> None:
        """Queue events for delivery, except events that are already waiting."""
        with self._lock:
            for event in events:
                if len(self._waiting) < MOST_MAIL:
                    self._waiting[event] = None
        self.nudge()

    def _step(self) -> None:
        with self._lock:
            event = next(iter(self._waiting), None)
            if event is None:
                return
            del self._waiting[event]
        self.nudge()  # Other events must not wait for a nudge if this one fails.
        dispatcher.deliver([event], now=self._now(), handlers=self._handlers())


class UploadThread(WorkerThread):
    """Checks and imports uploaded files, which are encrypted with the service's secret."""

    def __init__(self, store: connection.Store, secret: str, now: Callable[[], datetime]) -> None:
        super().__init__(store, "uploads", "Working on an uploaded file", every=UPLOADS_EVERY)
        self._secret = secret
        self._now = now
        _UPLOADS.put(store, self)

    def _step(self) -> None:
        if upload_steps.go_on(self._secret, self._now, lambda: self._is_open):
            nudge_jobs()  # The end of an import begins a search for doubled threads.


class JobThread(WorkerThread):
    """Deletes expired data, and continues unfinished jobs, a part of each at a time."""

    def __init__(
        self, store: connection.Store, upkeep: scheduler.Scheduler, *, first: float = 0.0
    ) -> None:
        super().__init__(store, "jobs", "Continuing jobs", first=first, every=JOBS_EVERY)
        self._upkeep = upkeep
        self._is_left = False
        _JOBS.put(store, self)

    def _step(self) -> float | None:
        if not self._is_left:
            self._upkeep.expire()
        self._is_left = False
        self._is_left = scheduler.continue_jobs(self._upkeep.now(), steps=1) > 0
        return JOBS_PAUSE if self._is_left else None


_UPLOADS = per_process.PerProcess[WorkerThread | None](lambda: None)
_JOBS = per_process.PerProcess[WorkerThread | None](lambda: None)


def nudge_uploads() -> None:
    """Let this process's thread look for uploads, if it has one; otherwise cron does the work."""
    _nudge(_UPLOADS)


def nudge_jobs() -> None:
    """Let this process's thread look for jobs, if it has one; otherwise cron does the work."""
    _nudge(_JOBS)


def _nudge(kept: per_process.PerProcess[WorkerThread | None]) -> None:
    thread = kept.get()
    if thread is not None:
        thread.nudge()
