"""The oracle's transactions: their snapshots, their reads, and the decision about which may commit.

This module owns the two laws of an optimistic commit. The commit must be ABORTED if any of the
transaction's reads would now have a different result. The commit must not be ABORTED if none of the
entities that changed since the snapshot is related to a read. In all other cases, a service may
either commit or abort, because its checks may be coarser. An entity with the query's kind,
partition and ancestor is related to the query in three cases: it matches one of the query's
filters, the query has no filter, or a range of keys is the query's only condition on the values
that it scans.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from emulator.tests.oracle import queries, query_results
from emulator.tests.oracle.queries import Query
from emulator.tests.oracle.query_results import State, Stored
from emulator.tests.oracle.values import KEY, Key

MAX_AGE = 270.0
MAX_IDLE = 60.0


@dataclass(frozen=True, slots=True)
class Read:
    """One read: a function from a state to its result, and a test for related entities."""

    answer: Callable[[State], Any]
    concerns: Callable[[Stored], bool]


def read_of_keys(keys: tuple[Key, ...]) -> Read:
    return Read(
        answer=lambda state: [state[key].version if key in state else 0 for key in keys],
        concerns=lambda stored: stored.key in keys,
    )


def read_of_query(query: Query, paging: query_results.Paging) -> Read:
    """Return a query's read. Reads of whole entities include the entities' versions."""

    def answer(state: State) -> Any:
        found = query_results.page(query, state, paging)
        is_full = not query.projection
        return [
            [(each.position, is_full and each.stored.version) for each in part] for part in found
        ]

    return Read(answer, lambda stored: is_near(query, stored))


def read_of_number(query: Query, answer: Callable[[State], Any]) -> Read:
    """Return the read of an aggregation over a query."""
    return Read(answer, lambda stored: is_near(query, stored))


def is_near(query: Query, stored: Stored) -> bool:
    """Return whether an entity is related to a query, as the module's docstring defines it."""
    if stored.key.place != query.place or query.kind not in (None, stored.key.kind):
        return False
    if not any(all(map(stored.key.is_under, branch.ancestors)) for branch in query.branches):
        return False
    leaves = [each for each in queries.leaves(query.filter) if each.operator != "under"]
    return (
        not leaves
        or _is_walked_over(query, stored)
        or any(
            queries.meets(leaf, found)
            for leaf in leaves
            for found in stored.ranks.get(leaf.name, ())
        )
    )


def _is_walked_over(query: Query, stored: Stored) -> bool:
    """Return whether an entity is in an index that the query scans completely.

    Indexes store the key last, so a range of keys does not limit a scan of projected values.
    """
    is_endless = any(
        {leaf.name for leaf in branch.leaves if leaf.operator != "under"} == {KEY}
        and KEY not in branch.settled
        for branch in query.branches
    )
    return is_endless and bool(query.existing) and query.existing <= stored.ranks.keys()


@dataclass(slots=True)
class Transaction:
    """An open transaction."""

    name: bytes
    is_read_only: bool
    database: str
    began: float
    used: float
    snapshot: State | None = None
    reads: list[Read] = field(default_factory=list)

    def is_expired(self, now: float) -> bool:
        return now - self.began > MAX_AGE or now - self.used > MAX_IDLE

    def must_abort(self, now: State) -> bool:
        """Return whether any read would now have a different result."""
        snapshot = self.snapshot
        return snapshot is not None and any(
            read.answer(snapshot) != read.answer(now) for read in self.reads
        )

    def may_abort(self, now: State) -> bool:
        """Return whether any entity that is related to a read has changed."""
        snapshot = self.snapshot
        if snapshot is None:
            return False
        changed = [
            stored
            for key in snapshot.keys() | now.keys()
            if (old := snapshot.get(key)) is not (new := now.get(key))
            for stored in (old, new)
            if stored is not None
        ]
        return any(read.concerns(stored) for read in self.reads for stored in changed)
