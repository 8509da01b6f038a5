"""Query shapes: plan queries that differ only in the values of equalities once. Pure.

Owns what such queries have in common, their *shape*, and how the plan of one is converted to the
plan of another. Clients ask the same question with ever new values (the comments of this thread, of
that author), and checking and planning a query takes longer than answering it.

Invariants:

1. The plan of a variant is the one that the planner would make. So a query has a shape only if all
   its conditions are equalities on different properties, with values of types that are always
   valid: then neither the checks nor the choice of indexes depend on a value. Everything else in a
   query, its order, limit and cursors, is part of its shape.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from emulator import protobufs
from emulator.encoding import keys, values
from emulator.queries import filters, query_plan

_AND = 1
_TYPES = (
    "null_value",
    "boolean_value",
    "integer_value",
    "double_value",
    "timestamp_value",
    "string_value",
    "blob_value",
)


class Variant(NamedTuple):
    """The shape of a query, and the encoded values of its equalities by property."""

    shape: bytes
    equals: dict[str, bytes]


def read(query: protobufs.Query, partition: keys.Partition) -> Variant | None:
    """Split a query message into shape and values; None if it has no shape."""
    if not query.kind or not query.HasField("filter"):
        return None
    blank = protobufs.Query()
    blank.CopyFrom(query)
    equals: dict[str, bytes] = {}
    for condition in _conditions(blank.filter):
        given = condition.property_filter
        name, value = given.property.name, given.value
        if (
            condition.WhichOneof("filter_type") != "property_filter"
            or given.op != filters.EQUAL
            or not name
            or name == filters.KEY
            or name in equals
            or value.exclude_from_indexes
            or value.WhichOneof("value_type") not in _TYPES
        ):
            return None
        equals[name] = values.encode(value, partition)
        given.ClearField("value")
    return Variant(blank.SerializeToString(deterministic=True), equals) if equals else None


def _conditions(given: protobufs.Filter) -> Iterable[protobufs.Filter]:
    if given.WhichOneof("filter_type") != "composite_filter":
        return [given]
    return given.composite_filter.filters if given.composite_filter.op == _AND else []


def like(plan: query_plan.Plan, equals: dict[str, bytes]) -> query_plan.Plan:
    """Return the plan for a query of the same shape with other values."""
    asked, walked = plan.query.branches[0], plan.branches[0]
    met = asked._replace(equalities=tuple([(name, equals[name]) for name, _ in asked.equalities]))
    scans = tuple([_scan(each, walked, equals) for each in walked.scans])
    constants = walked.constants and tuple(
        [(place, _value(plan.columns[place], equals)) for place, _ in walked.constants]
    )
    return plan._replace(
        query=plan.query._replace(branches=(met,)),
        branches=(walked._replace(scans=scans, constants=constants),),
    )


def _scan(
    scan: query_plan.Scan, branch: query_plan.Branch, equals: dict[str, bytes]
) -> query_plan.Scan:
    columns = () if scan.index is None else scan.index.properties
    fixed = columns[: len(columns) - len(branch.directions)]
    return query_plan.Scan(scan.index, b"".join(_value(each, equals) for each in fixed))


def _value(column: tuple[str, bool], equals: dict[str, bytes]) -> bytes:
    name, is_descending = column
    return values.complement(equals[name]) if is_descending else equals[name]
