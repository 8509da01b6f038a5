"""The dispatcher: delivers every event to every handler at least once, always with the same id.

This module also decides what happens to events that fail. `wiring` lists all handlers. There are
two kinds of handlers:

- `Exact` handlers only write to this store. One commit stores the handlers' writes and records the
  handlers as done, so they handle the event exactly once, no matter how often it is delivered. All
  exact handlers and up to `AT_ONCE` events share that commit. If the commit fails, the dispatcher
  tries each half of the events, down to a single event, for which it runs each handler separately.
- `Sending` handlers act outside the store. The dispatcher calls these handlers first and then
  records them as done. After a crash between these steps, the dispatcher calls the handlers again,
  so they must recognize the event's id. `Sending` handlers return follow-up events, which are
  stored by the commit that records the handlers as done. A handler with a `term` claims each event
  first, so that no two processes handle it at the same time. For handlers without a `term`, one
  commit records up to `AT_ONCE` events.

Each handler lists the `kinds` of events that it handles; events of other kinds do not wait for that
handler.

To notify external recipients, prefer an exact handler that writes a message for each recipient
(`message_queue`): each message has its own attempts, pauses and outcome (`message_sender`).

Invariant: An event is deleted only by an operator, or by the commit that records its last handler
as done (test_dispatcher.py::test_an_event_stays_until_every_handler_is_done).

Invariant: The result of exact handlers depends neither on the delivering process nor on concurrent
deliveries or their order
(test_counters_from_events.py::test_events_delivered_repeatedly_late_and_in_any_order_count_once).

A failed event is retried after pauses that double, and becomes a dead letter after
`retry_pauses.MOST_ATTEMPTS` attempts (`dead_letters`). A failing event delays no other event, and a
failing handler delays no other handler. `Overloaded` means that the store is busy; it never counts
as a failure.
"""

import dataclasses
import functools
import itertools
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta

from comments import errors
from comments.domain.counters import counting
from comments.events import backlog, outbox
from comments.store import ownership, transactions
from comments.store.models import event_rows

_log = logging.getLogger("flatthread")

# Maximum number of events in one transaction. Under load, one transaction of 100 events takes half
# the processor time of six transactions of 16, and occupies the engine's only writer for about 15
# ms. Larger transactions save little more.
AT_ONCE = 100
# This number of events fits into one transaction, no matter what the handlers write. The largest
# transaction has `MOST_ROWS` counter rows and, for each event, a mark, a row of thread counts, a
# mark in an inbox, an event for the declared counters, and all webhook messages and classifier
# questions: together at most `MOST_WRITES` writes.
FITTING = 12
MOST_ROWS = outbox.MOST_ROWS  # Maximum number of counter rows in one transaction.
MOST_WRITES = 500  # Every Datastore accepts this many writes in one transaction.
MOST_BYTES = 8 << 20  # Maximum size of a transaction's writes. Datastore accepts 10 MiB.
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
_FollowUps = dict[str, Sequence[event_rows.EventRow]]  # Keys are the ids of the original events.


class _TooLarge(Exception):
    """The writes for more than `FITTING` events exceed what one commit may contain."""


def deliver(events: Iterable[str], *, now: datetime, handlers: Sequence[Handler]) -> DeliveryCounts:
    """Deliver events to every handler that is not done with them.

    Raises:
        errors.Overloaded: the store is busy; a sweep will find the remaining events.
    """
    rounds = _Round(now, handlers)
    # A transaction would handle a repeated id twice, so repeated ids are dropped.
    return rounds.deliver(list(dict.fromkeys(events)))


def overdue_ids(*, now: datetime, limit: int = SWEPT) -> list[str]:
    """Return the ids of events that were not delivered in time, longest overdue first."""
    return outbox.overdue_ids(now, limit)


