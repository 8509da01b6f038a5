"""Read a thread's delta: the rows that have changed since they were compacted.

This module owns the queries for these rows, and the type that represents them.

The properties `shelved`, `rewrites` and `moved` of each row record whether and how a directory may
contain the row. `tree` writes these properties together with the row.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from comments.domain import presentation, records
from comments.reading.materialized import buckets, time_index
from comments.store import reads, transactions
from comments.store.models import comment_rows, conversion


class DeltaRow(msgspec.Struct, frozen=True):
    """One row of the delta, as read from the store.

    - `shelved`: a directory has contained the row as a listed row.
    - `rewrites`: the text in the buckets must be removed immediately.
    - `moved`: the buckets contain, or may contain, the row at a different hash.
    - `flagged`: the row's `unfolded` flag is set.
    - `fold_by`: the deadline for compacting the row; None means immediately.
    - `shape`: the shape of the tree to which the row's hash belongs.
    - `created`: the time at which the comment was written.
    """

    entry: buckets.ListedEntry
    is_listed: bool
    shelved: bool
    rewrites: bool
    changed: datetime | None
    votes: tuple[int, int]
    moved: bool = False
    flagged: bool = True
    fold_by: datetime | None = None
    shape: int = 0
    created: datetime | None = None


def newest_change(content: buckets.DirectoryContent, rows: Iterable[DeltaRow]) -> datetime | None:
    """Return the time of the newest change in the directory content and these rows."""
    return records.newest([content.changed, *(row.changed for row in rows)])


def merge(directory: buckets.Directory, rows: Iterable[DeltaRow]) -> list[buckets.ChangedEntry]:
    """List the rows that differ from the buckets: the tail rows, updated with the delta rows."""
    marks = {mark.id: mark for mark in directory.content.tail}
    for row in rows:
        entry, known = row.entry, marks.get(row.entry.id)
        if known is not None and known.revision > entry.revision:
            continue
        # `shelved` refers to the last directory. Without a directory, no bucket contains the row.
        held = row.shelved and bool(directory.version)
        if known is not None:
            held = known.held
        elif entry.id in directory.rows_to_clear:
            held = directory.rows_to_clear[entry.id].is_listed
        json = entry.json if row.is_listed else b""
        marks[entry.id] = buckets.ChangedEntry(
            entry.sort_hash, entry.id, entry.revision, json, held
        )
    return list(marks.values())


def changes(directory: buckets.Directory, rows: Iterable[DeltaRow]) -> list[DeltaRow]:
    """Return the rows that differ from a directory: the rows that a probe would find."""
    return [
        row
        for row in rows
        if row.flagged and not directory.has_compacted(row.entry.id, row.entry.revision)
    ]


def shifts(directory: buckets.Directory, rows: Iterable[DeltaRow]) -> Iterator[time_index.Shift]:
    """Yield the rows that appear in, or disappear from, the rows that a directory lists."""
    for row in rows:
        cleared = directory.rows_to_clear.get(row.entry.id)
        was_listed = row.shelved if cleared is None else cleared.is_listed
        if row.is_listed != was_listed and row.created is not None:
            yield row.created, row.is_listed - was_listed


def row_of(message: Any) -> DeltaRow:
    """Convert a stored comment to a delta row."""
    return row_from(conversion.comment_from_message(message), message)


def row_from(record: records.Comment, message: Any) -> DeltaRow:
    """Convert a stored comment, which has been converted to a record already, to a delta row."""
    json = presentation.fragment(record)
    return DeltaRow(
        buckets.ListedEntry(record.sort_hash, record.id, record.revision, json),
        record.listed,
        message.properties["shelved"].boolean_value,
        message.properties["rewrites"].boolean_value,
        record.changed,
        (0, 0) if record.is_tombstone or not record.listed else (record.up, record.down),
        message.properties["moved"].boolean_value,
        message.properties["unfolded"].boolean_value,
        conversion.stored_time(message, "fold_by"),
        record.shape,
        record.created,
    )


def flagged_rows(name: records.ThreadName) -> Iterator[DeltaRow]:
    """Read the rows whose `unfolded` flag is set."""
    return map(row_of, reads.fetch(_flagged_query(name)))


def flagged_rows_and_times(
    name: records.ThreadName,
) -> tuple[list[DeltaRow], list[datetime]]:
    """Read the flagged rows, and the times of all listed rows at the same moment."""
    times = reads.Query(
        "Comment",
        where=(("thread", "=", comment_rows.thread_key_name(name)), ("listed", "=", True)),
        order=("created", "sort_hash"),
        projection=("created", "sort_hash"),
    )
    rows, messages = transactions.snapshot(
        lambda: (list(flagged_rows(name)), list(reads.fetch(times)))
    )
    created = (conversion.projected_time(row.properties["created"]) for row in messages)
    return rows, [time for time in created if time is not None]


def listed_or_flagged_rows(name: records.ThreadName) -> list[DeltaRow]:
    """Read all rows that are listed or flagged, as of the same moment."""
    listed = reads.Query(
        "Comment",
        where=(("thread", "=", comment_rows.thread_key_name(name)), ("listed", "=", True)),
        order=("sort_hash",),
    )
    messages = transactions.snapshot(
        lambda: [*reads.fetch(listed), *reads.fetch(_flagged_query(name))]
    )
    return list({row.entry.id: row for row in map(row_of, messages)}.values())


def _flagged_query(name: records.ThreadName) -> reads.Query:
    return reads.Query(
        "Comment",
        where=(("thread", "=", comment_rows.thread_key_name(name)), ("unfolded", "=", True)),
    )
