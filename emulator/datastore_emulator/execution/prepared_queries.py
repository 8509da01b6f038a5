"""Prepared queries: a cache of checked and planned queries.

Owns the cache, which is valid for one generation of indexes. Clients send the same query
repeatedly, and preparing it takes longer than answering it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import keys
from datastore_emulator.execution import index_scan, lazy_indexes, metadata_kinds
from datastore_emulator.queries import parser, planner, query_cursors, query_plan
from datastore_emulator.storage import read_sets, row_reader

_MOST_KEPT = 256  # Maximum number of queries for one generation of indexes.
_LONGEST_KEPT = 4096  # Maximum size of a cached query message, in bytes.


# The partition, and the serialized query message.
_Asked = tuple[keys.Partition, bytes]


class Prepared(NamedTuple):
    """A checked and planned query, valid for one generation of indexes."""

    query: parser.Query
    plan: query_plan.QueryPlan
    header: bytes
    paging: index_scan.Paging


def plan_only(
    snapshot: row_reader.RowReader, message: protobufs.Query, partition: keys.Partition
) -> query_plan.QueryPlan:
    """Return the plan of a query without running it."""
    query = parser.parse(message, partition)
    snapshot, query, _ = metadata_kinds.source_of(snapshot, query, None)
    paging(message, query_cursors.header(message, partition.encoded))
    return _plan(snapshot, query)


def prepare(
    snapshot: row_reader.RowReader,
    message: protobufs.Query,
    partition: keys.Partition,
    reads: read_sets.ReadSet | None,
) -> tuple[row_reader.RowReader, read_sets.ReadSet | None, Prepared]:
    """Check and plan a query, or return the cached result for an equal query.

    Raises:
        lazy_indexes.NotMade: The query needs built-in indexes that are not complete.
    """
    known = snapshot.definitions.plans
    asked = partition, message.SerializeToString(deterministic=True)
    prepared: Prepared | None = known.get(asked)
    if prepared is not None:
        return snapshot, reads, prepared
    parsed = parser.parse(message, partition)
    source, query, reads = metadata_kinds.source_of(snapshot, parsed, reads)
    plan = _plan(source, query)
    lazy_indexes.check(plan, snapshot.definitions)
    header = query_cursors.header(message, partition.encoded)
    prepared = Prepared(plan.query, plan, header, paging(message, header))
    if source is not snapshot:
        return source, reads, prepared
    _keep(known, asked, prepared)
    return snapshot, reads, prepared


def _keep(known: dict[_Asked, Any], asked: _Asked, prepared: object) -> None:
    if len(asked[1]) <= _LONGEST_KEPT:
        if len(known) >= _MOST_KEPT:
            known.clear()
        known[asked] = prepared


def _plan(snapshot: row_reader.RowReader, query: parser.Query) -> query_plan.QueryPlan:
    return planner.plan(query, snapshot.definitions.by_kind.get(query.kind or "", ()))


def paging(query: protobufs.Query, header: bytes) -> index_scan.Paging:
    """Return the part of the results that a query message requests."""
    if query.offset < 0:
        raise errors.InvalidArgument("The offset must not be negative.")
    limit = query.limit.value if query.HasField("limit") else None
    if limit is not None and limit < 0:
        raise errors.InvalidArgument("The limit must not be negative.")
    return index_scan.Paging(
        start=query_cursors.decode(query.start_cursor or header, header),
        end=query_cursors.decode(query.end_cursor, header) if query.end_cursor else None,
        offset=query.offset,
        limit=limit,
    )
