"""The journals of threads whose categories were changed: which change, and how far it came.

Owns the Job rows of that work. `tree` begins one in the commit that changes a thread's categories,
and `filing` goes through the thread's comments and ends it.
"""

from typing import NamedTuple

import msgspec
from google.cloud import ndb

from comments import models

PREFIX = "categories/"


class Position(NamedTuple):
    """Which change of a thread goes on, and the last comment that it went through."""

    times: int
    after: str = ""


def key(thread: str) -> ndb.Key:
    """The key of the journal of a thread, which is given by its key name."""
    return models.job_key(f"{PREFIX}{thread}")


def journal(thread: str, position: Position) -> models.Job:
    """The row that says how far the change of a thread came."""
    return models.Job(key=key(thread), position=msgspec.json.encode(position).decode())


def position(row: models.Job) -> Position:
    """How far a change came."""
    return msgspec.json.decode(row.position, type=Position)
