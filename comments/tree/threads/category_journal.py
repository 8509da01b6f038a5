"""The journals of threads whose categories were changed: which change, and how far it came.

Owns the Job rows of that work. `tree` begins one in the commit that changes a thread's categories,
and `recategorize` goes through the thread's comments and ends it.
"""

from typing import NamedTuple

import msgspec
from google.cloud import ndb

from comments.store.models import event_rows

PREFIX = "categories/"


class Position(NamedTuple):
    """Which change of a thread goes on, and the last comment that it went through."""

    times: int
    after: str = ""


def key(thread: str) -> ndb.Key:
    """The key of the journal of a thread, which is given by its key name."""
    return event_rows.job_key(f"{PREFIX}{thread}")


def journal(thread: str, position: Position) -> event_rows.Job:
    """The row that says how far the change of a thread came."""
    return event_rows.Job(key=key(thread), position=msgspec.json.encode(position).decode())


def position(row: event_rows.Job) -> Position:
    """How far a change came."""
    return msgspec.json.decode(row.position, type=Position)
