"""Delivery: every event reaches every handler at least once, under the same id.

Owns who is told of what happened (`HANDLERS`), and what becomes of what fails. There are two ways
to handle an event:

- `Exact` handlers only write to this store: what they write and that they are done with the event
  is one commit, so they handle it exactly once however often it is delivered;
- `Sending` handlers act outside. They are told first and it is noted after, so a crash in between
  tells them again: they have to recognise the event's id.

What must stay true: an event whose transaction did not commit is not there, so nobody is told of
it; one is deleted only by the commit that notes the last handler as done. Which process delivers
does not matter, nor whether two do at once, nor in which order.

What fails is tried again later, after pauses that double, and given up after
`outbox.MOST_ATTEMPTS`: it stays in the store, `dead`, until somebody has it `revived`. One event
that fails holds up no other. While the store itself is busy nothing is counted as a failure.
"""

import dataclasses
import functools
import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from comments import datastore, errors, models, outbox, tallies

_log = logging.getLogger("flatthread")

AT_ONCE = 20  # events in one transaction
MOST_CHANGES = 150  # of comments in one transaction; each may touch an author's row
SWEPT = 200  # events that one sweep looks for


@dataclasses.dataclass(frozen=True, slots=True)
class Exact:
    """Handles events by what it writes in the transaction that notes them as done."""

    name: str
    writes: Callable[[Sequence[outbox.Event]], datastore.Writes]


@dataclasses.dataclass(frozen=True, slots=True)
class Sending:
    """Handles one event outside of the store; idempotent by the event's id."""

    name: str
    send: Callable[[outbox.Event], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Done:
    """How many events were delivered to everybody, and how many have to be tried again."""

    delivered: int
    failed: int


Handler = Exact | Sending
COUNTERS = "counters"
HANDLERS: tuple[Handler, ...] = (Exact(COUNTERS, tallies.from_events),)


def deliver(
    events: Iterable[str], *, now: datetime, handlers: Sequence[Handler] | None = None
) -> Done:
    """Deliver these events to every handler that is not done with them.

    Raises:
        errors.Overloaded: the store is busy; what is not done is found by a sweep.
    """
    rounds = _Round(now, HANDLERS if handlers is None else handlers)
    # One that is named twice would be handled twice by one transaction.
    return rounds.deliver(list(dict.fromkeys(events)))


def sweep(*, now: datetime, handlers: Sequence[Handler] | None = None) -> Done:
    """Deliver events that nobody delivered in time, a bounded number of them."""
    return deliver(outbox.due(now, SWEPT), now=now, handlers=handlers)


def revive(*, now: datetime) -> int:
    """Have every event that was given up tried again; how many."""
    events = outbox.dead()
    for event in events:
        datastore.transaction(functools.partial(_revive, event, now))
    return len(events)


def _revive(event: str, now: datetime) -> None:
    rows = outbox.read([event])
    datastore.apply(*(outbox.revive(row, now=now) for row in rows))


class _Round:
    def __init__(self, now: datetime, handlers: Sequence[Handler]) -> None:
        self._now = now
        self._handlers = handlers
        self._names = {handler.name for handler in handlers}
        self._failed: set[str] = set()

    def deliver(self, events: list[str]) -> Done:
        for handler in self._handlers:
            if isinstance(handler, Exact):
                self._write(handler, events)
            else:
                for event in events:
                    self._guarded(functools.partial(self._send, handler), [event])
        return Done(len(events) - len(self._failed), len(self._failed))

    def _write(self, handler: Exact, events: list[str]) -> None:
        left = events
        while left:
            part = left[:AT_ONCE]
            done = self._guarded(functools.partial(self._write_part, handler), part)
            left = left[len(part) if done is None else done :]

    def _guarded(self, step: Callable[[list[str]], int], events: list[str]) -> int | None:
        """Take a step with events; if it fails, with each of them alone, and note which fail."""
        try:
            return step(events)
        except errors.Overloaded:
            raise
        except Exception as error:  # noqa: BLE001 - one event's trouble must not stop the others
            if len(events) > 1:
                for event in events:
                    self._guarded(step, [event])
                return None
            _log.error("event %s failed, and is tried again", events[0], exc_info=error)
            self._note_failure(events[0])
            return None

    def _write_part(self, handler: Exact, events: list[str]) -> int:
        """Handle the first of the events, as many as one transaction holds; how many."""

        def body() -> int:
            rows = {row.key.id(): row for row in outbox.read(events)}
            taken: list[tuple[models.Event, outbox.Event]] = []
            changes = handled = 0
            for event in events:
                row = rows.get(event)
                if row is not None and handler.name not in row.done:
                    told = outbox.record(row)
                    changes += len(told.changes)
                    if taken and changes > MOST_CHANGES:
                        break
                    taken.append((row, told))
                handled += 1
            if taken:
                marks = outbox.mark((row for row, _ in taken), handler.name, self._names)
                datastore.apply(handler.writes([told for _, told in taken]), marks)
            return handled

        return datastore.transaction(body)

    def _send(self, handler: Sending, events: list[str]) -> int:
        for row in outbox.read(events):
            if handler.name not in row.done:
                handler.send(outbox.record(row))
                datastore.transaction(functools.partial(self._mark, handler, events))
        return len(events)

    def _mark(self, handler: Sending, events: list[str]) -> None:
        datastore.apply(outbox.mark(outbox.read(events), handler.name, self._names))

    def _note_failure(self, event: str) -> None:
        self._failed.add(event)
        datastore.transaction(functools.partial(self._postpone, event))

    def _postpone(self, event: str) -> None:
        rows = outbox.read([event])
        datastore.apply(*(outbox.postpone(row, now=self._now) for row in rows))
        for row in rows:
            if row.is_dead:
                _log.error("event %s is given up after %d attempts", event, row.attempts)
