"""The message queue: what is to be told to one recipient outside, each with attempts of its own.

Owns the kind Message. A handler of events writes one for each recipient, in the transaction that
notes the event as done (`dispatcher`), so there is one for each committed event and recipient and
none else. `message_sender` tells them.

    Message   key: "{event id}/{channel}/{recipient}": the same however often it is written
              queue: "{channel}/{recipient}"; messages of one queue go out one after the other
              content: what the channel needs to make the message, JSON; nothing personal that
              is not sealed
              `at`, `due`, `since`, `waits`, `bucket_writer`, `reason` of the last failure

`at` is when it happened; `since` is the same while the message waits, and `outbox.NEVER` when it
was given up, as `due` is then.

What must stay true: a message is deleted only when it was told, or nobody is there to be told.
Who is to tell it *claims* it first, which makes it due again after `LEASE`: two who deliver at once
tell it once, one who dies while he tells it leaves it to the next, who tells it under the same id.
So it is told at least once, and twice only after a crash, or by clocks that differ by more.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from comments.events import outbox
from comments.store import ownership, reads, transactions
from comments.store.models import conversion, event_rows

_OWNER = "message_queue"
LEASE = timedelta(seconds=60)  # more than an attempt may take


class Message(NamedTuple):
    """Something to be told. `event` is the id that repeats have in common."""

    id: str
    event: str
    queue: str
    content: str
    attempts: int
    at: datetime


def queue(channel: str, recipient: str) -> str:
    """The name of the queue of a recipient, all of it ASCII. Names of channels hold no "/"."""
    return f"{channel}/{recipient}"


def made(
    event: str, queues: Iterable[str], content: str, *, at: datetime
) -> tuple[event_rows.Message, ...]:
    """The rows of an event's messages, one for each queue; `writes` stores them."""
    return tuple(
        event_rows.Message(
            key=event_rows.message_key(f"{event}/{name}"),
            queue=name,
            content=content,
            at=at,
            due=at,
            since=at,
        )
        for name in queues
    )


def writes(rows: Iterable[event_rows.Message]) -> ownership.Writes:
    """Store messages, in the transaction that notes their events as done."""
    return ownership.Writes(_OWNER, put=tuple(rows))


def queues(limit: int, *, after: str = "") -> list[str]:
    """The queues in which a message waits, by name, a bounded number of them."""
    query = reads.Query(
        "Message",
        where=(("waits", "=", True), ("queue", ">", after)),
        order=("queue",),
        projection=("queue",),
        distinct_on=("queue",),
        limit=limit,
    )
    return [message.properties["queue"].string_value for message in reads.fetch(query)]


def due(name: str, now: datetime, limit: int) -> list[str]:
    """The ids of a queue's messages that are due, those that wait longest first."""
    query = reads.Query(
        "Message",
        where=(("queue", "=", name), ("due", "<=", now)),
        order=("due",),
        limit=limit,
        keys_only=True,
    )
    return [message.key.path[-1].name for message in reads.fetch(query)]


def read(ids: Sequence[str]) -> list[event_rows.Message]:
    """The rows of those messages that are there."""
    rows = reads.get_multi([event_rows.message_key(each) for each in ids])
    return [row for row in rows if row is not None]


def record(row: event_rows.Message) -> Message:
    """A stored message as channels see it."""
    name: str = row.key.id()
    event, _, _ = name.partition("/")
    return Message(name, event, row.queue, row.content, row.attempts, conversion.plain(row.at))


def claim(message: str, *, now: datetime) -> Message | None:
    """Take a message to tell it; None if somebody else did, or it is not there any more."""

    def body() -> Message | None:
        found = read([message])
        if not found or found[0].due > now:
            return None
        (row,) = found
        row.attempts += 1
        row.due = now + LEASE
        transactions.apply(ownership.Writes(_OWNER, put=(row,)))
        return record(row)

    return transactions.transaction(body)


def finish(message: str) -> None:
    """Forget a message: it was told, or there is nobody to be told."""
    key = event_rows.message_key(message)
    transactions.transaction(lambda: transactions.apply(ownership.Writes(_OWNER, delete=(key,))))


def postpone(message: str, reason: str, *, now: datetime, pause: timedelta) -> None:
    """Note that a message could not be told: later again, or never."""

    def body() -> None:
        for row in read([message]):
            row.reason = reason
            row.due = now + pause
            if row.attempts >= outbox.MOST_ATTEMPTS:
                _give_up(row)
            transactions.apply(ownership.Writes(_OWNER, put=(row,)))

    transactions.transaction(body)


def give_up(message: str, reason: str) -> None:
    """Keep a message that is not to be told, until somebody revives or drops it."""

    def body() -> None:
        for row in read([message]):
            row.reason = reason
            _give_up(row)
            transactions.apply(ownership.Writes(_OWNER, put=(row,)))

    transactions.transaction(body)


def rewrite(message: str, content: str) -> None:
    """Keep less in a message than it held, as what is not needed any more is not kept."""

    def body() -> None:
        for row in read([message]):
            row.content = content
            transactions.apply(ownership.Writes(_OWNER, put=(row,)))

    transactions.transaction(body)


def _give_up(row: event_rows.Message) -> None:
    row.due = row.since = outbox.NEVER
    row.waits = False


def is_given_up(row: event_rows.Message) -> bool:
    """Whether a message is not tried any more."""
    return not row.waits


def revive(row: event_rows.Message, *, now: datetime) -> ownership.Writes:
    """Try a message that was given up once more, from the start."""
    row.attempts, row.due, row.since, row.waits = 0, now, row.at, True
    return ownership.Writes(_OWNER, put=(row,))


def drop(row: event_rows.Message) -> ownership.Writes:
    """Forget a message that was given up."""
    return ownership.Writes(_OWNER, delete=(row.key,))