def sweep(*, now: datetime, handlers: Sequence[Handler]) -> DeliveryCounts:
    """Deliver a bounded number of events that were not delivered in time."""
    return deliver(outbox.overdue_ids(now, SWEPT), now=now, handlers=handlers)


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
        self._at_once = self._most = AT_ONCE

    def _every(self, kind: outbox.EventKind) -> set[str]:
        return {handler.name for handler in self._handlers if kind in handler.kinds}

    def deliver(self, events: list[str]) -> DeliveryCounts:
        exact = [handler for handler in self._handlers if isinstance(handler, Exact)]
        if exact:
            self._write(exact, events)
        for handler in self._handlers:
            if isinstance(handler, Sending):
                size = AT_ONCE if handler.term is None else 1
                for start in range(0, len(events), size):
                    self._send(handler, events[start : start + size])
        return DeliveryCounts(len(events) - len(self._failed), len(self._failed))

    def _write(self, handlers: Sequence[Exact], events: list[str]) -> None:
        left = events
        while left:
            part = left[: self._at_once]
            try:
                done = self._write_part(handlers, part)
            except errors.Overloaded:
                raise
            except _TooLarge:
                # The next events are probably of the same kind.
                self._at_once = self._most = FITTING
                continue
            except Exception:  # noqa: BLE001 - trying ever smaller parts finds what failed
                self._write_apart(handlers, part)
                done = len(part)
            left = left[done:]
            # The events of an import fill a transaction each, so do not read a hundred events to
            # handle one.
            self._at_once = done if done < len(part) else min(self._most, 2 * done)

    def _write_apart(self, handlers: Sequence[Exact], events: list[str]) -> None:
        """Handle both halves of a part that failed, or run each handler for a single event."""
        middle = len(events) // 2
        if middle:
            self._write(handlers, events[:middle])
            self._write(handlers, events[middle:])
            return
        for handler in handlers:
            self._attempt(functools.partial(self._write_part, [handler], events), *events)

    def _attempt(self, step: Callable[[], object], event: str) -> None:
        """Run a step for one event and record any failure."""
        try:
            step()
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
                    record = outbox.record(row)
                    if len(events) > 1:
                        counted |= counting.rows(record.changes)
                    if taken and len(counted) > MOST_ROWS:
                        break
                    taken.append((row, record))
                handled += 1
            if taken:
                writes = [
                    handler.writes(left)
                    for handler in handlers
                    if (left := [event for row, event in taken if _is_for(handler, row)])
                ]
                marks = outbox.mark_writes((row for row, _ in taken), names, self._every)
                transactions.apply(*writes, marks)
                if len(taken) > FITTING and (
                    transactions.pending_writes() > MOST_WRITES
                    or transactions.pending_bytes() > MOST_BYTES
                ):
                    raise _TooLarge
            return handled

        return transactions.transaction(body)

    def _send(self, handler: Sending, events: list[str]) -> None:
        """Call a handler for each event, then record the events for which it succeeded."""
        following: _FollowUps = {}

        def send(row: event_rows.EventRow) -> None:
            if self._is_ours(handler, events):
                following[row.key.id()] = handler.send(outbox.record(row)) or ()

        for row in outbox.read(events):
            if _is_for(handler, row):
                self._attempt(functools.partial(send, row), row.key.id())
        try:
            self._mark(handler, following)
        except errors.Overloaded:
            raise
        except Exception:  # noqa: BLE001 - trying them one by one finds what failed
            for event, rows in following.items():
                self._attempt(functools.partial(self._mark, handler, {event: rows}), event)

    def _mark(self, handler: Sending, following: _FollowUps) -> None:
        """Record events as done, and store their follow-up events, in one transaction."""

        def body() -> None:
            rows = [row for row in outbox.read(list(following)) if _is_for(handler, row)]
            if rows:  # No rows remain if an earlier run committed but the response was lost.
                more = [follower for row in rows for follower in following[row.key.id()]]
                marks = outbox.mark_writes(rows, {handler.name}, self._every)
                transactions.apply(marks, outbox.follow_up_writes(more))

        if following:
            transactions.transaction(body)
        for follower in itertools.chain(*following.values()):
            if not follower.attempts:
                backlog.tell(follower.key.id())

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
            transactions.apply(*(outbox.claim_writes(row, until=claimed) for row in rows))
            return True

        return transactions.transaction(body)

    def _note_failure(self, event: str, error: Exception) -> None:
        if event not in self._failed:  # Count only one attempt, no matter how many handlers fail.
            self._failed.add(event)
            reason = type(error).__name__  # The type only; an error's text may contain anything.
            transactions.transaction(functools.partial(self._postpone, event, reason))

    def _postpone(self, event: str, reason: str) -> None:
        rows = outbox.read([event])
        transactions.apply(*(outbox.postpone_writes(row, reason, now=self._now) for row in rows))
        for row in rows:
            if outbox.is_given_up(row):
                _log.error("Event %s was given up after %d attempts", event, row.attempts)
