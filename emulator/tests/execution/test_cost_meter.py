"""The cost meter: the billing rules of Google's service, the same over both transports."""

import http.client
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from datastore_emulator import inprocess, protobufs, testing
from datastore_emulator.encoding import keys
from datastore_emulator.execution import cost_meter
from datastore_emulator.queries import parser
from datastore_emulator.server import admin_port, http_server
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused
from tests.support import forked_programs


def put_all(service: service_calls.Service, number: int, kind: str = "T") -> None:
    service.commit(
        *(
            {"upsert": service.entity(service.key(kind, n), a=n, b=-n, c=n % 2)}
            for n in range(1, number + 1)
        )
    )


def costs(cost: cost_meter.Reading) -> dict[str, int]:
    """Return the non-zero costs, without the bytes."""
    found = {name: getattr(cost, name) for name in ("reads", "writes", "deletes", "small")}
    return {name: number for name, number in found.items() if number}


def test_a_lookup_costs_a_read_for_each_key_found_or_missing(
    service: service_calls.Service, engine: inprocess.Engine
) -> None:
    put_all(service, 2)
    with testing.meter(engine) as cost:
        service.lookup(service.key("T", 1), service.key("T", 9), service.key("T", 1))
    assert costs(cost) == {"reads": 2}
    assert cost.index_entries == 0
    assert cost.keys_read == {("T", 1), ("T", 9)}


def test_deferred_keys_cost_when_they_are_answered(
    service: service_calls.Service,
    engine: inprocess.Engine,
    unindexed: type[service_calls.Unindexed],
) -> None:
    asked = [service.key("T", n) for n in range(1, 6)]
    for key in asked:
        service.put(key, v=unindexed(b"x" * 900_000))
    with testing.meter(engine) as cost:
        response = service.lookup(*asked)
    assert response.deferred
    assert costs(cost) == {"reads": len(response.found)}
    assert len(cost.keys_read) == len(response.found)


@pytest.mark.parametrize(
    ("fields", "expected", "entries"),
    [
        ({}, {"reads": 6}, 6),
        ({"limit": 2}, {"reads": 2}, 2),
        ({"limit": 2, "offset": 3}, {"reads": 5}, 5),
        ({"limit": 0}, {}, 1),
        ({"offset": 100}, {"reads": 6}, 6),
        ({"keys_only": True}, {"reads": 1, "small": 6}, 6),
        ({"keys_only": True, "limit": 2, "offset": 3}, {"reads": 1, "small": 5}, 5),
        ({"projection": ["a"]}, {"reads": 1, "small": 6}, 6),
        ({"order": ["a", "b"]}, {"reads": 6}, 6),
    ],
)
def test_a_query_costs_the_sum_of_its_results(
    service: service_calls.Service,
    engine: inprocess.Engine,
    fields: dict[str, Any],
    expected: dict[str, int],
    entries: int,
) -> None:
    put_all(service, 6)
    with testing.meter(engine) as cost:
        service.batch(service.query(**fields))
    assert costs(cost) == expected
    assert cost.index_entries == entries


@pytest.mark.parametrize("fields", [{}, {"keys_only": True}, {"projection": ["a"]}])
def test_a_query_of_one_range_that_finds_nothing_costs_nothing(
    service: service_calls.Service, engine: inprocess.Engine, fields: dict[str, Any]
) -> None:
    put_all(service, 6)
    with testing.meter(engine) as cost:
        service.batch(service.query("T", ("a", ">", 7), **fields))
    assert costs(cost) == {}


@pytest.mark.parametrize(
    ("fields", "reads"),
    [({}, 0), ({"keys_only": True}, 1), ({"projection": ["a"]}, 1)],
)
@pytest.mark.parametrize("is_distinct", [False, True])
def test_with_strict_pricing_an_empty_partial_query_costs_a_read(
    service: service_calls.Service,
    engine: inprocess.Engine,
    fields: dict[str, Any],
    reads: int,
    is_distinct: bool,
) -> None:
    put_all(service, 6)
    asked = service.query("T", ("a", ">", 7), **fields)
    if is_distinct and "projection" in fields:
        asked.distinct_on.add(name="a")
    with (
        testing.meter(engine, cost_meter.Pricing.STRICT) as strict,
        testing.meter(engine, cost_meter.Pricing.LENIENT) as lenient,
    ):
        service.batch(asked)
    assert costs(strict) == ({"reads": reads} if reads else {})
    assert costs(lenient) == {}
    assert strict.empty == lenient.empty == reads


@pytest.mark.parametrize(
    "fields", [{}, {"keys_only": True}, {"projection": ["a"]}, {"limit": 2, "offset": 3}]
)
def test_queries_with_results_cost_the_same_with_both_pricings(
    service: service_calls.Service, engine: inprocess.Engine, fields: dict[str, Any]
) -> None:
    put_all(service, 6)
    with (
        testing.meter(engine, cost_meter.Pricing.STRICT) as strict,
        testing.meter(engine, cost_meter.Pricing.LENIENT) as lenient,
    ):
        service.batch(service.query(**fields))
        service.lookup(service.key("T", 1), service.key("T", 9))
        service.count(service.query(), None)
    assert strict.total() == lenient.total()


