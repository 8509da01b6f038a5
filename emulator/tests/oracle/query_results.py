"""Compute query results by brute force: read every entity and sort all results.

This module owns a query's results, their order, and the part that paging selects. A result's
position is the tuple of its sort values, usually with the key last. A cursor is such a position.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from emulator.tests.oracle import queries, values
from emulator.tests.oracle.queries import Branch, Query
from emulator.tests.oracle.values import KEY, Key, Properties, Rank

Position = tuple[Any, ...]


@dataclass(frozen=True)
class Stored:
    """An entity with the version and the creation time that the service returned."""

    key: Key
    properties: Properties
    version: int
    created: int

    @functools.cached_property
    def ranks(self) -> values.Indexed:
        """The ranks by which filters find the entity."""
        own = frozenset({values.path_rank(self.key)})
        return {**values.indexed(self.properties), KEY: own}


State = Mapping[Key, Stored]


@dataclass(frozen=True, slots=True)
class Result:
    """A result's position, its entity, and the ranks of its projected values."""

    position: Position
    stored: Stored
    projected: tuple[Rank, ...] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """A place between results: before the position if `is_before` is true, otherwise after it."""

    position: Position
    is_before: bool = False

    def is_behind(self, position: Position) -> bool:
        """Return whether the gap comes after a result at `position`."""
        return position < self.position or (position == self.position and not self.is_before)


@dataclass(frozen=True, slots=True)
class Paging:
    start: Gap | None = None
    end: Gap | None = None
    offset: int = 0
    limit: int | None = None


def run(query: Query, state: State) -> list[Result]:
    """Return all of a query's results in order."""
    found = [result for stored in state.values() for result in _results(query, stored)]
    found.sort(key=lambda result: result.position)
    if not query.distinct:
        return found
    first: dict[tuple[Rank, ...], Result] = {}
    for result in found:
        first.setdefault(group(query, result.position), result)
    return list(first.values())


def page(query: Query, state: State, paging: Paging) -> tuple[list[Result], list[Result]]:
    """Return the results that the offset skips, and the next results within the limit."""
    between = [
        result
        for result in run(query, state)
        if not (paging.start and _is_passed(query, paging.start, result.position))
        and (paging.end is None or paging.end.is_behind(result.position))
    ]
    end = None if paging.limit is None else paging.offset + paging.limit
    return between[: paging.offset], between[paging.offset : end]


def _is_passed(query: Query, start: Gap, position: Position) -> bool:
    """Return whether a position precedes a start cursor or is in its group of distinct results."""
    if start.is_behind(position) or not query.distinct:
        return start.is_behind(position)
    return group(query, position) == group(query, start.position)


def group(query: Query, position: Position) -> tuple[Rank, ...]:
    """Return the values by which distinct results differ."""
    return picked(query, position, tuple(queries.grouped_names(query)))


def matches(branch: Branch, stored: Stored) -> bool:
    """Return whether an entity matches a conjunction."""
    found = stored.ranks
    return (
        all(stored.key.is_under(ancestor) for ancestor in branch.ancestors)
        and all(ranks <= found.get(name, frozenset()) for name, ranks in branch.equalities.items())
        and all(
            any(branch.admits(name, each) for each in found.get(name, ())) for name in branch.ranged
        )
    )


def is_candidate(query: Query, stored: Stored) -> bool:
    """Return whether an entity has the query's partition and kind and all required properties."""
    return (
        stored.key.place == query.place
        and query.kind in (None, stored.key.kind)
        and query.existing <= stored.ranks.keys()
    )


def _results(query: Query, stored: Stored) -> Iterator[Result]:
    """Yield an entity's results: one, or with a projection one for each of its index entries."""
    found = positions(query, stored)
    for position in found if query.projected else sorted(found)[:1]:
        yield Result(position, stored, picked(query, position, query.projected))


def positions(query: Query, stored: Stored) -> set[Position]:
    """Return all positions at which a query matches an entity."""
    if not is_candidate(query, stored):
        return set()
    return {
        position
        for branch in query.branches
        if matches(branch, stored)
        for position in itertools.product(*_choices(query, branch, stored))
    }


def _choices(query: Query, branch: Branch, stored: Stored) -> Iterator[list[Any]]:
    """Yield an entity's possible values for each column of a position."""
    for column in query.columns:
        name = column.name
        ranks = stored.ranks[name]
        if name != KEY and name in branch.settled and name not in branch.inequalities:
            ranks = branch.settled[name]
        met = [
            each for each in ranks if branch.admits(name, each) or name not in branch.inequalities
        ]
        found = sorted(values.Down(each) if column.is_descending else each for each in met)
        # An array that must contain two values sorts by the first value; only a projection returns
        # both.
        is_fixed = name in branch.settled and name not in query.projected
        yield found[:1] if is_fixed else found


def picked(query: Query, position: Position, names: tuple[str, ...]) -> tuple[Rank, ...]:
    """Return a position's values for some properties."""
    found = {
        column.name: each.rank if column.is_descending else each
        for column, each in zip(query.columns, position, strict=True)
    }
    return tuple(found[name] for name in names)
