"""The dispatcher: delivers every event to every handler at least once, always with the same id.

This module also decides what happens to events that fail. `wiring` lists all handlers. There are
two kinds of handlers:

- `Exact` handlers only write to this store. One commit stores the handlers' writes and records the
  handlers as done, so they handle the event exactly once, no matter how often it is delivered. All
  exact handlers share that commit; if one of them fails, the dispatcher runs each handler
  separately.
- `Sending` handlers act outside the store. The dispatcher calls these handlers first and then
  records them as done. After a crash between these steps, the dispatcher calls the handlers again,
  so they must recognize the event's id. These handlers return follow-up events, which are stored by
  the commit that records the handlers as done. A handler with a `term` claims the event first, so
  that no two processes handle it at the same time.

Each handler lists the `kinds` of events that it handles; events of other kinds do not wait for that
handler.

To notify external recipients, prefer an exact handler that writes a message for each recipient
(`message_queue`): each message has its own attempts, pauses and outcome (`message_sender`).

Invariants:

1. An event whose transaction did not commit does not exist, so no handler receives it.
2. An event is deleted only by an operator, or by the commit that records its last handler as done.
3. The result depends neither on the delivering process nor on concurrent deliveries or their order.
4. A failed event is retried after pauses that double, and becomes a dead letter after
   `outbox.MOST_ATTEMPTS` attempts. A dead letter stays in the store until an operator revives or
   drops it (`dead_letters`).
5. A failing event delays no other event, and a failing handler delays no other handler.
6. `Overloaded` means that the store is busy; it never counts as a failure.
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

AT_ONCE = 16  # Maximum number of events in one transaction.
# The maximum number of counter rows in one transaction. Including marks, webhook messages and
# classifier questions for each event, a transaction has at most 500 writes, which every Datastore
# version accepts.
MOST_ROWS = outbox.MOST_ROWS
SWEPT = 200  # Maximum number of events that one sweep reads.


@dataclasses.dataclass(frozen=True, slots=True)
class Exact:
    """A handler whose writes share the transaction that records the events as done."""

    name: str
    writes: Callable[[Sequence[outbox.Event]], ownership.Writes]
    kinds: frozenset[outbox.EventKind] = outbox.OF_COMMENTS


@dataclasses.dataclass(frozen=True, slots=True)
class Sending:
    """A handler that acts outside the store; it must be idempotent by the event's id.

    `send` returns the follow-up events (`outbox.follow`), if any. After a claim's `term`, other
    processes may take the event, because by then the claiming process must have died.
    """

    name: str
    send: Callable[[outbox.Event], Sequence[event_rows.EventRow] | None]
    kinds: frozenset[outbox.EventKind] = outbox.OF_COMMENTS
    term: timedelta | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class DeliveryCounts:
    """The number of events delivered to every handler, and the number of events to be retried."""

    delivered: int
    failed: int


Handler = Exact | Sending


def deliver(events: Iterable[str], *, now: datetime, handlers: Sequence[Handler]) -> DeliveryCounts:
    """Deliver events to every handler that is not done with them.

    Raises:
        errors.Overloaded: the store is busy; a sweep will find the remaining events.
    """
    rounds = _Round(now, handlers)
    # A transaction would handle a repeated id twice, so repeated ids are dropped.
    return rounds.deliver(list(dict.fromkeys(events)))


def due(*, now: datetime, limit: int = SWEPT) -> list[str]:
    """Return the ids of events that were not delivered in time, longest overdue first."""
    return outbox.due(now, limit)


def sweep(*, now: datetime, handlers: Sequence[Handler]) -> DeliveryCounts:
    """Deliver a bounded number of events that were not delivered in time."""
    return deliver(outbox.due(now, SWEPT), now=now, handlers=handlers)


def sweep_fresh(*, now: datetime, handlers: Sequence[Handler]) -> DeliveryCounts:
    """Deliver events that are due or untried.

    Use this function where no process delivers its own events.
    """
    return deliver(outbox.fresh(now, SWEPT), now=now, handlers=handlers)


def _is_for(handler: Handler, row: event_rows.EventRow) -> bool:
    return outbox.EventKind(row.kind) in handler.kinds and handler.name not in row.done


class _Round:
    def __init__(self, now: datetime, handlers: Sequence[Handler]) -> None:
        self._now = now
        self._handlers = handlers
        self._started = time.monotonic()
        self._failed: set[str] = set()

    def _every(self, kind: outbox.EventKind) -> set[str]:
        return {handler.name for handler in self._handlers if kind in handler.kinds}

    def deliver(self, events: list[str]) -> DeliveryCounts:
        exact = [handler for handler in self._handlers if isinstance(handler, Exact)]
        if exact:
            self._write(exact, events)
        for handler in self._handlers:
            if isinstance(handler, Sending):
                for event in events:
                    self._guarded(functools.partial(self._send, handler), event)
        return DeliveryCounts(len(events) - len(self._failed), len(self._failed))

    def _write(self, handlers: Sequence[Exact], events: list[str]) -> None:
        left = events
        while left:
            part = left[:AT_ONCE]
            try:
                done = self._write_part(handlers, part)
            except errors.Overloaded:
                raise
            except Exception:  # noqa: BLE001 - trying them one by one finds what failed
                for event in part:
                    for handler in handlers:
                        self._guarded(functools.partial(self._write_part, [handler]), event)
                done = len(part)
            left = left[done:]

    def _guarded(self, step: Callable[[list[str]], int], event: str) -> None:
        """Run a step with one event and record any failure."""
        try:
            step([event])
        except errors.Overloaded:
            raise
        except Exception as error:  # noqa: BLE001 - one event's failure must not stop the others
            _log.error("Event %s failed and will be retried", event, exc_info=error)
            self._note_failure(event, error)

    def _write_part(self, handlers: Sequence[Exact], events: list[str]) -> int:
        """Handle as many leading events as fit into one transaction, and return their number."""
        names = {handler.name for handler in handlers}

        def body() -> int:
            rows = {row.key.id(): row for row in outbox.read(events)}
            taken: list[tuple[event_rows.EventRow, outbox.Event]] = []
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
        """Claim events for the handler's term; return False if another process has claimed them."""
        if handler.term is None:
            return True
        # Use the time of the claim, not the start of the round, because earlier events may have
        # taken long.
        now = self._now + timedelta(seconds=time.monotonic() - self._started)
        claimed = now + handler.term
        tries = itertools.count()

        def body() -> bool:
            rows = outbox.read(events)
            if next(tries) > 0 and rows and all(row.claimed == claimed for row in rows):
                return True  # An earlier run committed this claim, but the response was lost.
            if not rows or any(outbox.is_claimed(row, now) for row in rows):
                return False
            transactions.apply(*(outbox.claim(row, until=claimed) for row in rows))
            return True

        return transactions.transaction(body)

    def _mark(
        self, handler: Sending, events: list[str], following: Sequence[event_rows.EventRow]
    ) -> None:
        rows = [row for row in outbox.read(events) if _is_for(handler, row)]
        if rows:  # No rows remain if an earlier run committed but the response was lost.
            marks = outbox.mark(rows, {handler.name}, self._every)
            transactions.apply(marks, outbox.written(following))

    def _note_failure(self, event: str, error: Exception) -> None:
        if event not in self._failed:  # Count only one attempt, no matter how many handlers fail.
            self._failed.add(event)
            reason = type(error).__name__  # The type only; an error's text may contain anything.
            transactions.transaction(functools.partial(self._postpone, event, reason))

    def _postpone(self, event: str, reason: str) -> None:
        rows = outbox.read([event])
        transactions.apply(*(outbox.postpone(row, reason, now=self._now) for row in rows))
        for row in rows:
            if outbox.is_given_up(row):
                _log.error("Event %s was given up after %d attempts", event, row.attempts)
