"""Record the progress of each change to a thread's categories.

This module owns the Job rows of these changes. `tree` creates a row in the commit that changes a
thread's categories. The job `recategorize` processes the thread's comments, and deletes the row
when all comments are done.
"""

from typing import NamedTuple

import msgspec

from comments.domain import decoders
from comments.store.models import event_rows, schema

PREFIX = "categories/"


class JournalPosition(NamedTuple):
    """How far the thread's current change has come: the last comment that was processed."""

    times: int
    after: str = ""


def key(thread: str) -> schema.RowKey:
    """Return the key of a thread's journal, given the thread's key name."""
    return event_rows.job_key(f"{PREFIX}{thread}")


def journal(thread: str, position: JournalPosition) -> event_rows.JobRow:
    """Make the row that stores the progress of a change to a thread's categories."""
    return event_rows.JobRow(key=key(thread), position=msgspec.json.encode(position).decode())


def position(row: event_rows.JobRow) -> JournalPosition:
    return decoders.json(JournalPosition).decode(row.position)