def test_an_engine_can_report_its_total_with_strict_pricing(
    service: service_calls.Service, engine: inprocess.Engine
) -> None:
    engine.meter.pricing = cost_meter.Pricing.STRICT
    service.batch(service.query(keys_only=True))
    with testing.meter(engine) as cost:
        service.batch(service.query(keys_only=True))
    assert (engine.meter.total().reads, cost.reads) == (2, 1)


def test_a_merge_join_reads_more_entries_than_it_costs(
    service: service_calls.Service, engine: inprocess.Engine
) -> None:
    put_all(service, 6)
    with testing.meter(engine) as cost:
        assert service.names("T", ("c", "=", 1), ("b", "=", -5)) == [5]
    assert costs(cost) == {"reads": 1}
    assert cost.index_entries >= 2


def query(service: service_calls.Service, *filters: tuple[Any, ...], **fields: Any) -> parser.Query:
    made = service.query("T", *filters, **fields)
    return parser.parse(made, keys.Partition("test", "", ""))


@pytest.mark.parametrize(
    ("filters", "order", "is_billed"),
    [
        ([], [], False),
        ([], ["a", "__key__"], False),
        ([("a", "<", 9), ("b", "=", 1)], [], False),
        ([("a", "<", 9), ("a", ">", 1)], ["-a"], False),
        ([("a", "in", [1, 2])], ["b"], False),
        ([("a", "<", 9), ("b", "!=", 1)], [], True),
        ([("a", "not in", [1]), ("b", ">", 1)], [], True),
        ([("b", "<", 9)], ["b", "a"], True),
        ([("__key__", "=", "key")], [], False),
        ([("__key__", "=", "key"), ("a", ">", 1)], [], True),
        ([("__key__", "=", "key")], ["a"], True),
        ([("__key__", "under", "key")], ["a", "__key__"], False),
    ],
    ids=str,
)
def test_index_entries_are_billed_with_more_than_one_range_property(
    near: service_calls.Service, filters: list[Any], order: list[str], is_billed: bool
) -> None:
    made = [
        (name, op, near.key("T", 1) if value == "key" else value) for name, op, value in filters
    ]
    bill = cost_meter.bill_query(query(near, *made, order=order), met=5, entries=95_000)
    assert bill == cost_meter.Bill(documents=5, index_entries=95_000 if is_billed else 0)
    # The number comes from Google's documentation of the explain feature.
    assert bill.reads == (100 if is_billed else 5)


@pytest.mark.parametrize(("entries", "reads"), [(0, 1), (1, 1), (1000, 1), (1001, 2), (1500, 2)])
def test_an_empty_query_of_two_ranges_costs_at_least_one_read(
    near: service_calls.Service, entries: int, reads: int
) -> None:
    asked = query(near, ("a", "<", 1), ("b", "<", 1))
    assert cost_meter.bill_query(asked, met=0, entries=entries).reads == reads


def test_distinct_projections_are_not_small(
    service: service_calls.Service, engine: inprocess.Engine
) -> None:
    put_all(service, 6)
    asked = service.query(projection=["c"], order=["c"])
    asked.distinct_on.add(name="c")
    with testing.meter(engine) as cost:
        service.batch(asked)
    assert costs(cost) == {"reads": 2}


@pytest.mark.parametrize(("entries", "reads"), [(0, 1), (1, 1), (1000, 1), (1001, 2), (1500, 2)])
def test_an_aggregation_costs_a_read_for_each_1000_entries(entries: int, reads: int) -> None:
    assert cost_meter.bill_aggregation(entries).reads == reads


def test_aggregations_of_one_request_cost_one_walk(
    service: service_calls.Service, engine: inprocess.Engine
) -> None:
    put_all(service, 6)
    with testing.meter(engine) as cost:
        service.count(service.query(), None, None, None)
    assert costs(cost) == {"reads": 1}
    assert cost.index_entries == 6
    assert cost.keys_read == set()


def test_commits_cost_writes_and_deletes(
    service: service_calls.Service, engine: inprocess.Engine
) -> None:
    with testing.meter(engine) as cost:
        service.commit(
            {"insert": service.entity(service.key("T", 1))},
            {"upsert": service.entity(service.key("T", 2, "U", "x"))},
            {"delete": service.key("T", 9)},
        )
        service.commit({"update": service.entity(service.key("T", 1), a=1)})
        made = service.commit({"insert": service.entity(protobufs.Key(path=[{"kind": "V"}]))})
    assert costs(cost) == {"writes": 4, "deletes": 1}
    number = made.mutation_results[0].key.path[0].id
    assert cost.keys_written == {("T", 1), ("T", 2, "U", "x"), ("T", 9), ("V", number)}


