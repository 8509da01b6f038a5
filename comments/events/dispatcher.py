"""The dispatcher: every event reaches every handler at least once, under the same id.

Owns what becomes of an event that fails. The handlers are wired in one place (`wiring`). There
are two ways to handle an event:

- `Exact` handlers only write to this store: what they write and that they are done with the event
  is one commit, so they handle it exactly once however often it is delivered. All of them share
  that commit, until one of them fails: then each is tried alone;
- `Sending` handlers act outside. They are told first and it is noted after, so a crash in between
  tells them again: they have to recognise the event's id. What they give back are events that
  follow from this one, written by the commit that notes it. One with a `term` claims the event
  first, so that two processes are not at it at once.

Each handler says which `kinds` of events are its own; nobody waits for it with others.

Whoever is told outside is better served by an exact handler that writes a message for each
recipient (`messages`), which then have attempts, pauses and ends of their own (`message_sender`).

What must stay true: an event whose transaction did not commit is not there, so nobody is told of
it; one is deleted only by the commit that notes the last handler as done. Which process delivers
does not matter, nor whether two do at once, nor in which order.

What fails is tried again later, after pauses that double, and given up after
`outbox.MOST_ATTEMPTS`: it stays in the store until somebody revives or drops it (`dead_letters`).
One event that fails holds up no other, nor one handler another. While the store itself is busy
nothing is counted as a failure.
"""

import dataclasses
import functools
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from comments import errors
from comments.domain import counting
from comments.events import backlog, outbox
from comments.store import ownership, transactions
from comments.store.models import event_rows

_log = logging.getLogger("flatthread")

AT_ONCE = 16  # events in one transaction
# Rows of counters in one transaction. With a mark and messages of hooks and to advisers for each
# event these are 500 writes at most, which every version of the service takes in one commit.
MOST_ROWS = outbox.MOST_ROWS
SWEPT = 200  # events that one sweep looks for


@dataclasses.dataclass(frozen=True, slots=True)
class Exact:
    """Handles events by what it writes in the transaction that notes them as done."""

    name: str
    writes: Callable[[Sequence[outbox.Event]], ownership.Writes]
    kinds: frozenset[outbox.Kind] = outbox.OF_COMMENTS


@dataclasses.dataclass(frozen=True, slots=True)
class Sending:
    """Handles one event outside of the store; idempotent by the event's id.

    `send` gives back the events that follow (`outbox.follow`), if any. After the `term` of its
    claim others may take an event, because whoever claimed it is gone.
    """

    name: str
    send: Callable[[outbox.Event], Sequence[event_rows.Event] | None]
    kinds: frozenset[outbox.Kind] = outbox.OF_COMMENTS
    term: timedelta | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """How many events were delivered to everybody, and how many have to be tried again."""

    delivered: int
    failed: int


Handler = Exact | Sending


def deliver(events: Iterable[str], *, now: datetime, handlers: Sequence[Handler]) -> Done:
    """Deliver these events to every handler that is not done with them.

    Raises:
        errors.Overloaded: the store is busy; what is not done is found by a sweep.
    """
    rounds = _Round(now, handlers)
    # One that is named twice would be handled twice by one transaction.
    return rounds.deliver(list(dict.fromkeys(events)))


def due(*, now: datetime, limit: int = SWEPT) -> list[str]:
    """The events that nobody delivered in time, those that wait longest first."""
    return outbox.due(now, limit)


def sweep(*, now: datetime, handlers: Sequence[Handler]) -> Done:
    """Deliver events that nobody delivered in time, a bounded number of them."""
    return deliver(outbox.due(now, SWEPT), now=now, handlers=handlers)


def sweep_fresh(*, now: datetime, handlers: Sequence[Handler]) -> Done:
    """The same where no process delivers its own events: those that nobody tried yet, too."""
    return deliver(outbox.fresh(now, SWEPT), now=now, handlers=handlers)


def _is_for(handler: Handler, row: event_rows.Event) -> bool:
    return outbox.Kind(row.kind) in handler.kinds and handler.name not in row.done


