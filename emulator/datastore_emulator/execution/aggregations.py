"""Aggregations: COUNT, SUM and AVG over the results of a query.

Owns the validation of RunAggregationQuery and the computation of its results. All aggregations of a
request share one scan of index entries; they read no entities. Therefore, as in Google's service:

* Only index entries count. A property that is summed or averaged is a column of the scanned index,
  after the columns of the query's order. An entity in which a summed or averaged property is
  missing or unindexed is left out of every aggregation of the request. A limit without an order
  selects the entries with the smallest values.
* An index contains an array once for each distinct value. Each matching entry adds one to a COUNT
  and its value to a SUM. At one position of the order, a scan finds each entity only once, so an
  array that matches several equality filters counts once.
* An index does not distinguish timestamps from integers, so timestamps are summed as integer
  microseconds.

Sums of integers are exact until they exceed 64 bits. Sums with doubles are rounded once, at the
end, so they do not depend on the order of the entries.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import entities, keys, values
from datastore_emulator.execution import index_scan, lazy_indexes, metadata_kinds, prepared_queries
from datastore_emulator.queries import parser, planner, query_cursors, query_plan
from datastore_emulator.storage import read_sets, row_reader

MAX_AGGREGATIONS = 5
_NO_MORE_RESULTS = 3
_INT64 = range(-(1 << 63), 1 << 63)
_UNIT_BITS = 1074  # 2^-1074 is the smallest double


class Aggregation(NamedTuple):
    """One aggregation: `count` up to `most`, or `sum` or `avg` of the property `name`."""

    alias: str
    operator: str
    name: str = ""
    most: int | None = None


class AggregationAnswer(NamedTuple):
    """The result for each alias (None for null), and the cost of the aggregation."""

    numbers: dict[str, int | float | None]
    version: int
    plan: query_plan.QueryPlan
    entries: int

    def content(self) -> bytes:
        """Return a serialized AggregationResultBatch."""
        batch = protobufs.AggregationResultBatch(more_results=_NO_MORE_RESULTS)
        properties = batch.aggregation_results.add().aggregate_properties
        for alias, number in self.numbers.items():
            properties[alias].CopyFrom(values.from_number(number))
        batch.read_time.FromMicroseconds(self.version)
        return batch.SerializeToString()


class Numbers:
    """The exact sum of a property's numbers, regardless of their order.

    Doubles are summed as integer multiples of the smallest double.
    """

    def __init__(self) -> None:
        self._count = 0
        self._integer = 0
        self._units = 0
        self._has_doubles = False
        self._endless: float | None = None

    def add(self, number: float) -> None:
        self._count += 1
        if isinstance(number, int):
            self._integer += number
            return
        self._has_doubles = True
        if math.isfinite(number):
            above, below = number.as_integer_ratio()
            self._units += above << (_UNIT_BITS + 1 - below.bit_length())
        else:
            self._endless = number + (self._endless or 0.0)

    def sum(self) -> int | float:
        """Return the sum: an int if all numbers are integers and the sum fits in 64 bits."""
        if not self._has_doubles and self._integer in _INT64:
            return self._integer
        return self._quotient(1)

    def average(self) -> float | None:
        """Return the mean, or None if there are no numbers."""
        return self._quotient(self._count) if self._count else None

    def _quotient(self, divisor: int) -> float:
        if self._endless is not None:
            return self._endless
        total = self._units + (self._integer << _UNIT_BITS)
        try:
            return total / (divisor << _UNIT_BITS)
        except OverflowError:
            return math.inf if total > 0 else -math.inf


def parse(query: protobufs.AggregationQuery) -> tuple[Aggregation, ...]:
    """Check and return the aggregations of a query.

    Raises:
        errors.InvalidArgument: The query is invalid, regardless of the stored data.
    """
    if not query.HasField("nested_query"):
        raise errors.InvalidArgument("AggregationQuery.nested_query is not set.")
    if not 1 <= len(query.aggregations) <= MAX_AGGREGATIONS:
        raise errors.InvalidArgument(
            "The maximum number of aggregations allowed in an aggregation query is "
            f"{MAX_AGGREGATIONS}. Received: {len(query.aggregations)}"
        )
    by_alias: dict[str, Aggregation] = {}
    unnamed = 0
    for given in query.aggregations:
        alias = given.alias
        if not alias:
            unnamed += 1
            alias = f"property_{unnamed}"
        entities.check_property_name(alias)
        if alias in by_alias:
            raise errors.InvalidArgument(f"Aggregation aliases contain duplicate alias: {alias}.")
        by_alias[alias] = _parse_one(given, alias)
    return tuple(by_alias.values())


def _parse_one(given: protobufs.Aggregation, alias: str) -> Aggregation:
    operator = given.WhichOneof("operator")
    if operator is None:
        raise errors.InvalidArgument("An aggregation has no operator.")
    if operator == "count":
        most = given.count.up_to.value if given.count.HasField("up_to") else None
        if most is not None and most < 0:
            raise errors.InvalidArgument("up_to must not be negative.")
        return Aggregation(alias, operator, most=most)
    name = (given.sum if operator == "sum" else given.avg).property.name
    if not name:
        raise errors.InvalidArgument("An aggregation's property name is the empty string.")
    if name == parser.KEY:
        raise errors.InvalidArgument(f"Aggregations are not supported for the property: {name}")
    return Aggregation(alias, operator, name)


def run(
    snapshot: row_reader.RowReader,
    query: protobufs.AggregationQuery,
    partition: keys.Partition,
    reads: read_sets.ReadSet | None,
) -> AggregationAnswer:
    asked = parse(query)
    names = _names(asked)
    nested = query.nested_query
    parsed = parser.parse(nested, partition)
    snapshot, parsed, reads = metadata_kinds.source_of(snapshot, parsed, reads)
    plan = _plan(snapshot, nested, parsed, names)
    lazy_indexes.check(plan, snapshot.definitions)
    paging = prepared_queries.paging(nested, query_cursors.header(nested, partition.encoded))
    walk = index_scan.IndexScan(snapshot, plan, paging, is_full=False, is_every_entry=True)
    met, numbers = _gather(walk, _Columns(plan, names), reads, _result_limit(paging, asked))
    totals = {aggregation.alias: _number(aggregation, met, numbers) for aggregation in asked}
    return AggregationAnswer(totals, snapshot.version, plan, walk.entries)


def explain(
    snapshot: row_reader.RowReader, query: protobufs.AggregationQuery, partition: keys.Partition
) -> query_plan.QueryPlan:
    """Return the plan of an aggregation query without running it."""
    names = _names(parse(query))
    nested = query.nested_query
    snapshot, parsed, _ = metadata_kinds.source_of(snapshot, parser.parse(nested, partition), None)
    prepared_queries.paging(nested, query_cursors.header(nested, partition.encoded))
    return _plan(snapshot, nested, parsed, names)


def _names(asked: tuple[Aggregation, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(aggregation.name for aggregation in asked if aggregation.name))


def _plan(
    snapshot: row_reader.RowReader,
    nested: protobufs.Query,
    parsed: parser.Query,
    names: tuple[str, ...],
) -> query_plan.QueryPlan:
    """Plan a scan that reads the values of all named properties."""
    _check_names(parsed, names)
    ordered = {order.name for order in parsed.orders} | set(parsed.projection)
    missing = [name for name in names if name not in ordered]
    if missing and (nested.start_cursor or nested.end_cursor):
        # The cursor came from a scan of a different index.
        raise errors.Unimplemented(
            f"A cursor with an aggregation over {missing[0]} that is not in the query's order"
        )
    projection = tuple(dict.fromkeys((*parsed.projection, *names)))
    wanted = parsed._replace(projection=projection)
    return planner.plan(wanted, snapshot.definitions.by_kind.get(parsed.kind or "", ()))


def _check_names(parsed: parser.Query, names: tuple[str, ...]) -> None:
    if names and parsed.kind is None:
        raise errors.InvalidArgument("kind is required for the aggregation of a property")
    if names and metadata_kinds.is_kind(parsed.kind):
        raise errors.InvalidArgument(f"{parsed.kind} has no indexed properties.")
    for name in names:
        if parsed.is_keys_only or (parsed.projection and name not in parsed.projection):
            raise errors.InvalidArgument(
                f"The aggregation over {name} requires {name} in the query's projection."
            )
        for branch in parsed.branches:
            if [other for other, _ in branch.equalities].count(name) > 1:
                raise errors.Unimplemented(f"An aggregation over {name} with two equality filters")


def _result_limit(paging: index_scan.Paging, asked: tuple[Aggregation, ...]) -> int | None:
    """Return how many results, including skipped ones, can affect the answer; None means all."""
    counts = [aggregation.most for aggregation in asked]
    known = [count for count in counts if count is not None]
    limits = [max(known)] if len(known) == len(counts) else []
    if paging.limit is not None:
        limits.append(paging.limit)
    return paging.offset + min(limits) if limits else None


class _Columns:
    """Reads the numbers of some properties from index positions."""

    def __init__(self, plan: query_plan.QueryPlan, names: tuple[str, ...]) -> None:
        self._plan = plan
        self.names = names

    def numbers(self, position: bytes) -> list[tuple[str, int | float]]:
        """Return the numbers in a position, each with the name of its property."""
        parts = zip(self._plan.query.projection, self._plan.projected_values(position), strict=True)
        numbers = ((name, values.number(part)) for name, part in parts if name in self.names)
        return [(name, number) for name, number in numbers if number is not None]


def _gather(
    walk: index_scan.IndexScan,
    columns: _Columns,
    reads: read_sets.ReadSet | None,
    wanted: int | None,
) -> tuple[int, dict[str, Numbers]]:
    """Count the results after the offset and collect their numbers."""
    offset = walk.paging.offset
    numbers = {name: Numbers() for name in columns.names}
    if wanted == offset:
        met = offset
    elif not numbers and reads is None and walk.is_one_scan:
        met = walk.count(wanted)
    else:
        met = _walk(walk, columns, numbers, reads, wanted)
    return max(0, met - offset), numbers


def _walk(
    walk: index_scan.IndexScan,
    columns: _Columns,
    numbers: dict[str, Numbers],
    reads: read_sets.ReadSet | None,
    wanted: int | None,
) -> int:
    """Collect the numbers of results after the offset; return the total number of results."""
    met = 0
    last = None
    for hit in walk:
        met += 1
        if numbers and met > walk.paging.offset:
            for name, number in columns.numbers(hit.position):
                numbers[name].add(number)
        if reads is not None:
            walk.note_entry(reads, hit)
        if met == wanted:
            last = hit.position
            break
    if reads is not None:
        walk.note(reads, last)
    return met


def _number(asked: Aggregation, met: int, numbers: dict[str, Numbers]) -> int | float | None:
    if asked.operator == "count":
        return met if asked.most is None else min(met, asked.most)
    gathered = numbers[asked.name]
    return gathered.sum() if asked.operator == "sum" else gathered.average()
