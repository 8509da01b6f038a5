"""Maintain the numbers of declared counters, in the transaction that marks events as counted.

For its old state, a change affects at most `declared_counters.MOST_CATEGORIES` numbers of each
counter, and for its new state as many again. An event may contain many changes. Amounts that do not
fit into the commit of a delivery become a separate event, of the kind DECLARED. This event repeats
the changes. Its detail is the name of the last number to which they have been added. Only the
numbers after that name, in the order of their names, must still be counted. If such an event does
not fit into one commit either, the next event of this kind replaces it.

Each change is added exactly once to each number, because the commit that adds the change also
deletes the event, or replaces it with an event that begins after the last number. One commit writes
at most `outbox.MOST_ROWS` rows of counters, including all other counters. Only numbers of declared
generations are written (`declarations`).
"""

import dataclasses
import functools
from collections.abc import Collection, Mapping, Sequence

import msgspec

from comments.domain.counters import declared_counters
from comments.domain.counters.declared_counters import DeclaredCounter
from comments.events import backlog, outbox
from comments.store import ownership, reads, transactions
from comments.store.models import counter_rows, declared_rows, event_rows
from comments.tree.counters.declared import declarations

Amounts = Mapping[str, int]  # Amounts by the name of a number within its site.
_AFTER = ".d"  # Precedes the number in the id of a DECLARED event.


class _Sums:
    """The amounts of one commit, for at most `room` numbers."""

    def __init__(self, room: int) -> None:
        self._room = max(0, room)
        self._sums: dict[tuple[str, str], int] = {}
        self._later: list[tuple[outbox.Event, str]] = []

    def add(self, event: outbox.Event, site: str, amounts: Amounts) -> None:
        """Add amounts in the order of their names, and keep the rest if there is no more room."""
        last = _last_of(event)
        for name in sorted(amounts):
            if (site, name) not in self._sums and len(self._sums) >= self._room:
                self._later.append((event, last))
                return
            self._sums[site, name] = self._sums.get((site, name), 0) + amounts[name]
            last = name

    def writes(self) -> ownership.Writes:
        """Return the writes of the numbers. Write the events for the remaining amounts."""
        if self._later:
            rows = [_event(*rest) for rest in self._later]
            transactions.apply(outbox.follow_up_writes(rows))
            for row in rows:
                # If the commit fails, this event does not exist, and delivering it does nothing.
                transactions.afterwards(functools.partial(backlog.tell, row.key.id()))
        return addition_writes(self._sums)


def event_writes(
    events: Sequence[outbox.Event],
    rows: Mapping[str, counter_rows.CounterRow | None],
    *,
    room: int,
) -> ownership.Writes:
    """Add events to the declared counters of their websites.

    `rows` contains the rows of the websites' own numbers, and `room` is the number of rows that the
    current transaction may still write. All events of a transaction must be passed together,
    because each number is read and written only once.
    """
    sums = _Sums(room)
    for site, row in rows.items():
        counters = declarations.in_row(row).counters
        for event in events if counters else ():
            if site in sites([event]):
                sums.add(event, site, _remaining_amounts(event, counters))
    return sums.writes()


def sites(events: Sequence[outbox.Event]) -> set[str]:
    """Return the websites of the comments that events changed."""
    return {
        state.site
        for event in events
        for change in event.changes
        for state in change
        if state is not None
    }


def _remaining_amounts(event: outbox.Event, counters: Sequence[DeclaredCounter]) -> Amounts:
    """Return the amounts that an event must still add to counters."""
    amounts = declared_counters.increments(counters, event.changes)
    last = _last_of(event)
    return {name: amount for name, amount in amounts.items() if name > last}


def _last_of(event: outbox.Event) -> str:
    """Return the last number to which an event was added, or "" if it was added to none."""
    return event.detail if event.kind in outbox.OF_RESTS else ""


def addition_writes(sums: Mapping[tuple[str, str], int]) -> ownership.Writes:
    """Add amounts to numbers, by site and name. A number that becomes 0 has no row."""
    keys = [declared_rows.declared_key(site, name) for site, name in sums]
    stored = reads.get_multi(keys) if keys else []
    put, gone = [], []
    for ((site, name), more), key, row in zip(sums.items(), keys, stored, strict=True):
        amount = more + (0 if row is None else row.amount)
        if amount:
            put.append(declared_rows.declared_count(site, name, amount))
        elif row is not None:
            gone.append(key)
    return ownership.Writes(counter_rows.OWNER, put=tuple(put), delete=tuple(gone))


def mend(
    site: str, previous: str, mended: str, missing: Amounts, complete: Collection[int]
) -> bool:
    """Add amounts that the job found missing, in the current transaction.

    `previous` identifies the correction before this part: the last correction before the job's
    comparison, or the previous part. `mended` identifies this part. The generations in `complete`
    become complete. Amounts of generations that no longer exist are ignored.

    Returns:
        Return False if another process corrected the numbers after the comparison.
    """
    row, known = declarations.read_row(site)
    if known.mended == mended:
        return True  # An earlier run committed, but its response was lost.
    if known.mended != previous:
        return False
    counters = tuple(
        msgspec.structs.replace(counter, is_complete=True)
        if counter.generation in complete
        else counter
        for counter in known.counters
    )
    alive = {counter.generation for counter in counters}
    sums = {
        (site, name): amount
        for name, amount in missing.items()
        if declared_counters.generation_of(name) in alive
    }
    known = msgspec.structs.replace(known, counters=counters, mended=mended)
    transactions.apply(addition_writes(sums), declarations.row_writes(row, known))
    return True


def stored_amounts(site: str, counters: Sequence[DeclaredCounter]) -> Amounts:
    """Return all numbers of a website's counters."""
    return {
        message.key.path[-1].name.partition("/")[2]: message.properties["amount"].integer_value
        for counter in counters
        for message in reads.fetch(_rows(site, counter.generation))
    }


def delete_some(site: str, generation: int, most: int) -> int:
    """Delete some numbers of a removed generation; return how many were deleted."""
    query = dataclasses.replace(_rows(site, generation), limit=most, keys_only=True)
    names = [message.key.path[-1].name.partition("/")[2] for message in reads.fetch(query)]
    keys = tuple(declared_rows.declared_key(site, name) for name in names)
    if keys:
        gone = ownership.Writes(counter_rows.OWNER, delete=keys)
        transactions.transaction(lambda: transactions.apply(gone))
    return len(keys)


def _rows(site: str, generation: int) -> reads.Query:
    low, high = declared_rows.range_of(site, generation)
    where = (("__key__", ">=", low), ("__key__", "<", high))
    return reads.Query("DeclaredCount", where=where, order=("__key__",))


def pending_amounts(site: str, counters: Sequence[DeclaredCounter], handler: str) -> Amounts:
    """Return the amounts that undelivered events will add to a website's counters.

    `handler` is the name of the handler that calls `event_writes`.
    """
    sums: dict[str, int] = {}
    for event in outbox.pending_events(handler, outbox.COUNTED | outbox.OF_RESTS):
        if site in sites([event]):
            for name, amount in _remaining_amounts(event, counters).items():
                sums[name] = sums.get(name, 0) + amount
    return sums


def _event(event: outbox.Event, last: str) -> event_rows.EventRow:
    root, _, number = event.id.partition(_AFTER)
    return outbox.repeat(event, f"{root}{_AFTER}{int(number or 0) + 1}", last)
