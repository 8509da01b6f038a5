"""Explain: the plan of a query and the statistics of running it.

Owns the ExplainMetrics of RunQuery and RunAggregationQuery. The plan names the scanned indexes, one
for each scan of a merge join. The statistics describe the actual run, priced by `cost_meter`.

The responses match Google's service as far as the tests of its clients show. Without `analyze`, the
response has a plan and no batch; with `analyze`, the metrics come with the last batch of a query.
Therefore this module sums up the work of a query that takes several requests: it matches the end
cursor of one request with the start cursor of the next. The sums are kept in one process, and their
number is bounded. The work of requests that are no longer in memory is missing from a sum. If a
different process continues a query, the metrics cover only the requests to that process.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from datastore_emulator import protobufs
from datastore_emulator.encoding import indexes
from datastore_emulator.execution import cost_meter
from datastore_emulator.queries import query_plan

_MAX_UNFINISHED = 1000  # Maximum number of remembered queries that have batches left
_KEY = "__name__"


class Work(NamedTuple):
    """The work done by one or several requests of a query."""

    results: int
    documents: int
    entries: int
    seconds: float
    bill: cost_meter.Bill

    def with_more(self, more: Work) -> Work:
        """Return the combined work of two requests of the same query."""
        return Work(
            self.results + more.results,
            self.documents + more.documents,
            self.entries + more.entries,
            self.seconds + more.seconds,
            self.bill.with_more(more.bill),
        )


class Unfinished:
    """The work of analyzed queries whose last batch is still to be requested."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget all queries; called in a forked child process."""
        self._lock = threading.Lock()
        self._found: dict[tuple[str, bytes], Work] = {}

    def total(self, project: str, start: bytes, work: Work) -> Work:
        """Return a query's work: that of this request, which began at `start`, and before."""
        with self._lock:
            before = self._found.pop((project, start), None)
        return work if before is None else before.with_more(work)

    def keep(self, project: str, end: bytes, work: Work) -> None:
        """Remember the work of a query that will continue at a cursor."""
        with self._lock:
            self._found[project, end] = work
            if len(self._found) > _MAX_UNFINISHED:
                del self._found[next(iter(self._found))]


def metrics(plan: query_plan.QueryPlan, work: Work | None = None) -> bytes:
    """Serialize ExplainMetrics with the plan, and with the work if the query ran."""
    message = protobufs.ExplainMetrics()
    for description in dict.fromkeys(_describe(scan.index) for scan in _scans(plan)):
        scope, properties = description
        message.plan_summary.indexes_used.add().update(
            {"query_scope": scope, "properties": properties}
        )
    message.plan_summary.SetInParent()
    if work is not None:
        _add_stats(message.execution_stats, work)
    return message.SerializeToString()


def _scans(plan: query_plan.QueryPlan) -> list[query_plan.Scan]:
    return [scan for branch in plan.branches for scan in branch.scans]


def _describe(index: indexes.Index | None) -> tuple[str, str]:
    """Return the scope and properties of an index in the notation of Google's service."""
    if index is None:
        return "Collection group", f"({_KEY} ASC)"
    columns = (*index.properties, (_KEY, index.is_key_descending))
    listed = ", ".join(f"{name} {'DESC' if down else 'ASC'}" for name, down in columns)
    return "Includes ancestors" if index.has_ancestor else "Collection group", f"({listed})"


def _add_stats(stats: protobufs.ExecutionStats, work: Work) -> None:
    stats.results_returned = work.results
    stats.execution_duration.FromNanoseconds(max(1000, round(work.seconds * 1_000_000_000)))
    stats.read_operations = work.bill.reads
    stats.debug_stats.update(
        {
            "documents_scanned": str(work.documents),
            "index_entries_scanned": str(work.entries),
            "billing_details": {
                "documents_billable": str(work.bill.documents),
                "index_entries_billable": str(work.bill.index_entries),
                "small_ops": str(work.bill.small),
                "min_query_cost": str(work.bill.minimum),
            },
        }
    )
