"""Explain: plans, and the metrics of actual runs, as clients of Google's service expect them."""

from pathlib import Path
from typing import Any

import pytest
from google.cloud import datastore
from google.cloud.datastore import query_profile

from datastore_emulator import inprocess, protobufs, testing
from datastore_emulator.execution import cost_meter, explain
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused

INDEXES = """
indexes:
- kind: T
  ancestor: yes
  properties: [{name: a}]
- kind: T
  properties: [{name: a, direction: desc}, {name: b}]
- kind: T
  properties: [{name: a}, {name: b}]
- kind: T
  properties: [{name: __key__, direction: desc}]
"""
ANCESTOR = ("Book", "GoT")
GROUP, BELOW = "Collection group", "Includes ancestors"
SUM = {"sum": {"property": {"name": "a"}}}


@pytest.fixture
def index_yaml(tmp_path: Path) -> Path:
    path = tmp_path / "index.yaml"
    path.write_text(INDEXES)
    return path


@pytest.fixture
def eight(service: service_calls.Service) -> None:
    """Put eight entities below one ancestor."""
    service.commit(
        *(
            {"upsert": service.entity(service.key(*ANCESTOR, "T", n), a=n, b=n % 2, c=n % 3)}
            for n in range(1, 9)
        )
    )


def analyze(
    service: service_calls.Service, query: Any, *, is_run: bool = True, **options: Any
) -> Any:
    return service.call(
        "RunQuery", query=query, explain_options={"analyze": is_run}, read_options=options
    )


def analyze_sum(
    service: service_calls.Service,
    query: Any,
    *asked: dict[str, dict[Any, Any]],
    is_run: bool = True,
    **options: bytes,
) -> Any:
    return service.call(
        "RunAggregationQuery",
        aggregation_query={"nested_query": query, "aggregations": asked or [SUM]},
        explain_options={"analyze": is_run},
        read_options=options,
    )


def used(response: Any) -> list[tuple[str, str]]:
    """Return the indexes of a plan as (scope, properties)."""
    found = response.explain_metrics.plan_summary.indexes_used
    assert all(set(each) == {"query_scope", "properties"} for each in found)
    return [(each["query_scope"], each["properties"]) for each in found]


def numbers(response: Any) -> dict[str, int]:
    """Return an analyzed query's metrics by name; the billing details are flattened."""
    stats = response.explain_metrics.execution_stats
    duration = stats.execution_duration
    assert duration.seconds > 0 or duration.nanos > 0
    flat = dict(stats.debug_stats)
    flat |= dict(flat.pop("billing_details"))
    return {
        "results": stats.results_returned,
        "reads": stats.read_operations,
        **{name: int(number) for name, number in flat.items()},
    }


def expected(**given: int) -> dict[str, int]:
    names = (
        "results", "reads", "documents_scanned", "index_entries_scanned",
        "documents_billable", "index_entries_billable", "small_ops", "min_query_cost",
    )  # fmt: skip
    return dict.fromkeys(names, 0) | given


def test_without_options_there_are_no_metrics(service: service_calls.Service, eight: None) -> None:
    assert not service.call("RunQuery", query=service.query()).HasField("explain_metrics")
    response = service.call(
        "RunAggregationQuery",
        aggregation_query={"nested_query": service.query(), "aggregations": [SUM]},
    )
    assert not response.HasField("explain_metrics")


def test_a_plan_alone_has_no_batch_and_no_stats(
    service: service_calls.Service, eight: None, engine: inprocess.Engine
) -> None:
    with testing.meter(engine) as cost:
        response = analyze(service, service.query(), is_run=False)
    assert used(response) == [(GROUP, "(__name__ ASC)")]
    assert not response.HasField("batch")
    assert not response.explain_metrics.HasField("execution_stats")
    assert (cost.reads, cost.index_entries, cost.keys_read) == (1, 0, set())
    response = analyze_sum(service, service.query(), is_run=False)
    assert used(response) == [(GROUP, "(a ASC, __name__ ASC)")]
    assert not response.HasField("batch")
    assert not response.explain_metrics.HasField("execution_stats")


