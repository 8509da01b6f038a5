"""Rows of older releases, brought to what this one stores: a bounded part at a time.

Owns the walks, and the Job rows that say how far each came, so that an interrupted one goes on and
a finished one is not repeated. Upkeep calls `go_on` soon after the start of each process and every
five minutes; `repair --fix` runs every walk to its end.

Until a walk has come to a row, that row is read as the older release wrote it.
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from google.cloud import ndb

from comments.domain import records
from comments.events import backlog
from comments.store import ownership, per_process, reads, transactions
from comments.store.models import event_rows
from comments.tree.threads import details

STEPS = 20  # of one call of `go_on`: a worker has more to do
AT_ONCE = 100  # rows that a step reads
_DONE = "done"
_FINISHED = per_process.PerProcess(set[str])  # walks that this process need not look at


class _Walk(NamedTuple):
    """A walk through a kind by key: what is done to the rows of a step, each as its message."""

    job: str
    kind: str
    mend: Callable[[list[Any]], None]


def go_on(*, steps: int | None = STEPS) -> int:
    """Go on with every walk, so many steps together, None for all; how many rows were looked at.

    Raises:
        errors.Overloaded: the store is busy; the rest is done the next time.
    """
    done = _FINISHED.get()
    looked_at = 0
    for walk in _WALKS:
        while walk.job not in done and (steps is None or steps > 0):
            found = _step(walk)
            looked_at += found
            steps = None if steps is None else steps - 1
            if not found:
                done.add(walk.job)
    return looked_at


def _step(walk: _Walk) -> int:
    """Mend the next rows of a walk; how many there were, 0 at its end."""
    key = event_rows.job_key(walk.job)
    row = reads.get(key)
    seen = "" if row is None else row.position
    if seen == _DONE:
        return 0
    where = (("__key__", ">", seen),) if seen else ()
    query = reads.Query(walk.kind, where=where, order=("__key__",), limit=AT_ONCE)
    found = list(reads.fetch(query))
    walk.mend(found)
    position = found[-1].key.path[-1].name if found else _DONE
    transactions.transaction(functools.partial(_move_on, key, seen, position))
    return len(found)


def _move_on(key: ndb.Key, seen: str, position: str) -> None:
    """Note how far a walk came, unless another process has noted it meanwhile."""
    row = reads.get(key)
    if ("" if row is None else row.position) == seen:
        job = event_rows.Job(key=key, position=position)
        transactions.apply(ownership.Writes("upgrades", put=(job,)))


def _adopt(found: list[Any]) -> None:
    """Find out which comments name threads that do not say so; see `naming`."""
    for message in found:
        if message.properties["named_by"].WhichOneof("value_type") == "string_value":
            continue
        site, thread = (message.properties[each].string_value for each in ("site", "thread"))
        name = records.ThreadName(site, thread)
        transactions.transaction(functools.partial(_adopt_one, name))
        backlog.erased(name)


def _adopt_one(name: records.ThreadName) -> None:
    transactions.apply(details.adopt(name))


_WALKS = (_Walk("upgrades/threads", "Thread", _adopt),)
