"""The test helpers: one line starts an emulator, which leaves nothing behind."""

from typing import Any

import grpc
import pytest
from google.cloud import datastore

from datastore_emulator import testing
from datastore_emulator.fault_injection import fault_plans
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused


def test_one_line_starts_an_emulator_for_every_client(
    make_service: type[service_calls.Service],
) -> None:
    with testing.emulator() as started:
        client = started.datastore_client()
        from_ndb = started.ndb_client()
        with grpc.insecure_channel(started.address) as channel:
            service = make_service(channel)
            service.put(service.key("T", 1), a=1)
        assert dict(client.get(client.key("T", 1))) == {"a": 1}
        assert from_ndb.project == "test"
        address = started.address
    with grpc.insecure_channel(address) as channel, pytest.raises(grpc.RpcError):
        make_service(channel).put(service.key("T", 1), a=1)


def test_a_datastore_client_ignores_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DATASTORE_EMULATOR_HOST", "localhost:1")
    with testing.emulator() as started:
        client = started.datastore_client(namespace="n")
        key = client.key("T", 1)
        client.put(entity_with_a(key))
        assert client.get(key)["a"] == 1


def entity_with_a(key: Any) -> Any:
    entity = datastore.Entity(key)
    entity["a"] = 1
    return entity


def test_a_reset_leaves_no_data_no_costs_and_no_faults(
    make_service: type[service_calls.Service],
) -> None:
    with testing.emulator() as started:
        service = make_service(started.channel)
        service.put(service.key("T", 1), a=1)
        started.engine.install_faults(
            fault_plans.Plan.parse({"rules": [{"rpc": "Lookup", "drop": True}]})
        )
        started.reset()
        assert started.engine.meter.total().writes == 0
        assert service.get(service.key("T", 1)) is None


def test_the_clock_lets_transactions_expire(make_service: type[service_calls.Service]) -> None:
    with testing.emulator() as started:
        service = make_service(started.channel)
        transaction = service.begin()
        started.clock.advance(61)
        with assert_refused("INVALID_ARGUMENT", "expired"):
            service.get(service.key("T", 1), transaction=transaction)


def test_a_clock_runs_or_is_fixed_and_never_goes_back() -> None:
    standing, running = testing.Clock(5.0), testing.Clock()
    assert (standing(), standing.advance(2.5), standing()) == (5.0, 7.5, 7.5)
    before = running()
    assert running.advance(1000) >= before + 1000
    for seconds in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="cannot move"):
            standing.advance(seconds)