@pytest.mark.parametrize(
    ("filters", "fields", "indexes"),
    [
        ([], {}, [(GROUP, "(__name__ ASC)")]),
        ([], {"keys_only": True}, [(GROUP, "(__name__ ASC)")]),
        ([], {"order": ["-a"]}, [(GROUP, "(a DESC, __name__ ASC)")]),
        ([], {"order": ["-a", "b"]}, [(GROUP, "(a DESC, b ASC, __name__ ASC)")]),
        ([], {"order": ["-__key__"]}, [(GROUP, "(__name__ DESC)")]),
        ([("a", ">", 3)], {}, [(GROUP, "(a ASC, __name__ ASC)")]),
        ([("a", "=", 3)], {"projection": ["b"]}, [(GROUP, "(a ASC, b ASC, __name__ ASC)")]),
        ([("a", "in", [3, 4])], {}, [(GROUP, "(a ASC, __name__ ASC)")]),
        (
            [("c", "=", 1), ("b", "=", 1)],
            {},
            [(GROUP, "(b ASC, __name__ ASC)"), (GROUP, "(c ASC, __name__ ASC)")],
        ),
        (["below"], {}, [(GROUP, "(__name__ ASC)")]),
        (["below", ("a", ">", 3)], {}, [(BELOW, "(a ASC, __name__ ASC)")]),
    ],
    ids=str,
)
def test_a_plan_names_each_scanned_index(
    near: service_calls.Service,
    filters: list[Any],
    fields: dict[str, Any],
    indexes: list[tuple[str, str]],
) -> None:
    ancestor = ("__key__", "under", near.key(*ANCESTOR))
    query = near.query("T", *(ancestor if each == "below" else each for each in filters), **fields)
    assert sorted(used(analyze(near, query, is_run=False))) == indexes
    assert sorted(used(analyze(near, query))) == indexes


def test_a_kindless_query_is_explained(near: service_calls.Service) -> None:
    assert used(analyze(near, near.query(None))) == [(GROUP, "(__name__ ASC)")]


def test_a_query_that_no_index_serves_is_refused_when_it_is_explained(
    service: service_calls.Service,
) -> None:
    query = service.query("T", ("c", "=", 1), order=["b"])
    for is_run in (False, True):
        with assert_refused("FAILED_PRECONDITION", "- name: c\n  - name: b"):
            analyze(service, query, is_run=is_run)
        with assert_refused("FAILED_PRECONDITION", "- name: c\n  - name: a"):
            analyze_sum(service, service.query("T", ("c", "=", 1)), is_run=is_run)
    with assert_refused("INVALID_ARGUMENT"):
        analyze(service, service.query(limit=-1), is_run=False)
    with assert_refused("INVALID_ARGUMENT"):
        analyze_sum(service, service.query(offset=-1), is_run=False)


def test_the_numbers_of_googles_own_system_tests(
    service: service_calls.Service, eight: None
) -> None:
    below = service.query("T", ("__key__", "under", service.key(*ANCESTOR)))
    response = analyze(service, below)
    assert used(response) == [(GROUP, "(__name__ ASC)")]
    assert len(response.batch.entity_results) == 8
    assert numbers(response) == expected(
        results=8, reads=8, documents_scanned=8, index_entries_scanned=8, documents_billable=8
    )
    response = analyze_sum(service, below)
    assert used(response) == [(BELOW, "(a ASC, __name__ ASC)")]
    found = response.batch.aggregation_results[0].aggregate_properties
    assert found["property_1"].integer_value == 36
    assert numbers(response) == expected(
        results=1, reads=1, index_entries_scanned=8, index_entries_billable=8
    )


def test_the_metrics_match_the_actual_work(
    service: service_calls.Service, eight: None, engine: inprocess.Engine
) -> None:
    with testing.meter(engine) as cost:
        response = analyze(service, service.query("T", ("b", "=", 1), ("c", "=", 1)))
    found = numbers(response)
    assert found["index_entries_scanned"] == cost.index_entries > found["results"] == 2
    assert found["reads"] == cost.reads == 2
    response = analyze(service, service.query(keys_only=True, limit=3, offset=2))
    assert numbers(response) == expected(
        results=3, reads=1, index_entries_scanned=5, small_ops=5, min_query_cost=1
    )
    response = analyze(service, service.query("T", ("a", ">", 100)))
    assert numbers(response) == expected()
    response = analyze(service, service.query("T", ("a", ">", 0), ("b", ">", 0)))
    found = numbers(response)
    assert found["index_entries_billable"] == found["index_entries_scanned"] >= 4
    assert found["reads"] == 5
    response = analyze_sum(service, service.query("U"), {"count": {}})
    assert numbers(response) == expected(results=1, reads=1, min_query_cost=1)


