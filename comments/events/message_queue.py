"""The message queue: messages to single external recipients, each with its own attempts.

This module owns the kind Message. An event handler writes one message per recipient in the
transaction that records the event as done (`dispatcher`), so each committed event has exactly one
message per recipient. `message_sender` sends the messages.

    Message   key: "{event id}/{channel}/{recipient}", which is always the same
              queue: "{channel}/{recipient}"; a queue's messages are sent in turn
              content: what the channel needs to make the message, JSON; personal data in it
              is encrypted
              `at`, `due`, `since`, `waits`, `attempts`, `reason` of the last failure

`at` is the time of the event that caused the message. `since` equals `at` while the message is
pending; after the message is given up, `since` and `due` are `outbox.NEVER`.

A message is deleted only if it was delivered, its recipient no longer exists, or an operator drops
it. A sender *claims* a message before sending it, which makes the message due again after `LEASE`.
Therefore, only one of two concurrent senders sends the message. If a sender dies, another sender
sends the message again with the same id. A message is delivered at least once. It is delivered
again only after a crash, or if clocks differ by more than the lease.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from comments.events import outbox, retry_pauses
from comments.store import ownership, reads, transactions
from comments.store.models import event_rows

_OWNER = "message_queue"
LEASE = timedelta(seconds=60)  # Longer than any attempt to send can take.


class Message(NamedTuple):
    """A message to send. `event` is an id that does not change when the message is sent again."""

    id: str
    event: str
    queue: str
    content: str
    attempts: int
    at: datetime


def queue(channel: str, recipient: str) -> str:
    """Return the name of a recipient's queue, which must be ASCII. Channel names contain no "/"."""
    return f"{channel}/{recipient}"


def new_rows(
    event: str, queues: Iterable[str], content: str, *, at: datetime
) -> tuple[event_rows.MessageRow, ...]:
    """Make the rows for an event's messages, one per queue; `writes` stores them."""
    return tuple(
        event_rows.MessageRow(
            key=event_rows.message_key(f"{event}/{name}"),
            queue=name,
            content=content,
            at=at,
            due=at,
            since=at,
        )
        for name in queues
    )


def writes(rows: Iterable[event_rows.MessageRow]) -> ownership.Writes:
    """Store messages in the transaction that records their events as done."""
    return ownership.Writes(_OWNER, put=tuple(rows))


def queues(limit: int, *, after: str = "") -> list[str]:
    """List a bounded number of queues with pending messages, sorted by name."""
    query = reads.Query(
        "Message",
        where=(("waits", "=", True), ("queue", ">", after)),
        order=("queue",),
        projection=("queue",),
        distinct_on=("queue",),
        limit=limit,
    )
    return [message.properties["queue"].string_value for message in reads.fetch(query)]


def waiting_ids(channel: str) -> list[str]:
    """List the ids of all messages of a channel that are not given up."""
    prefix = queue(channel, "")
    query = reads.Query("Message", where=(("since", "<", outbox.NEVER),), order=("since",))
    return [
        message.key.path[-1].name
        for message in reads.fetch(query)
        if message.properties["queue"].string_value.startswith(prefix)
    ]


def due_ids(name: str, now: datetime, limit: int) -> list[str]:
    """List the ids of a queue's due messages, longest overdue first."""
    return reads.names(
        "Message", (("queue", "=", name), ("due", "<=", now)), order=("due",), limit=limit
    )


def dead_ids(name: str, limit: int) -> list[str]:
    """List the ids of messages of a queue that are given up, in order of their ids."""
    where = (("queue", "=", name), ("due", "=", outbox.NEVER))
    return reads.names("Message", where, limit=limit)


def read(ids: Sequence[str]) -> list[event_rows.MessageRow]:
    """Read the rows of messages, without those that do not exist."""
    rows = reads.get_multi([event_rows.message_key(name) for name in ids])
    return [row for row in rows if row is not None]


def record(row: event_rows.MessageRow) -> Message:
    """Convert a stored message to the form that channels receive."""
    name: str = row.key.id()
    event, _, _ = name.partition("/")
    return Message(name, event, row.queue, row.content, row.attempts, row.at)


def claim(message: str, *, now: datetime) -> Message | None:
    """Claim a message for sending; return None if it is already claimed or no longer exists."""

    def body() -> Message | None:
        rows = read([message])
        if not rows or rows[0].due > now:
            return None
        (row,) = rows
        row.attempts += 1
        row.due = now + LEASE
        transactions.apply(ownership.Writes(_OWNER, put=(row,)))
        return record(row)

    return transactions.transaction(body)


def finish(message: str) -> None:
    """Delete a message that was delivered or whose recipient no longer exists."""
    key = event_rows.message_key(message)
    transactions.transaction(lambda: transactions.apply(ownership.Writes(_OWNER, delete=(key,))))


def postpone(message: str, reason: str, *, now: datetime, pause: timedelta) -> None:
    """Record a failed attempt; retry after `pause`, or give up after the last attempt."""

    def body() -> None:
        for row in read([message]):
            row.reason = reason
            row.due = now + pause
            if row.attempts >= retry_pauses.MOST_ATTEMPTS:
                _give_up(row)
            transactions.apply(ownership.Writes(_OWNER, put=(row,)))

    transactions.transaction(body)


def give_up(message: str, reason: str) -> None:
    """Stop retrying a message, but keep it until an operator revives or drops it."""

    def body() -> None:
        for row in read([message]):
            row.reason = reason
            _give_up(row)
            transactions.apply(ownership.Writes(_OWNER, put=(row,)))

    transactions.transaction(body)


def rewrite(message: str, content: str) -> None:
    """Replace a message's content to remove data that is no longer needed."""

    def body() -> None:
        for row in read([message]):
            row.content = content
            transactions.apply(ownership.Writes(_OWNER, put=(row,)))

    transactions.transaction(body)


def _give_up(row: event_rows.MessageRow) -> None:
    row.due = row.since = outbox.NEVER
    row.waits = False


def is_given_up(row: event_rows.MessageRow) -> bool:
    """Return whether a message is no longer retried."""
    return not row.waits


def revival_writes(row: event_rows.MessageRow, *, now: datetime) -> ownership.Writes:
    """Retry a given-up message with the full number of attempts."""
    row.attempts, row.due, row.since, row.waits = 0, now, row.at, True
    return ownership.Writes(_OWNER, put=(row,))


def drop_writes(row: event_rows.MessageRow) -> ownership.Writes:
    """Delete a message that was given up."""
    return ownership.Writes(_OWNER, delete=(row.key,))
