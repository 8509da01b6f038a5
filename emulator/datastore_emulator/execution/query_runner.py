"""Running RunQuery and RunAggregationQuery: read, meter and explain.

Owns the sequence of a run, which both methods share: plan the query, stop there if the client
requested only the plan, run the query in one snapshot, bill it, and add the metrics if requested.
Other modules compute the results, or return cached ones (`repeated_queries`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from datastore_emulator import protobufs
from datastore_emulator.encoding import keys, property_masks
from datastore_emulator.execution import (
    aggregations,
    cost_meter,
    explain,
    prepared_queries,
    query_batches,
    repeated_queries,
)
from datastore_emulator.queries import gql_parser, query_plan
from datastore_emulator.storage import read_sets, row_reader

# The source of a read: a snapshot, a read set that records the read, and the id of a transaction
# that the read began.
RunningQuery = tuple[row_reader.RowReader, read_sets.ReadSet | None, bytes]
Reading = Callable[
    ["protobufs.ReadRequest", keys.Partition], contextlib.AbstractContextManager[RunningQuery]
]


class QueryRunner:
    """Runs queries for one engine.

    Args:
        reading: Opens the source that a request's read options name.
        repeated: The answers to earlier queries.
        meter: Receives the cost of each run.
        stopwatch: Returns seconds on a monotonic clock.
    """

    def __init__(
        self,
        reading: Reading,
        repeated: repeated_queries.RepeatedQueries,
        meter: cost_meter.Meter,
        stopwatch: Callable[[], float],
    ) -> None:
        self._reading = reading
        self._repeated = repeated
        self._meter = meter
        self._stopwatch = stopwatch
        self._unfinished = explain.Unfinished()

    def forget(self) -> None:
        """Reset the state in a forked child process."""
        self._unfinished.forget()
        self._repeated.forget()

    def query(self, request: protobufs.RunQueryRequest, partition: keys.Partition) -> bytes:
        """Answer RunQuery."""
        asked = repeated_queries.identity(request)
        known = self._repeated.find(asked)
        if known is not None:
            self._meter.count_query(known.bill, known.entries, known.keys_of)
            return known.response
        request, parsed = _parsed_query(request)
        mask = property_masks.of(request)
        started = self._stopwatch()
        with self._reading(request, partition) as (snapshot, reads, began):
            if _is_plan_only(request):
                plan = prepared_queries.plan_only(snapshot, request.query, partition)
                return self._plan_response(plan, parsed, began)
            answer = query_batches.run_query(snapshot, request, partition, reads, mask)
            change = snapshot.last_change
        bill = cost_meter.bill_query(
            answer.plan.query, met=answer.result_count, entries=answer.entries
        )
        self._meter.count_query(bill, answer.entries, answer.keys)
        if not request.HasField("explain_options"):
            response = _response(answer.content, parsed, began)
            if asked:
                again = repeated_queries.KnownAnswer(response, bill, answer.entries, answer.keys)
                self._repeated.keep(asked, change, again)
            return response
        seconds = self._stopwatch() - started
        work = explain.Work(len(answer.positions), answer.documents, answer.entries, seconds, bill)
        return _response(answer.content, parsed, began, self._metrics(request, answer, work))

    def aggregation_query(
        self, request: protobufs.RunAggregationQueryRequest, partition: keys.Partition
    ) -> bytes:
        """Answer RunAggregationQuery."""
        query, parsed = _parsed_aggregation_query(request)
        started = self._stopwatch()
        with self._reading(request, partition) as (snapshot, reads, began):
            if _is_plan_only(request):
                return self._plan_response(
                    aggregations.explain(snapshot, query, partition), parsed, began
                )
            answer = aggregations.run(snapshot, query, partition, reads)
        bill = cost_meter.bill_aggregation(answer.entries)
        self._meter.count_query(bill, answer.entries)
        if not request.HasField("explain_options"):
            return _response(answer.content(), parsed, began)
        seconds = self._stopwatch() - started
        work = explain.Work(1, 0, answer.entries, seconds, bill)
        return _response(answer.content(), parsed, began, explain.metrics(answer.plan, work))

    def _plan_response(self, plan: query_plan.QueryPlan, parsed: bytes, began: bytes) -> bytes:
        self._meter.count(reads=cost_meter.PLAN_READS)
        return _response(b"", parsed, began, explain.metrics(plan))

    def _metrics(
        self,
        request: protobufs.RunQueryRequest,
        answer: query_batches.QueryAnswer,
        work: explain.Work,
    ) -> bytes:
        """Return an analyzed query's metrics if this batch is its last, or else empty bytes."""
        total = self._unfinished.total(request.project_id, request.query.start_cursor, work)
        if answer.is_last:
            return explain.metrics(answer.plan, total)
        self._unfinished.keep(request.project_id, answer.end, total)
        return b""


def _is_plan_only(request: protobufs.ExplainedRequest) -> bool:
    return request.HasField("explain_options") and not request.explain_options.analyze


def _parsed_query(
    request: protobufs.RunQueryRequest,
) -> tuple[protobufs.RunQueryRequest, bytes]:
    """Return the request with its GQL parsed, and the response's field for the parsed query."""
    if request.WhichOneof("query_type") != "gql_query":
        return request, b""
    query = gql_parser.query(request.gql_query, request.partition_id)
    parsed = protobufs.RunQueryRequest()
    parsed.CopyFrom(request)
    parsed.query.CopyFrom(query)
    return parsed, _parsed_field(query)


def _parsed_aggregation_query(
    request: protobufs.RunAggregationQueryRequest,
) -> tuple[protobufs.AggregationQuery, bytes]:
    """Return the request's query with any GQL parsed, and the response's field for parsed GQL."""
    if request.WhichOneof("query_type") != "gql_query":
        return request.aggregation_query, b""
    query = gql_parser.aggregation_query(request.gql_query, request.partition_id)
    return query, _parsed_field(query)


def _parsed_field(query: protobufs.Query | protobufs.AggregationQuery) -> bytes:
    return protobufs.field(2, query.SerializeToString())


def _response(batch: bytes, parsed: bytes, began: bytes, metrics: bytes = b"") -> bytes:
    """Serialize the response to a query; both kinds of response use the same field numbers."""
    fields = ((1, batch), (5, began), (9, metrics))
    return parsed + b"".join(
        protobufs.field(number, content) for number, content in fields if content
    )
