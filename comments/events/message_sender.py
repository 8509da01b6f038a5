"""The message sender: every message to its recipient, each queue at its own pace.

Owns what becomes of messages (`message_queue`) that wait: which queues are served, side by side,
and what is done after each attempt. A *channel* knows the recipients of its queues, see `channels`.

What must stay true:

- A recipient that is slow or dead holds up no other: queues are served by several threads, each for
  `TURN` seconds and one attempt at most, and a queue is left after an attempt that failed.
- Whatever fails leaves its message in the store: a round ends, however its recipients behave.
- Nothing is counted as a failure of a recipient that is ours.
"""

import dataclasses
import enum
import functools
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

from comments import errors
from comments.domain import outcomes
from comments.events import message_queue, outbox, safe_http, webhook_endpoints
from comments.store import connection, per_process

_log = logging.getLogger("flatthread")

OUTBOUND = per_process.PerProcess(safe_http.Client)  # for webhooks and identity providers
SWEEP_EVERY = 30.0  # seconds between two rounds when nothing happens here
THREADS = 8  # of one round; an attempt takes ten seconds at most
TURN = 5.0  # seconds that a queue is served before others have their turn
QUEUES = 200  # found at once
_MESSAGES = 50  # of one queue, found at once


class Way(enum.Enum):
    """Whether a recipient may be told now."""

    OPEN = enum.auto()
    PAUSED = enum.auto()  # later
    CLOSED = enum.auto()  # not until somebody opens it again
    GONE = enum.auto()  # never


@dataclasses.dataclass(frozen=True, slots=True)
class Recipient:
    """Whether a recipient may be told, why not, and how: `tell` makes one attempt."""

    way: Way
    reason: str = ""
    tell: Callable[[message_queue.Message], outcomes.Outcome] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """How many messages were told, and how many attempts failed."""

    told: int = 0
    failed: int = 0

    def __add__(self, other: "Done") -> "Done":
        return Done(self.told + other.told, self.failed + other.failed)


Channel = Callable[[str, datetime], Recipient]
Reach = Callable[[], Mapping[str, Channel]]


def channels() -> dict[str, Channel]:
    """The channels by name: each finds a recipient of its queues."""
    client = OUTBOUND.get()
    return {webhook_endpoints.CHANNEL: functools.partial(_hook, client)}


def _hook(client: safe_http.Client, recipient: str, now: datetime) -> Recipient:
    hook = webhook_endpoints.find(recipient)
    if hook is None:
        return Recipient(Way.GONE)
    if hook.off:
        return Recipient(Way.CLOSED, f"the hook is off: {hook.off}")
    if hook.paused_until is not None and hook.paused_until > now:
        return Recipient(Way.PAUSED)

    def tell(message: message_queue.Message) -> outcomes.Outcome:
        outcome = webhook_endpoints.tell(client, hook, message, now=now)
        if hook.failures or outcome.end is not outcomes.End.DELIVERED:
            webhook_endpoints.note(recipient, outcome, now=now)
        return outcome

    return Recipient(Way.OPEN, tell=tell)


def serve(
    now: Callable[[], datetime],
    *,
    within: float = float("inf"),
    among: Mapping[str, Channel] | None = None,
    reach: Reach = channels,
) -> Done:
    """Serve every queue in which messages are due, once; begin none after `within` seconds.

    `reach` finds the channels, unless they are known.
    """
    end = time.monotonic() + within
    done, after = Done(), ""
    while time.monotonic() < end and (names := message_queue.queues(QUEUES, after=after)):
        after = names[-1]
        # Not before: whoever has nothing to tell need not load the certificates to tell it.
        server = _Server(now, reach() if among is None else among, end)
        with ThreadPoolExecutor(min(THREADS, len(names)), "sending") as pool:
            done = sum(pool.map(connection.carried(server.serve), names), done)
    return done


