"""The mail worker: a thread of the process that sends mail, so that nothing else waits for it.

Owns which events are his: those whose ids begin as those of mail do (`outbox.is_of_mail`). The
worker of the process hands them over (`scheduler`), as it was told of them or found them by a
sweep, and he delivers one after the other. Each is claimed before it is sent (`dispatcher`), so it
does not matter that several processes have found one, or that he hears of one twice.

What must stay true: nothing depends on this. What is lost here with a process stands in the store
and is found by a sweep. What waits is bounded.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from comments import errors
from comments.events import dispatcher
from comments.store import connection

_log = logging.getLogger("flatthread")

MOST = 1_000  # events that wait here; what is beyond is found by a later sweep


class MailThread:
    """Delivers events of mail in a thread of his own.

    Args:
        store: where the events are.
        handlers: those that send.
        now: the time of day.
    """

    def __init__(
        self,
        store: connection.Store,
        handlers: Sequence[dispatcher.Handler],
        now: Callable[[], datetime],
    ) -> None:
        self._store = store
        self._handlers = handlers
        self._now = now
        self._waiting: dict[str, None] = {}
        self._changed = threading.Condition()
        self._is_open = True
        self._thread = threading.Thread(target=self._run, name="postman", daemon=True)

    def start(self) -> None:
        """Begin, in the process that is to do the work: a thread does not survive a fork."""
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """End after the mails in hand; whether that was within the seconds."""
        with self._changed:
            self._is_open = False
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def take(self, events: Iterable[str]) -> None:
        """Have these delivered, each once, however often they are named before it is."""
        with self._changed:
            for event in events:
                if len(self._waiting) < MOST:
                    self._waiting[event] = None
            self._changed.notify_all()

    def _run(self) -> None:
        with self._store.context():
            while (event := self._next()) is not None:
                self._deliver(event)

    def _next(self) -> str | None:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or not self._is_open)
            if not self._is_open:
                return None
            event = next(iter(self._waiting))
            del self._waiting[event]
            return event

    def _deliver(self, event: str) -> None:
        try:
            dispatcher.deliver([event], now=self._now(), handlers=self._handlers)
        except errors.Overloaded as error:
            _log.warning("sending mail failed, and is tried again: %s", error)
        except Exception:  # noqa: BLE001 - see below
            # A sweep brings the event again; nothing ends the thread that mail depends on.
            _log.exception("sending mail failed, and is tried again")
