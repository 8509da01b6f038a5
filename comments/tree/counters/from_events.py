"""Update counters from events, in the transaction that marks the events as done.

This module owns the sums over a batch of events and the rows to which the sums are added. These are
the rows of websites, categories and days, of the authors in them, and of threads' followers, and
the rows with the counts of many threads (`thread_counts`). A participant is added or removed
together with the author's row.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from comments.domain.counters import counting
from comments.events import outbox
from comments.store import ownership, reads
from comments.store.models import counter_rows, schema
from comments.tree.counters import thread_counts
from comments.tree.counters.declared import declared_counts


def following_writes(events: Sequence[outbox.Event]) -> ownership.Writes:
    """Add events to threads' follower counts, in the transaction that marks the events as done.

    A batch of events writes only the first shard of each thread, which always exists.
    """
    sums: dict[tuple[str, str], dict[str, int]] = {}
    for event in events:
        site, thread, change = outbox.following_of(event)
        increments = counting.increments(counting.FOLLOWING, change.old, change.new)
        sums[site, thread] = counting.sums(
            sums.get((site, thread), {}), counter_rows.names(increments)
        )
    keys = [counter_rows.thread_counter_key_of(thread, 0) for _, thread in sums]
    put = []
    for ((site, thread), more), key, row in zip(
        sums.items(), keys, reads.get_multi(keys), strict=True
    ):
        counted = row or counter_rows.CounterRow(key=key, scope=f"thread/{thread}", site=site)
        if more:
            put.append(
                counter_rows.with_numbers(
                    counted, counting.sums(counter_rows.numbers_of(counted), more)
                )
            )
    return ownership.Writes(counter_rows.OWNER, put=tuple(put))


def event_writes(events: Sequence[outbox.Event]) -> ownership.Writes:
    """Add events to the counters of websites, categories, days and the authors in them.

    Call this in the transaction that marks the events as done. Each website has one row. Batches of
    events contend for this row, but posts do not.
    """
    sums = counting.by_scope(
        counting.total(
            counting.of_event(change)
            for event in events
            if event.kind not in outbox.OF_RESTS
            for change in event.changes
        )
    )
    # The rows of the sites are also needed for the sites' declared counters.
    sums = {counting.site_scope(site): {} for site in declared_counts.sites(events)} | sums
    spoken = dict(itertools.chain.from_iterable(map(_speakers, events)))
    added = _writes_with_rows(sums, spoken)
    room = outbox.MOST_ROWS - added.rows
    declared = declared_counts.event_writes(events, added.sites, room=room)
    return dataclasses.replace(
        added.writes,
        put=(*added.writes.put, *declared.put),
        delete=(*added.writes.delete, *declared.delete),
    )


def _speakers(event: outbox.Event) -> Iterator[tuple[counting.Scope, str]]:
    """Yield the authors of an event's approved comments, each with one of these comments."""
    for (_, state), comment in zip(event.changes, event.comments, strict=False):
        if state is not None and state.author and state.status == counting.APPROVED:
            yield counting.author_scope(state.site, state.author), comment


def sum_writes(
    sums: Mapping[counting.Scope, Mapping[str, int]],
    spoken: Mapping[counting.Scope, str] = MappingProxyType({}),
) -> ownership.Writes:
    """Add sums to the rows of places and authors. Author rows determine the places' participants.

    `spoken` maps authors to one of their comments, if one is known.
    """
    return _writes_with_rows(sums, spoken).writes


class _WritesWithRows(NamedTuple):
    """The writes that add sums, the number of rows that they read, and the rows of websites."""

    writes: ownership.Writes
    rows: int
    sites: Mapping[str, counter_rows.CounterRow | None]


def _writes_with_rows(
    sums: Mapping[counting.Scope, Mapping[str, int]], spoken: Mapping[counting.Scope, str]
) -> _WritesWithRows:
    listings = {
        scope.place: more for scope, more in sums.items() if scope.kind == counting.LISTINGS
    }
    sums = {scope: more for scope, more in sums.items() if scope.kind != counting.LISTINGS}
    authors = [scope for scope in sums if scope.author]
    wholes = [counting.above(scope) if scope.author else scope for scope in sums]
    wholes += map(counting.site_scope, listings)
    places = {scope: dict(sums.get(scope, {})) for scope in wholes}
    stored = reads.get_multi([counter_rows.scope_key(scope) for scope in (*places, *authors)])
    put: list[schema.StoredRow] = []
    gone: list[schema.RowKey] = []
    for scope, row in zip(authors, stored[len(places) :], strict=True):
        old = counter_rows.numbers_of(row)
        new = counting.sums(old, sums[scope])
        place = counting.above(scope)
        places[place] = counting.sums(places[place], counting.presence(old, new))
        if new:
            known = row.comment if isinstance(row, counter_rows.StandingRow) else ""
            put.append(counter_rows.author_row(scope, new, spoken.get(scope, known)))
        else:
            gone.append(counter_rows.scope_key(scope))
    for (scope, more_here), row in zip(places.items(), stored[: len(places)], strict=True):
        numbers = counting.sums(counter_rows.numbers_of(row), more_here)
        if scope.kind == "site" and (more_here or scope.place in listings):
            writes = _site_writes(scope.place, row, numbers, listings.get(scope.place))
            put += writes.put
            gone += writes.delete
        elif numbers and more_here:
            put += filter(counter_rows.fits, [counter_rows.statistics(scope, numbers)])
        elif more_here:
            gone.append(counter_rows.scope_key(scope))
    writes = ownership.Writes(counter_rows.OWNER, put=tuple(put), delete=tuple(gone))
    sites = {
        scope.place: row for scope, row in zip(places, stored, strict=False) if scope.kind == "site"
    }
    return _WritesWithRows(writes, len(stored), sites)


def _site_writes(
    site: str,
    row: counter_rows.CounterRow | None,
    numbers: counter_rows.Numbers,
    listings: Mapping[str, int] | None,
) -> ownership.Writes:
    """Return the writes for a website's numbers, and for its threads' counts if these change.

    A site's row is kept even without numbers, because it also stores the number of corrections.
    """
    counted = counter_rows.with_numbers(row or counter_rows.site_counter(site), numbers)
    more = ownership.Writes(counter_rows.OWNER)
    if listings is not None:
        more = thread_counts.addition_writes(site, counted, listings)
    return dataclasses.replace(more, put=(counted, *more.put))