class _Server:
    def __init__(
        self, now: Callable[[], datetime], among: Mapping[str, Channel], end: float
    ) -> None:
        self._now = now
        self._channels = among
        self._end = end

    def serve(self, queue: str) -> Done:
        """Tell what is due in a queue, until that fails or others have their turn."""
        done = Done()
        end = min(self._end, time.monotonic() + TURN)
        try:
            while ids := message_queue.due(queue, self._now(), _MESSAGES):
                for each in ids:
                    if time.monotonic() >= end:
                        return done
                    step = self._step(queue, each)
                    if step is None:
                        return done
                    done += step
                    if step.failed:
                        return done
        except Exception as error:  # noqa: BLE001 - one queue's trouble must not stop the others
            _report(queue, error)
        return done

    def _step(self, queue: str, message: str) -> Done | None:
        """Take a step with a message; None if its recipient is to be left alone."""
        now = self._now()
        name, _, address = queue.partition("/")
        recipient = self._channels[name](address, now)
        if recipient.way is Way.PAUSED:
            return None
        if recipient.way is Way.GONE:
            message_queue.finish(message)
        elif recipient.way is Way.CLOSED:
            message_queue.give_up(message, recipient.reason)
        elif recipient.tell is not None:
            claimed = message_queue.claim(message, now=now)
            return Done() if claimed is None else self._tell(recipient.tell, claimed, now)
        return Done()

    def _tell(
        self,
        tell: Callable[[message_queue.Message], outcomes.Outcome],
        message: message_queue.Message,
        now: datetime,
    ) -> Done:
        try:
            outcome = tell(message)
        except errors.Overloaded:
            raise  # the store's fault: the message comes again when its lease is over
        except Exception as error:  # noqa: BLE001 - it must not be tried for ever
            _report(message.id, error)
            outcome = outcomes.Outcome(outcomes.End.RETRY, type(error).__name__)
        if outcome.end is outcomes.End.DELIVERED:
            message_queue.finish(message.id)
            return Done(told=1)
        if outcome.end is outcomes.End.GIVE_UP:
            message_queue.give_up(message.id, outcome.reason)
        else:
            asked = timedelta(seconds=outcome.retry_after or 0)
            pause = max(outbox.pause(message.attempts), asked)
            message_queue.postpone(message.id, outcome.reason, now=now, pause=pause)
        _log.warning("message %s failed: %s", message.id, outcome.reason)
        return Done(failed=1)


class Messenger:
    """The thread of a process that sends: apart from upkeep's, because recipients may be slow.

    Args:
        store: where the messages are.
        now: the time of day.
        first: seconds until it looks for what others left, if nobody nudges it before.
        reach: finds the channels.
    """

    def __init__(
        self,
        store: connection.Store,
        now: Callable[[], datetime],
        *,
        first: float = 0.0,
        reach: Reach = channels,
    ) -> None:
        self._store = store
        self._now = now
        self._reach = reach
        self._first = first
        self._is_open = True
        self._there_is_more = threading.Event()
        self._thread = threading.Thread(target=self._run, name="messenger", daemon=True)

    def start(self) -> None:
        """Begin, in the process that is to do the work: a thread does not survive a fork."""
        self._thread.start()

    def nudge(self) -> None:
        """Say that there may be messages."""
        self._there_is_more.set()

    def stop(self, seconds: float) -> bool:
        """End after the attempts in hand; whether that was within the seconds."""
        self._is_open = False
        self.nudge()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        self._there_is_more.wait(self._first)
        with self._store.context():
            while self._is_open:
                self._there_is_more.clear()
                self._serve()
                self._there_is_more.wait(SWEEP_EVERY)

    def _serve(self) -> None:
        try:
            while self._is_open and serve(self._now, reach=self._reach).told:
                pass  # what is due meanwhile need not wait for the next sweep
        except Exception as error:  # noqa: BLE001 - the next round is near
            _report("what waits", error)


def _report(what: str, error: Exception) -> None:
    if isinstance(error, errors.Overloaded):
        _log.warning("sending %s failed, and is tried again: %s", what, error)
    else:
        _log.error("sending %s failed, and is tried again", what, exc_info=error)
