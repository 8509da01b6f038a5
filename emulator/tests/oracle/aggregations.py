"""Compute COUNT, SUM and AVG by brute force.

All aggregations in a request use one index that contains their properties. As a result, all
aggregations leave out an entity that lacks one of these properties, a limit without an order
selects the smallest values, and an array counts once for each of its values that matches the query.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from emulator.tests.oracle import metadata, query_results, values
from emulator.tests.oracle.queries import Query
from emulator.tests.oracle.query_results import Paging, State

NUMBERS = (values.rank(0)[0], values.rank(0.0)[0])
INT64 = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Aggregation:
    """One aggregation: count with `up_to`, or sum or avg over the property `name`."""

    operator: str
    name: str = ""
    up_to: int | None = None
    alias: str = ""


def answers(
    query: Query, asked: Sequence[Aggregation], state: State, paging: Paging
) -> list[float | None]:
    """Return the numbers. None represents null, which is the average of no numbers."""
    wide = widened(query, tuple(dict.fromkeys(each.name for each in asked if each.name)))
    found = sorted(
        position for stored in state.values() for position in query_results.positions(wide, stored)
    )
    if query.distinct:
        groups = {query_results.group(wide, each): each for each in reversed(found)}
        found = sorted(groups.values())
    end = None if paging.limit is None else paging.offset + paging.limit
    return [_answer(wide, each, found[paging.offset : end]) for each in asked]


def widened(query: Query, names: tuple[str, ...]) -> Query:
    """Return the query with all names added to its projection."""
    return replace(query, projection=tuple(dict.fromkeys((*query.projection, *names))))


def is_unserved(query: Query, asked: Sequence[Aggregation]) -> bool:
    """Return whether an aggregation is valid but UNIMPLEMENTED."""
    names = tuple(each.name for each in asked if each.name)
    return any(len(branch.settled.get(name, ())) > 1 for branch in query.branches for name in names)


def complaints(query: Query, asked: Sequence[Aggregation]) -> list[str]:
    """Return the reasons why an aggregation is INVALID_ARGUMENT, except those of its query."""
    names = {each.name for each in asked if each.name}
    if names and (query.kind is None or query.kind in metadata.KINDS):
        return ["a sum over a kind without properties"]
    if query.projection and not names <= set(query.projected):
        return ["a sum of a property that is not projected"]
    return []


def _answer(query: Query, asked: Aggregation, met: list[query_results.Position]) -> float | None:
    if asked.operator == "count":
        return len(met) if asked.up_to is None else min(len(met), asked.up_to)
    picked = [query_results.picked(query, position, (asked.name,))[0] for position in met]
    numbers = [values.projected(each) for each in picked if each[0] in NUMBERS]
    if asked.operator == "avg":
        return _sum(numbers, to_double=True) / len(numbers) if numbers else None
    return _sum(numbers, to_double=False)


def _sum(numbers: list[float], *, to_double: bool) -> float:
    if any(isinstance(each, float) for each in numbers):
        return math.fsum(numbers) if all(map(math.isfinite, numbers)) else _wild_sum(numbers)
    total = sum(numbers)
    return float(total) if to_double or total not in INT64 else total


def _wild_sum(numbers: list[float]) -> float:
    total = 0.0
    for each in numbers:
        total += each
    return total
