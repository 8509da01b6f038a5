"""Filing: a thread's change of categories, as a work that may be interrupted anywhere.

Each comment holds the categories it is counted under, so a change of its thread's goes through all
of them. Owns that walk and its journal, a Job:

1. one transaction gives the thread its categories, numbers the change (`Thread.filed`) and writes
   the journal: which change, and after which comment the walk goes on;
2. each step takes the next comments by key, and in one transaction counts them under what the
   thread has by now (`tree.refile`) and moves the journal on; the last one deletes it.

What must stay true:

- a comment placed after 1 has the new categories, because whoever places it reads the thread; one
  placed before is met by the walk, because it begins later and keys of comments never change;
- a comment moves from where it is counted, whatever that is, in the commit that tells of it, so
  changes that follow each other, and comments that change meanwhile, add up;
- a step whose journal is not where it was does nothing: two runners share the walk.

What was interrupted is finished by `finish`, which every process with a worker calls from time to
time. Changing to the same categories walks again, and mends comments that damage left elsewhere.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple

import msgspec
from google.cloud import ndb

from comments import categories, datastore, errors, models, records, tasks, tree

AT_ONCE = 50  # comments in one transaction, and in one event
STEPS = 100  # of one call of `finish`: a worker has more to do
_JOBS = "categories/"


class _Position(NamedTuple):
    """Which change of a thread goes on, and the last comment that it went through."""

    times: int
    after: str


def change(name: records.ThreadName, names: Iterable[str], *, now: datetime) -> int:
    """Give a thread other categories; how many comments moved.

    Raises:
        errors.BadInput: a name is refused, or there are too many.
        errors.NotFound: there is no such thread.
        errors.Overloaded: the store is busy. What was begun is finished later.
    """
    begin(name, categories.canonical_set(names))
    moved = 0
    while (more := step(name, now=now)) is not None:
        moved += more
    return moved


def begin(name: records.ThreadName, names: tuple[str, ...]) -> None:
    """Give a thread its categories and begin the walk anew. Those who post follow at once."""

    def body() -> None:
        thread = datastore.get(models.thread_key(name))
        if thread is None:
            raise errors.NotFound("thread", name.id)
        thread.categories = list(names)
        thread.filed = (thread.filed or 0) + 1
        journal = _journal(name, _Position(thread.filed, ""))
        datastore.apply(datastore.Writes("filing", put=(thread, journal)))

    datastore.transaction(body)


def step(name: records.ThreadName, *, now: datetime) -> int | None:
    """Go through the next comments; how many moved, None if there is nothing left to do."""
    row = datastore.get(_key(name))
    if row is None:
        return None
    seen: str = row.position
    position = msgspec.json.decode(seen, type=_Position)
    ids = _next(name, position.after)

    def body() -> tree.Refiled:
        journal = datastore.get(_key(name))
        if journal is None or journal.position != seen:
            return tree.Refiled((), 0)
        refiled = tree.refile(name, ids, now=now)
        datastore.apply(*refiled.writes, _moved_on(name, position, ids))
        return refiled

    refiled = datastore.transaction(body)
    for event in refiled.events:
        tasks.tell(event)
    return refiled.changed


def finish(*, now: datetime, steps: int = STEPS) -> int:
    """Go on with every change that was begun and not finished, so many steps; how many moved."""
    moved = 0
    for name in _begun():
        while steps > 0 and (more := step(name, now=now)) is not None:
            steps -= 1
            moved += more
    return moved


def _moved_on(name: records.ThreadName, position: _Position, ids: list[str]) -> datastore.Writes:
    if len(ids) < AT_ONCE:
        return datastore.Writes("filing", delete=(_key(name),))
    return datastore.Writes("filing", put=(_journal(name, position._replace(after=ids[-1])),))


def _next(name: records.ThreadName, after: str) -> list[str]:
    where: list[tuple[str, str, object]] = [("thread", "=", models.thread_key_name(name))]
    if after:
        where.append(("__key__", ">", after))
    query = datastore.Query(
        "Comment", where=where, order=("__key__",), limit=AT_ONCE, keys_only=True
    )
    return [message.key.path[-1].name for message in datastore.fetch(query)]


def _begun() -> list[records.ThreadName]:
    where = (("__key__", ">=", _JOBS), ("__key__", "<", _JOBS.replace("/", "0")))
    query = datastore.Query("Job", where=where, order=("__key__",), keys_only=True)
    names = [message.key.path[-1].name.removeprefix(_JOBS) for message in datastore.fetch(query)]
    rows = datastore.get_multi([models.thread_key_of(name) for name in names])
    return [models.thread_record(row).name for row in rows if row is not None]


def _key(name: records.ThreadName) -> ndb.Key:
    return models.job_key(f"{_JOBS}{models.thread_key_name(name)}")


def _journal(name: records.ThreadName, position: _Position) -> models.Job:
    return models.Job(key=_key(name), position=msgspec.json.encode(position).decode())
