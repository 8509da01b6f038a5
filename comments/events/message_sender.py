"""The message sender: delivers every message to its recipient, each queue at its own pace.

This module owns the delivery of messages (`message_queue`): it decides which queues are served
concurrently, and what happens after each attempt. A *channel* finds the recipients of its queues
(see `channels`).

Several threads serve the queues, each queue for at most `TURN` seconds plus one attempt. A thread
leaves a queue after a failed attempt, so a slow or dead recipient delays no other recipient. After
any failure, the message stays in the store. The service's own errors never count against a
recipient.
"""

import dataclasses
import enum
import functools
import logging
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

from comments import errors
from comments.domain import outcomes
from comments.events import message_queue, retry_pauses, safe_http, webhook_endpoints
from comments.store import connection
from comments.store.memory import per_process

_log = logging.getLogger("flatthread")

OUTBOUND = per_process.PerProcess(safe_http.HttpClient)  # Used for webhooks and identity providers.
THREADS = 8  # Number of threads in a round; an attempt takes at most ten seconds.
TURN = 5.0  # Seconds for which a thread serves one queue before it turns to the next.
QUEUES = 200  # Maximum number of queues per read.
_MESSAGES = 50  # Maximum number of messages that one read takes from a queue.


class Way(enum.Enum):
    """The states of a recipient, which determine whether it can receive messages."""

    OPEN = enum.auto()
    PAUSED = enum.auto()  # Paused for now.
    CLOSED = enum.auto()  # Closed until the owner enables the recipient.
    GONE = enum.auto()  # The recipient no longer exists.


@dataclasses.dataclass(frozen=True, slots=True)
class Recipient:
    """A recipient: whether it can receive messages (if not, why) and how to send one (`tell`)."""

    way: Way
    reason: str = ""
    tell: Callable[[message_queue.Message], outcomes.Outcome] | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class SendingCounts:
    """The number of delivered messages and of failed attempts."""

    told: int = 0
    failed: int = 0

    def __add__(self, other: "SendingCounts") -> "SendingCounts":
        return SendingCounts(self.told + other.told, self.failed + other.failed)


Channel = Callable[[str, datetime], Recipient]
Reach = Callable[[], Mapping[str, Channel]]


def _no_text(*_: object) -> str:
    """Fail, so that the message stays in the queue: the process has no texts for chats."""
    raise NotImplementedError


def channels(chat_text: webhook_endpoints.ChatText = _no_text) -> dict[str, Channel]:
    """Return the channels by name; each channel finds the recipients of its queues.

    `chat_text` makes the text of a message to a chat.
    """
    client = OUTBOUND.get()
    return {webhook_endpoints.CHANNEL: functools.partial(_hook, client, chat_text)}


def _hook(
    client: safe_http.HttpClient,
    chat_text: webhook_endpoints.ChatText,
    recipient: str,
    now: datetime,
) -> Recipient:
    hook = webhook_endpoints.find(recipient)
    if hook is None:
        return Recipient(Way.GONE)
    if hook.off:
        return Recipient(Way.CLOSED, f"the webhook is disabled: {hook.off}")
    if hook.paused_until is not None and hook.paused_until > now:
        return Recipient(Way.PAUSED)

    def tell(message: message_queue.Message) -> outcomes.Outcome:
        outcome = webhook_endpoints.tell(client, hook, message, chat_text, now=now)
        if webhook_endpoints.is_worth_noting(hook, outcome, now=now):
            webhook_endpoints.note(recipient, outcome, now=now)
        return outcome

    return Recipient(Way.OPEN, tell=tell)


def serve(
    now: Callable[[], datetime],
    *,
    within: float = float("inf"),
    among: Mapping[str, Channel] | None = None,
    reach: Reach = channels,
) -> SendingCounts:
    """Serve every queue with due messages once. Start no new attempt after `within` seconds.

    If `among` is None, `reach` makes the channels.
    """
    end = time.monotonic() + within
    done, after = SendingCounts(), ""
    while time.monotonic() < end and (names := message_queue.queues(QUEUES, after=after)):
        after = names[-1]
        # Make the channels only now, so that a process without messages need not load the
        # certificates.
        server = _Server(now, reach() if among is None else among, end)
        with ThreadPoolExecutor(min(THREADS, len(names)), "sending") as pool:
            done = sum(pool.map(connection.carry(server.serve), names), done)
    return done


class _Server:
    def __init__(
        self, now: Callable[[], datetime], among: Mapping[str, Channel], end: float
    ) -> None:
        self._now = now
        self._channels = among
        self._end = end

    def serve(self, queue: str) -> SendingCounts:
        """Send a queue's due messages until an attempt fails or the queue's turn is over."""
        done = SendingCounts()
        end = min(self._end, time.monotonic() + TURN)
        try:
            while ids := message_queue.due_ids(queue, self._now(), _MESSAGES):
                for message in ids:
                    if time.monotonic() >= end:
                        return done
                    step = self._step(queue, message)
                    if step is None:
                        return done
                    done += step
                    if step.failed:
                        return done
        except Exception as error:  # noqa: BLE001 - one queue's failure must not stop the others
            _report(queue, error)
        return done

    def _step(self, queue: str, message: str) -> SendingCounts | None:
        """Process one message; return None if the recipient is paused."""
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
            return SendingCounts() if claimed is None else self._tell(recipient.tell, claimed, now)
        return SendingCounts()

    def _tell(
        self,
        tell: Callable[[message_queue.Message], outcomes.Outcome],
        message: message_queue.Message,
        now: datetime,
    ) -> SendingCounts:
        try:
            outcome = tell(message)
        except errors.Overloaded:
            raise  # The store failed, not the recipient: the message is retried after its lease.
        except Exception as error:  # noqa: BLE001 - it must not be retried forever
            _report(message.id, error)
            outcome = outcomes.Outcome(outcomes.End.RETRY, type(error).__name__)
        if outcome.end is outcomes.End.DELIVERED:
            message_queue.finish(message.id)
            return SendingCounts(told=1)
        if outcome.end is outcomes.End.GIVE_UP:
            message_queue.give_up(message.id, outcome.reason)
        else:
            asked = timedelta(seconds=outcome.retry_after or 0)
            pause = max(retry_pauses.pause(message.attempts), asked)
            message_queue.postpone(message.id, outcome.reason, now=now, pause=pause)
        _log.warning("Message %s failed: %s", message.id, outcome.reason)
        return SendingCounts(failed=1)


def _report(what: str, error: Exception) -> None:
    if isinstance(error, errors.Overloaded):
        _log.warning("Sending %s failed and will be retried: %s", what, error)
    else:
        _log.error("Sending %s failed and will be retried", what, exc_info=error)