def test_refused_and_aborted_requests_cost_nothing(
    service: service_calls.Service, engine: inprocess.Engine
) -> None:
    put_all(service, 2)
    transaction = service.begin()
    service.get(service.key("T", 1), transaction=transaction)
    service.put(service.key("T", 1), a=7)
    with testing.meter(engine) as cost:
        with assert_refused("ABORTED"):
            service.commit({"upsert": service.entity(service.key("T", 1))}, transaction=transaction)
        with assert_refused("ALREADY_EXISTS"):
            service.commit({"insert": service.entity(service.key("T", 1))})
        with assert_refused("FAILED_PRECONDITION"):
            service.batch(service.query("T", ("b", ">", 1), order=["b", "a"]))
        service.rollback(service.begin())
    assert costs(cost) == {}
    assert cost.keys_written == set()


def test_a_mutation_that_loses_a_conflict_costs_nothing(
    service: service_calls.Service, engine: inprocess.Engine
) -> None:
    put_all(service, 1)
    with testing.meter(engine) as cost:
        service.commit({"upsert": service.entity(service.key("T", 1)), "base_version": 1})
    assert costs(cost) == {}


def test_reads_in_a_transaction_cost_the_same(
    service: service_calls.Service, engine: inprocess.Engine
) -> None:
    put_all(service, 3)
    transaction = service.begin()
    with testing.meter(engine) as cost:
        service.get(service.key("T", 1), transaction=transaction)
        service.names("T", ("a", ">", 1), transaction=transaction)
    assert costs(cost) == {"reads": 3}
    assert cost.keys_read == {("T", 1), ("T", 2), ("T", 3)}


def test_ids_are_small_operations(service: service_calls.Service, engine: inprocess.Engine) -> None:
    with testing.meter(engine) as cost:
        service.call("AllocateIds", keys=[{"path": [{"kind": "T"}]}] * 3)
        service.call("ReserveIds", keys=[service.key("T", 7)])
    assert costs(cost) == {"small": 2}


def test_bytes_are_the_sizes_of_the_messages(
    service: service_calls.Service, engine: inprocess.Engine
) -> None:
    request = protobufs.LookupRequest(project_id="test", keys=[service.key("T", 1)])
    with testing.meter(engine) as cost:
        response = service.send("Lookup", request)
    assert (cost.bytes_in, cost.bytes_out) == (request.ByteSize(), response.ByteSize())


def test_a_reading_ends_with_its_block_and_a_reset_leaves_it_alone(
    near: service_calls.Service, engine: inprocess.Engine
) -> None:
    with testing.meter(engine) as outer:
        near.get(near.key("T", 1))
        with testing.meter(engine) as inner:
            near.get(near.key("T", 2))
            engine.meter.reset()
        near.get(near.key("T", 3))
    near.get(near.key("T", 4))
    assert (outer.reads, inner.reads, engine.meter.total().reads) == (3, 1, 2)
    assert inner.keys_read == {("T", 2)}
    assert outer.total().bytes_in == outer.bytes_in > 3
    assert "reads=3" in repr(outer)
    engine.meter.reset()
    assert engine.meter.total() == cost_meter.Cost()


def test_the_admin_port_reads_and_resets_the_total(
    service: service_calls.Service, engine: inprocess.Engine
) -> None:
    service.lookup(service.key("T", 1), service.key("T", 2))
    running = http_server.start(admin_port.AdminPort(engine, lambda: None).answer, 0)

    def ask(method: str) -> dict[str, int]:
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
        connection.request(method, "/meter")
        found = json.loads(connection.getresponse().read())
        connection.close()
        return found

    try:
        read, emptied, after = ask("GET"), ask("DELETE"), ask("GET")
    finally:
        running.stop()
    assert read["reads"] == 2
    assert set(read) == {
        "reads", "writes", "deletes", "small", "index_entries", "bytes_in", "bytes_out", "empty",
    }  # fmt: skip
    assert set(emptied.values()) == set(after.values()) == {0}


def test_threads_lose_no_count(near: service_calls.Service, engine: inprocess.Engine) -> None:
    def work() -> None:
        for _ in range(200):
            near.get(near.key("T", 1))

    threads = [threading.Thread(target=work) for _ in range(4)]
    with testing.meter(engine) as cost:
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert cost.reads == engine.meter.total().reads == 800


def test_a_forked_child_counts_for_itself(
    make_service: type[service_calls.Service], tmp_path: Path
) -> None:
    with inprocess.open_engine(tmp_path / "data") as engine:
        service = make_service(inprocess.Channel(engine))
        service.put(service.key("T", 1))
        child = forked_programs.fork()
        if not child:
            try:
                service.get(service.key("T", 1))
                own = engine.meter.total()
                os._exit(int((own.reads, own.writes) != (1, 0)))
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (engine.meter.total().reads, engine.meter.total().writes) == (0, 1)