def test_a_query_of_several_batches_is_summed_up_with_its_last(
    service: service_calls.Service,
) -> None:
    for start in (1, 351):
        service.commit(
            *(
                {"upsert": service.entity(service.key("T", n), a=n)}
                for n in range(start, start + 350)
            )
        )
    query = service.query()
    seen = 0
    while True:
        response = analyze(service, query)
        seen += len(response.batch.entity_results)
        if response.batch.more_results != 1:
            break
        assert not response.HasField("explain_metrics")
        query.start_cursor = response.batch.end_cursor
    assert seen == 700
    found = numbers(response)
    assert (found["results"], found["reads"], found["documents_billable"]) == (700, 700, 700)
    assert found["index_entries_scanned"] >= 700
    # A repeated request for the same page is a separate query.
    assert numbers(analyze(service, query))["results"] == 100


def test_the_memory_of_unfinished_queries_is_bounded() -> None:
    work = explain.Work(1, 1, 1, 0.5, cost_meter.Bill(1))
    unfinished = explain.Unfinished()
    for number in range(2000):
        unfinished.keep("p", b"%d" % number, work)
    assert unfinished.total("p", b"0", work) == work
    assert unfinished.total("p", b"1999", work) == explain.Work(2, 2, 2, 1.0, cost_meter.Bill(2))
    assert unfinished.total("p", b"1999", work) == work
    unfinished.forget()
    assert unfinished.total("p", b"1998", work) == work


def test_an_explained_query_in_a_transaction_reads_and_conflicts(
    service: service_calls.Service, eight: None
) -> None:
    key = service.key(*ANCESTOR, "T", 1)
    write = {"upsert": service.entity(service.key("U", 1))}
    for is_run in (False, True):
        transaction = service.begin()
        analyze(service, service.query(), is_run=is_run, transaction=transaction)
        analyze_sum(service, service.query(), is_run=is_run, transaction=transaction)
        service.put(key, a=9)
        if not is_run:
            service.commit(write, transaction=transaction)
            continue
        with assert_refused("ABORTED"):
            service.commit(write, transaction=transaction)
    begun = analyze(service, service.query(), is_run=False, new_transaction={})
    service.commit(write, transaction=begun.transaction)


# Explain through the client libraries


def characters(gcd_client: datastore.Client, *, analyze: bool) -> protobufs.Query:
    return gcd_client.query(
        kind="T",
        ancestor=gcd_client.key(*ANCESTOR),
        explain_options=query_profile.ExplainOptions(analyze=analyze),
    )


def test_google_cloud_datastore_reads_a_plan(gcd_client: datastore.Client, eight: None) -> None:
    iterator = characters(gcd_client, analyze=False).fetch()
    found = iterator.explain_metrics
    assert found.plan_summary.indexes_used == [
        {"query_scope": GROUP, "properties": "(__name__ ASC)"}
    ]
    with pytest.raises(query_profile.QueryExplainError):
        _ = found.execution_stats
    assert list(iterator) == []


def test_google_cloud_datastore_reads_the_metrics_of_a_query(
    gcd_client: datastore.Client, eight: None
) -> None:
    with gcd_client.transaction():
        iterator = characters(gcd_client, analyze=True).fetch()
        with pytest.raises(query_profile.QueryExplainError):
            _ = iterator.explain_metrics
        assert len(list(iterator)) == 8
    stats = iterator.explain_metrics.execution_stats
    assert (stats.results_returned, stats.read_operations) == (8, 8)
    assert stats.execution_duration.total_seconds() > 0
    assert stats.debug_stats == {
        "documents_scanned": "8",
        "index_entries_scanned": "8",
        "billing_details": {
            "documents_billable": "8",
            "index_entries_billable": "0",
            "small_ops": "0",
            "min_query_cost": "0",
        },
    }


@pytest.mark.parametrize("analyze", [False, True])
def test_google_cloud_datastore_explains_aggregations(
    gcd_client: datastore.Client, eight: None, analyze: bool
) -> None:
    nested = gcd_client.query(kind="T", ancestor=gcd_client.key(*ANCESTOR))
    asked = gcd_client.aggregation_query(
        nested, explain_options=query_profile.ExplainOptions(analyze=analyze)
    )
    asked.count().sum("a").avg("a")
    iterator = asked.fetch()
    results = list(iterator)
    found = iterator.explain_metrics
    assert found.plan_summary.indexes_used == [
        {"query_scope": BELOW, "properties": "(a ASC, __name__ ASC)"}
    ]
    if not analyze:
        assert results == []
        return
    assert sorted(each.value for each in results[0]) == [4.5, 8, 36]
    assert (found.execution_stats.results_returned, found.execution_stats.read_operations) == (1, 1)
