"""Dead letters: a view of undelivered events and messages, in which operators revive or drop them.

This module combines events (`outbox`) and messages (`message_queue`) in one view. Events and
messages have ids. If the delivery of an event or message is given up, it becomes a *dead letter*:
it is not retried, and is kept until an operator revives or drops it. A message id begins with the
id of the message's event.

The cost of every operation is bounded, regardless of the number of letters. Only dead letters can
be revived or dropped; normal delivery handles all other letters.
"""

import contextlib
import functools
import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from comments import errors
from comments.events import message_queue, outbox
from comments.store import ownership, reads, transactions
from comments.store.models import conversion, event_rows

MOST_COUNTED = 1_000
MOST_SETTLED = 500  # Maximum number of letters that one request revives or drops.
PAGE = 50
_LONGEST_ID = 1_000  # In characters; the store refuses longer key names.
_KINDS = ("Event", "Message")
_Row = event_rows.EventRow | event_rows.MessageRow


class Waiting(NamedTuple):
    """The numbers of pending and dead letters, each at most `MOST_COUNTED`.

    `oldest` is the age of the oldest letter in seconds. `events`, `messages` and `oldest` exclude
    dead letters.
    """

    events: int
    messages: int
    oldest: int
    dead: int


class DeadLetter(NamedTuple):
    """An event or message, dead or pending. `what` is an event's kind or a message's queue."""

    id: str
    what: str
    at: datetime | None
    attempts: int
    reason: str
    is_dead: bool
    detail: str


class DeadLetterPage(NamedTuple):
    """Dead letters in order of their ids.

    The next page begins after `after`, which is None on the last page.
    """

    letters: tuple[DeadLetter, ...]
    after: str | None


def count_waiting(now: datetime) -> Waiting:
    """Count pending letters and determine the oldest letter's age.

    The function makes six index reads, each of bounded length.
    """
    events, messages = (_count(kind, "<") for kind in _KINDS)
    dead = sum(_count(kind, "=") for kind in _KINDS)
    since = [moment for kind in _KINDS if (moment := _oldest(kind)) is not None]
    age = (now - min(since)).total_seconds() if since else 0.0
    return Waiting(events, messages, max(0, int(age)), min(dead, MOST_COUNTED))


def dead(*, after: str = "", limit: int = PAGE) -> DeadLetterPage:
    """List dead letters in order of their ids."""
    ids = list(heapq.merge(*(_dead(kind, after, limit + 1) for kind in _KINDS)))
    shown = ids[:limit]
    letters = (_find(name) for name in shown)
    more = shown[-1] if len(ids) > limit else None
    return DeadLetterPage(tuple(letter for letter in letters if letter is not None), more)


def of_queue(queue: str, *, limit: int) -> tuple[DeadLetter, ...]:
    """List dead messages of one queue in order of their ids."""
    rows = message_queue.read(message_queue.dead_ids(queue, limit))
    return tuple(_letter(row) for row in rows)


def show(letter: str) -> DeadLetter:
    """Read an event or a message, whether dead or not.

    Raises:
        errors.NotFound: no event or message has this id; it may have been delivered or dropped.
    """
    row = _find(letter)
    if row is None:
        raise errors.NotFound("letter", letter)
    return row


def revive(letter: str, *, now: datetime) -> None:
    """Retry a dead letter with the full number of attempts.

    Raises:
        errors.NotFound: see `show`. errors.Conflict: the event or message is not a dead letter.
    """
    _settle(letter, functools.partial(_revival_writes, now=now))


def drop(letter: str) -> None:
    """Discard a dead letter permanently, so that it is never delivered.

    Raises:
        errors.NotFound, errors.Conflict: see `revive`.
    """
    _settle(letter, _drop_writes)


def settle_all(letters: Iterable[str], verb: Callable[[str], None]) -> int:
    """Revive or drop dead letters, except those that are settled already; return their number."""
    count = 0
    for letter in letters:
        with contextlib.suppress(errors.NotFound, errors.Conflict):
            verb(letter)
            count += 1
    return count


def dead_ids() -> Iterator[str]:
    """Yield the ids of all dead letters, reading page by page."""
    after = ""
    while True:
        ids = list(heapq.merge(*(_dead(kind, after, PAGE) for kind in _KINDS)))[:PAGE]
        yield from ids
        if len(ids) < PAGE:
            return
        after = ids[-1]


def _count(kind: str, operator: str) -> int:
    where = (("since", operator, outbox.NEVER),)
    return reads.count(reads.Query(kind, where=where, limit=MOST_COUNTED))


def _oldest(kind: str) -> datetime | None:
    where = (("since", "<", outbox.NEVER),)
    query = reads.Query(kind, where=where, order=("since",), projection=("since",), limit=1)
    for message in reads.fetch(query):
        return conversion.projected_time(message.properties["since"])
    return None


def _dead(kind: str, after: str, limit: int) -> list[str]:
    where: list[tuple[str, str, object]] = [("since", "=", outbox.NEVER)]
    if after:
        where.append(("__key__", ">", after))
    return reads.names(kind, where, order=("__key__",), limit=limit)


def _rows(letter: str) -> Sequence[_Row]:
    if not letter or len(letter) > _LONGEST_ID or not letter.isascii():
        return []
    return outbox.read([letter]) if outbox.is_event(letter) else message_queue.read([letter])


def _find(letter: str) -> DeadLetter | None:
    return next((_letter(row) for row in _rows(letter)), None)


def _letter(row: _Row) -> DeadLetter:
    if isinstance(row, event_rows.MessageRow):
        what, detail, is_dead = row.queue, row.content, message_queue.is_given_up(row)
    else:
        done = ", ".join(row.done) or "no handler"
        what, detail, is_dead = row.kind, f"handled by {done}", outbox.is_given_up(row)
    return DeadLetter(
        row.key.id(),
        what,
        row.at,
        row.attempts,
        row.reason,
        is_dead,
        detail,
    )


def _revival_writes(row: _Row, *, now: datetime) -> ownership.Writes:
    if isinstance(row, event_rows.MessageRow):
        return message_queue.revival_writes(row, now=now)
    return outbox.revival_writes(row, now=now)


def _drop_writes(row: _Row) -> ownership.Writes:
    return (
        message_queue.drop_writes(row)
        if isinstance(row, event_rows.MessageRow)
        else outbox.drop_writes(row)
    )


def _settle(letter: str, verb: Callable[[_Row], ownership.Writes]) -> None:
    def body() -> None:
        rows = _rows(letter)
        if not rows:
            raise errors.NotFound("letter", letter)
        if not _letter(rows[0]).is_dead:
            raise errors.Conflict("letter-not-dead", value=letter)
        transactions.apply(verb(rows[0]))

    transactions.transaction(body)
