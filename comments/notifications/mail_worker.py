"""Send mail in a separate thread, so that no other work waits for a mail server.

The background worker (`background_worker`) passes mail events to this thread, and recognizes them
by their ids (`outbox.is_of_mail`). The thread delivers one event at a time.

Each event is claimed before it is sent (`dispatcher`), so several processes can safely find the
same event. Nothing depends on this thread's memory: if the process ends, its events are still in
the store, and a sweep finds them. The number of waiting events is limited to `MOST`.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from comments import errors
from comments.events import dispatcher
from comments.store import connection

_log = logging.getLogger("flatthread")

MOST = 1_000  # Maximum number of waiting events; a later sweep finds all other events.


class MailThread:
    """Delivers mail events in a thread.

    Args:
        store: the store that contains the events.
        handlers: the handlers that send mail.
        now: returns the current time.
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
        """Start the thread.

        Call this method after the fork, because threads do not survive a fork.
        """
        self._thread.start()

    def stop(self, seconds: float) -> bool:
        """Stop after the current event; return whether the thread ended within `seconds`."""
        with self._changed:
            self._is_open = False
            self._changed.notify_all()
        if self._thread.ident is not None:
            self._thread.join(seconds)
        return not self._thread.is_alive()

    def take(self, events: Iterable[str]) -> None:
        """Queue events for delivery, except events that are already waiting."""
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
            _log.warning("Sending mail failed and will be retried: %s", error)
        except Exception:  # noqa: BLE001 - see below
            # No failure may end this thread. A sweep finds the failed event again.
            _log.exception("Sending mail failed and will be retried")