class _Round:
    def __init__(self, now: datetime, handlers: Sequence[Handler]) -> None:
        self._now = now
        self._handlers = handlers
        self._started = time.monotonic()
        self._failed: set[str] = set()

    def _every(self, kind: outbox.Kind) -> set[str]:
        return {handler.name for handler in self._handlers if kind in handler.kinds}

    def deliver(self, events: list[str]) -> Done:
        exact = [handler for handler in self._handlers if isinstance(handler, Exact)]
        if exact:
            self._write(exact, events)
        for handler in self._handlers:
            if isinstance(handler, Sending):
                for event in events:
                    self._guarded(functools.partial(self._send, handler), event)
        return Done(len(events) - len(self._failed), len(self._failed))

    def _write(self, handlers: Sequence[Exact], events: list[str]) -> None:
        left = events
        while left:
            part = left[:AT_ONCE]
            try:
                done = self._write_part(handlers, part)
            except errors.Overloaded:
                raise
            except Exception:  # noqa: BLE001 - which event, and whose fault, is found one by one
                for event in part:
                    for handler in handlers:
                        self._guarded(functools.partial(self._write_part, [handler]), event)
                done = len(part)
            left = left[done:]

    def _guarded(self, step: Callable[[list[str]], int], event: str) -> None:
        """Take a step with an event; if it fails, note that."""
        try:
            step([event])
        except errors.Overloaded:
            raise
        except Exception as error:  # noqa: BLE001 - one event's trouble must not stop the others
            _log.error("event %s failed, and is tried again", event, exc_info=error)
            self._note_failure(event, error)

    def _write_part(self, handlers: Sequence[Exact], events: list[str]) -> int:
        """Handle the first of the events, as many as one transaction holds; how many."""
        names = {handler.name for handler in handlers}

        def body() -> int:
            rows = {row.key.id(): row for row in outbox.read(events)}
            taken: list[tuple[event_rows.Event, outbox.Event]] = []
            counted: set[counting.Scope] = set()
            handled = 0
            for event in events:
                row = rows.get(event)
                if row is not None and any(_is_for(handler, row) for handler in handlers):
                    told = outbox.record(row)
                    counted |= counting.rows(told.changes)
                    if taken and len(counted) > MOST_ROWS:
                        break
                    taken.append((row, told))
                handled += 1
            if taken:
                writes = [
                    handler.writes(left)
                    for handler in handlers
                    if (left := [told for row, told in taken if _is_for(handler, row)])
                ]
                marks = outbox.mark((row for row, _ in taken), names, self._every)
                transactions.apply(*writes, marks)
            return handled

        return transactions.transaction(body)

    def _send(self, handler: Sending, events: list[str]) -> int:
        for row in outbox.read(events):
            if _is_for(handler, row) and self._is_ours(handler, events):
                following = handler.send(outbox.record(row)) or ()
                transactions.transaction(functools.partial(self._mark, handler, events, following))
                for each in following:
                    if not each.attempts:
                        backlog.tell(each.key.id())
        return len(events)

    def _is_ours(self, handler: Sending, events: list[str]) -> bool:
        """Whether nobody else is at these events; from here on nobody is."""
        if handler.term is None:
            return True
        # Of the moment of the claim: events before these may have taken long.
        now = self._now + timedelta(seconds=time.monotonic() - self._started)
        claimed = now + handler.term
        tries = itertools.count()

        def body() -> bool:
            rows = outbox.read(events)
            if next(tries) > 0 and rows and all(row.claimed == claimed for row in rows):
                return True  # our own commit, whose answer was lost
            if not rows or any(outbox.is_claimed(row, now) for row in rows):
                return False
            transactions.apply(*(outbox.claim(row, until=claimed) for row in rows))
            return True

        return transactions.transaction(body)

    def _mark(
        self, handler: Sending, events: list[str], following: Sequence[event_rows.Event]
    ) -> None:
        rows = [row for row in outbox.read(events) if _is_for(handler, row)]
        if rows:  # not so after our own commit, whose answer was lost
            marks = outbox.mark(rows, {handler.name}, self._every)
            transactions.apply(marks, outbox.written(following))

    def _note_failure(self, event: str, error: Exception) -> None:
        if event not in self._failed:  # however many handlers fail, it was one attempt
            self._failed.add(event)
            reason = type(error).__name__  # its text may hold anything
            transactions.transaction(functools.partial(self._postpone, event, reason))

    def _postpone(self, event: str, reason: str) -> None:
        rows = outbox.read([event])
        transactions.apply(*(outbox.postpone(row, reason, now=self._now) for row in rows))
        for row in rows:
            if outbox.is_given_up(row):
                _log.error("event %s is given up after %d attempts", event, row.attempts)
