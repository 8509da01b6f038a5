"""Bulk load: the resulting file equals the one that upserts produce."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from datastore_emulator import errors, inprocess
from datastore_emulator.import_export import bulk_load
from datastore_emulator.storage import inspection
from emulator.tests.support import service_calls


@pytest.fixture
def opened(
    tmp_path: Path, make_service: type[service_calls.Service], index_yaml: Path
) -> Iterator[tuple[inprocess.Engine, service_calls.Service, Path]]:
    engine = inprocess.open_engine(tmp_path / "data", indexes=index_yaml, durability="fast")
    with engine:
        yield engine, make_service(inprocess.Channel(engine)), tmp_path / "data"


def test_loaded_entities_are_found_as_if_they_had_been_put(
    opened: tuple[inprocess.Engine, service_calls.Service, Path],
) -> None:
    engine, service, path = opened
    given = [
        service.entity(service.key("T", n % 7 + 1, "T", n), a=n % 3, b=-n, tag=["x", "y"], c=1)
        for n in range(1, 60)
    ]
    for entity in given[:20]:
        service.commit({"upsert": entity})
    asked = [
        service.query("T", order=["a", "b"]),
        service.query("T", ("tag", "=", "x"), ("a", "=", 1)),
        service.query("T", ("__key__", "under", service.key("T", 2)), order=["-a"]),
        service.query(None),
    ]
    for entity in given[20:]:
        service.commit({"upsert": entity})
    put = [[each.entity for each in service.results(query)] for query in asked]
    for entity in given:
        service.delete(entity.key)
    assert engine.load(iter(given), "test") == 59
    assert [[each.entity for each in service.results(query)] for query in asked] == put
    assert inspection.check(path).problems == []


def test_loading_replaces_entities_and_keeps_their_history(
    opened: tuple[inprocess.Engine, service_calls.Service, Path],
) -> None:
    engine, service, path = opened
    made = service.put(service.key("T", 1), a=1).mutation_results[0].create_time
    given = [service.entity(service.key("T", n), a=n + 10) for n in (2, 1)]
    engine.load(given, "test")
    found = service.lookup(service.key("T", 1)).found[0]
    assert service.plain(found.entity) == {"a": 11}
    assert found.create_time == made
    assert service.get(service.key("T", 1), read_time=made) == {"a": 1}
    assert service.names("T", ("a", "=", 1)) == []
    assert inspection.check(path).problems == []


def test_of_entities_with_one_key_the_last_is_loaded(
    opened: tuple[inprocess.Engine, service_calls.Service, Path],
) -> None:
    engine, service, path = opened
    engine.load([service.entity(service.key("T", 1), a=n) for n in range(5)], "test")
    assert service.get(service.key("T", 1)) == {"a": 4}
    assert service.names(order=["a"]) == [1]
    assert inspection.check(path).problems == []


def test_incomplete_keys_get_ids(
    opened: tuple[inprocess.Engine, service_calls.Service, Path],
) -> None:
    engine, service, _ = opened
    engine.load([service.entity(service.key("T"), a=n) for n in range(5)], "test")
    assert len(set(service.names(order=["a"]))) == 5


def test_namespaces_projects_and_databases_stay_separate(
    opened: tuple[inprocess.Engine, service_calls.Service, Path],
    make_service: type[service_calls.Service],
) -> None:
    engine, service, _ = opened
    other = make_service(service.channel, "other")
    other.database = "named"
    bare = service.entity(service.key("T", 3), a=3)
    bare.key.partition_id.Clear()
    engine.load(
        [
            service.entity(service.key("T", 1, namespace="n"), a=1),
            other.entity(other.key("T", 2), a=2),
            bare,
        ],
        "test",
    )
    assert service.names() == [3]
    assert service.names(namespace="n") == [1]
    assert other.names() == [2]


def test_the_error_numbers_the_refused_entity_and_earlier_batches_stay(
    opened: tuple[inprocess.Engine, service_calls.Service, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_load, "BATCH", 2)
    engine, service, path = opened
    given = [service.entity(service.key("T", n), a=n) for n in range(1, 6)]
    given[3].key.path[0].kind = "__bad__"
    with pytest.raises(errors.InvalidArgument, match=r"Entity 4: .*reserved"):
        engine.load(given, "test")
    assert service.names() == [1, 2]
    assert inspection.check(path).problems == []


def test_batches_are_cut_by_their_bytes(
    opened: tuple[inprocess.Engine, service_calls.Service, Path],
    monkeypatch: pytest.MonkeyPatch,
    unindexed: type[service_calls.Unindexed],
) -> None:
    monkeypatch.setattr(bulk_load, "BATCH_BYTES", 3000)
    engine, service, _ = opened
    engine.load(
        [service.entity(service.key("T", n), text=unindexed("x" * 1000)) for n in range(1, 8)],
        "test",
    )
    found = service.lookup(*(service.key("T", n) for n in range(1, 8))).found
    assert len({each.version for each in found}) == 3
