"""The rows of a thread that are not folded: as they are stored, and what they make of a view.

Owns the queries for them and the form in which they are read. What must stay true: a row says
itself what a directory may hold of it, in the properties that `tree` writes with it.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec

from comments.domain import presentation, records
from comments.reading.materialized import buckets
from comments.store import reads, transactions
from comments.store.models import comment_rows, conversion


class Row(msgspec.Struct, frozen=True):
    """One row that is not folded, as it was read.

    `shelved`: the directory once held it listed. `rewrites`: what it held then must go at once.
    `moved`: it was held at another hash, or may have been. `due_threads`: its flag stands.
    `fold_by`: when it is to be folded; None for at once.
    """

    entry: buckets.Entry
    is_listed: bool
    shelved: bool
    rewrites: bool
    changed: datetime | None
    votes: tuple[int, int]
    moved: bool = False
    flagged: bool = True
    fold_by: datetime | None = None


def changed(content: buckets.Content, rows: Iterable[Row]) -> datetime | None:
    """The newest change that a directory has taken in, or that is among these rows."""
    return records.newest([content.changed, *(row.changed for row in rows)])


def merged(directory: buckets.Directory, rows: Iterable[Row]) -> list[buckets.Mark]:
    """The rows that differ from the buckets: those of the tail, and newer ones of the delta."""
    marks = {mark.id: mark for mark in directory.content.tail}
    for row in rows:
        entry, known = row.entry, marks.get(row.entry.id)
        if known is not None and known.revision > entry.revision:
            continue
        # `shelved` speaks of the last directory; without one no bucket holds anything.
        held = row.shelved and bool(directory.version)
        if known is not None:
            held = known.held
        elif entry.id in directory.clearing:
            held = directory.clearing[entry.id].is_listed
        json = entry.json if row.is_listed else b""
        marks[entry.id] = buckets.Mark(entry.sort_hash, entry.id, entry.revision, json, held)
    return list(marks.values())


def row_of(message: Any) -> Row:
    """A stored comment as a row of the delta."""
    record = conversion.comment_from_message(message)
    json = presentation.fragment(record)
    return Row(
        buckets.Entry(record.sort_hash, record.id, record.revision, json),
        record.listed,
        message.properties["shelved"].boolean_value,
        message.properties["rewrites"].boolean_value,
        record.changed,
        (0, 0) if record.is_tombstone or not record.listed else (record.up, record.down),
        message.properties["moved"].boolean_value,
        message.properties["unfolded"].boolean_value,
        conversion.stored_time(message, "fold_by"),
    )


def flagged(name: records.ThreadName) -> Iterator[Row]:
    """The rows whose flag stands."""
    return map(row_of, reads.fetch(_flagged(name)))


def listed_or_flagged(name: records.ThreadName) -> list[Row]:
    """All rows that a reader may see or see differently than before, as of one moment."""
    listed = reads.Query(
        "Comment",
        where=(("thread", "=", comment_rows.thread_key_name(name)), ("listed", "=", True)),
        order=("sort_hash",),
    )
    found = transactions.snapshot(lambda: [*reads.fetch(listed), *reads.fetch(_flagged(name))])
    return list({row.entry.id: row for row in map(row_of, found)}.values())


def _flagged(name: records.ThreadName) -> reads.Query:
    return reads.Query(
        "Comment",
        where=(("thread", "=", comment_rows.thread_key_name(name)), ("unfolded", "=", True)),
    )
