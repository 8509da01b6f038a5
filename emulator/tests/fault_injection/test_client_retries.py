"""The reactions of client libraries to the faults that a plan injects into their calls."""

from collections.abc import Iterator
from typing import Any

import google.api_core.exceptions
import grpc
import pytest
from google.cloud import datastore, ndb
from google.cloud.ndb import _retry

from datastore_emulator import inprocess, testing
from emulator.tests.support.plan_builder import plan


class Tally(ndb.Model):
    n = ndb.IntegerProperty(default=0)


@pytest.fixture
def ndb_context(
    channel: grpc.Channel | inprocess.Channel, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    monkeypatch.setattr(_retry, "_DEFAULT_INITIAL_DELAY", 0.001)
    with testing.ndb_client(channel).context(cache_policy=False) as context:
        yield context


def test_ndb_runs_a_transaction_again_when_its_commit_is_unavailable(
    engine: inprocess.Engine, ndb_context: Any
) -> None:
    Tally(id="c").put()
    engine.install_faults(plan({"rpc": "Commit", "call": [1, 2], "status": "UNAVAILABLE"}))
    ndb.transaction(increment)
    assert Tally.get_by_id("c").n == 1
    assert len(engine.fault_plan.log) == 2


def test_ndb_applies_a_transaction_twice_when_only_the_answer_was_lost(
    engine: inprocess.Engine, ndb_context: Any
) -> None:
    Tally(id="c").put()
    engine.install_faults(plan({"rpc": "Commit", "call": 1, "when": "after", "drop": True}))
    ndb.transaction(increment)
    assert Tally.get_by_id("c").n == 2


def increment() -> None:
    counter = Tally.get_by_id("c")
    counter.n += 1
    counter.put()


def test_google_cloud_datastore_reads_again_but_commits_once(
    engine: inprocess.Engine, gcd_client: datastore.Client
) -> None:
    key = gcd_client.key("T", 1)
    entity = datastore.Entity(key)
    entity["a"] = 1
    engine.install_faults(
        plan(
            {"rpc": "Commit", "call": 1, "when": "after", "drop": True},
            {"rpc": "Lookup", "call": [1, 2], "status": "UNAVAILABLE"},
        )
    )
    with pytest.raises(google.api_core.exceptions.ServiceUnavailable):
        gcd_client.put(entity)
    assert gcd_client.get(key) == entity
    assert [each.place for each in engine.fault_plan.log] == ["Commit", "Lookup", "Lookup"]
