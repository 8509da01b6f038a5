"""Keys and partitions: valid names, and the isolation of partitions."""

import itertools
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore_emulator import inprocess
from datastore_emulator.transactions import mutations
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused


@pytest.fixture(params=["", "named-db"])
def spelling(
    service: service_calls.Service, request: pytest.FixtureRequest
) -> service_calls.Service:
    """A service that calls one of two databases."""
    service.database = request.param
    return service


def test_every_encoding_of_a_key_is_returned_byte_for_byte(spelling: service_calls.Service) -> None:
    """NDB and other clients match a result to its key by the bytes that they sent."""
    full = spelling.key("T", "n", "U", 7, namespace="space")
    spelling.put(full, a=1)
    spellings = []
    for project, database in ((1, 1), (0, 1), (0, 0)):
        key = type(full)()
        key.CopyFrom(full)
        if not project:
            key.partition_id.ClearField("project_id")
        if not database:
            key.partition_id.ClearField("database_id")
        spellings.append(key)
    asked = {key.SerializeToString(deterministic=True) for key in spellings}
    found = spelling.lookup(*spellings).found
    assert {each.entity.key.SerializeToString(deterministic=True) for each in found} == asked
    assert len(found) == len(asked)
    for key in spellings:
        key.path[1].id = 8
    missing = spelling.lookup(*spellings).missing
    assert {each.entity.key.SerializeToString() for each in missing} == {
        key.SerializeToString() for key in spellings
    }


def test_an_empty_partition_of_a_key_is_returned_as_sent(
    service: service_calls.Service,
) -> None:
    key = service.key("T", 1)
    service.put(key)
    key.ClearField("partition_id")
    key.partition_id.SetInParent()
    found = service.lookup(key).found[0].entity.key
    assert found.SerializeToString() == key.SerializeToString()
    assert found.HasField("partition_id")


LEGAL = ["a", "A9.-_", "x" * 100, "0", "_", "__x"]
ILLEGAL = ["a b", "é", "a/b", "x" * 101, "٣", "a\n", "a:b", "(default)"]


@pytest.mark.parametrize("name", LEGAL)
def test_valid_namespaces_and_databases_are_accepted(
    service: service_calls.Service, name: str
) -> None:
    service.database = name
    key = service.key("T", 1, namespace=name)
    service.put(key, a=1)
    assert service.get(key) == {"a": 1}
    assert service.names(namespace=name) == [1]


@pytest.mark.parametrize("name", ILLEGAL)
def test_invalid_namespaces_and_databases_are_refused(
    service: service_calls.Service, name: str
) -> None:
    with assert_refused("INVALID_ARGUMENT"):
        service.put(service.key("T", 1, namespace=name))
    with assert_refused("INVALID_ARGUMENT"):
        service.names(namespace=name)
    with assert_refused("INVALID_ARGUMENT"):
        service.call("Lookup", database_id=name)


def test_the_default_database_cannot_be_named(service: service_calls.Service) -> None:
    for method in ("Lookup", "RunQuery", "Commit", "BeginTransaction", "AllocateIds"):
        with assert_refused("INVALID_ARGUMENT", '"(default)" is not allowed'):
            service.call(method, database_id="(default)")


@pytest.mark.parametrize("project", ["p", "example.com:project", "dev~p"])
def test_a_project_can_be_domain_scoped(
    channel: grpc.Channel | inprocess.Channel,
    make_service: type[service_calls.Service],
    project: str,
) -> None:
    service = make_service(channel, project)
    if "~" in project:
        with assert_refused("INVALID_ARGUMENT"):
            service.put(service.key("T", 1))
        return
    service.put(service.key("T", 1), a=1)
    assert service.get(service.key("T", 1)) == {"a": 1}


def test_a_query_uses_its_requests_project_and_database(service: service_calls.Service) -> None:
    for partition in ({"project_id": "other"}, {"project_id": "test", "database_id": "other"}):
        with assert_refused("INVALID_ARGUMENT"):
            service.call("RunQuery", query=service.query(), partition_id=partition)
    service.database = "named"
    service.put(service.key("T", 1, namespace="n"))
    response = service.call("RunQuery", query=service.query(), partition_id={"namespace_id": "n"})
    assert len(response.batch.entity_results) == 1


def test_ids_and_transactions_belong_to_one_database(
    service: service_calls.Service,
    make_service: type[service_calls.Service],
) -> None:
    named = make_service(service.channel)
    named.database = "named"
    named.call("ReserveIds", keys=[named.key("T", 5)])
    service.put(service.key("T", 5), a=1)
    assert named.get(named.key("T", 5)) is None
    transaction = service.begin()
    service.get(service.key("T", 5), transaction=transaction)
    named.put(named.key("T", 5), a=2)
    with assert_refused("INVALID_ARGUMENT"):
        named.get(named.key("T", 5), transaction=transaction)
    service.commit({"upsert": service.entity(service.key("T", 5))}, transaction=transaction)
    assert named.get(named.key("T", 5)) == {"a": 2}


@pytest.mark.parametrize(
    "path", [("__T__", 1), ("T", "__n__"), ("__T__", 1, "T", 1), ("T", "__n__", "T", 1)]
)
def test_reserved_names_can_be_read_but_not_written(
    near: service_calls.Service, path: tuple[Any, ...]
) -> None:
    for namespace in ("", "__space__"):
        key = near.key(*path, namespace=namespace)
        assert near.get(key) is None
        for change in (
            {"insert": near.entity(key)},
            {"update": near.entity(key)},
            {"upsert": near.entity(key)},
            {"delete": key},
        ):
            with assert_refused("INVALID_ARGUMENT", "reserved"):
                near.commit(change)
        with assert_refused("INVALID_ARGUMENT", "reserved"):
            near.call("ReserveIds", keys=[near.key(*path, "U", 1, namespace=namespace)])
        with assert_refused("INVALID_ARGUMENT", "reserved"):
            near.call("AllocateIds", keys=[near.key(*path, "U", namespace=namespace)])
    near.put(near.key("_T_", "__n"))
    assert near.names("_T_") == ["__n"]


def test_kinds_and_names_have_up_to_1500_bytes(near: service_calls.Service) -> None:
    for path in (("é" * 750, 1), ("T", "é" * 750), ("T", "\U0001f600" * 375)):
        near.put(near.key(*path), a=1)
        assert near.get(near.key(*path)) == {"a": 1}
    for path in (("é" * 750 + "x", 1), ("T", "é" * 750 + "x"), ("T", "\U0001f600" * 376)):
        with assert_refused("INVALID_ARGUMENT"):
            near.get(near.key(*path))


def test_a_whole_key_has_up_to_6_kib(near: service_calls.Service) -> None:
    path = ("k" * 1500, "n" * 1500, "k" * 1500, "n" * 1500)
    near.put(near.key(*path), a=1)
    assert near.get(near.key(*path)) == {"a": 1}
    with assert_refused("INVALID_ARGUMENT"):
        near.put(near.key(*path, "T", "x" * 300))


def test_only_the_last_element_of_a_new_entity_can_lack_an_id(near: service_calls.Service) -> None:
    incomplete = near.key("A", 1, "T")
    for operation in ("insert", "upsert"):
        made = near.commit({operation: near.entity(incomplete)}).mutation_results[0].key
        assert made.path[0] == incomplete.path[0]
        assert made.path[1].id > 0
    inner = near.key("A", None, "T", 1)
    for call in (
        lambda: near.commit({"update": near.entity(incomplete)}),
        lambda: near.commit({"delete": incomplete}),
        lambda: near.lookup(incomplete),
        lambda: near.commit({"insert": near.entity(inner)}),
        lambda: near.call("AllocateIds", keys=[inner]),
        lambda: near.call("ReserveIds", keys=[incomplete]),
    ):
        with assert_refused("INVALID_ARGUMENT", "Key path is incomplete"):
            call()


def test_reserved_and_used_ids_are_not_handed_out_after_a_restart(
    tmp_path: Path, make_service: type[service_calls.Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mutations, "scatter", lambda counter, _seed: counter)
    for expected in (1, 3, 5):
        with inprocess.open_engine(tmp_path / "data") as engine:
            service = make_service(inprocess.Channel(engine))
            made = service.call("AllocateIds", keys=[service.key("T")]).keys[0]
            assert made.path[0].id == expected
            service.call("ReserveIds", keys=[service.key("T", expected + 1)])


def test_allocated_ids_are_in_order_with_the_whole_partition(
    spelling: service_calls.Service,
) -> None:
    """This holds even if the request leaves out the project and database."""
    asked = [
        spelling.key("A"),
        spelling.key("P", "x", "B", namespace="n"),
        spelling.key("A", 7, "C"),
        spelling.key("A"),
    ]
    for key in asked[1:3]:
        key.partition_id.project_id = key.partition_id.database_id = ""
    given = spelling.call("AllocateIds", keys=asked).keys
    assert [[each.kind for each in key.path] for key in given] == [
        ["A"], ["P", "B"], ["A", "C"], ["A"],
    ]  # fmt: skip
    assert [key.partition_id.namespace_id for key in given] == ["", "n", "", ""]
    for key in given:
        assert key.partition_id.project_id == "test"
        assert key.partition_id.database_id == spelling.database
        assert key.path[-1].id > 0


def test_ids_are_far_apart(near: service_calls.Service) -> None:
    keys = near.call("AllocateIds", keys=[near.key("T")] * 300).keys
    ids = [key.path[0].id for key in keys]
    assert all(abs(left - right) > 1000 for left, right in itertools.pairwise(ids))
    ids.sort()
    assert all(right - left > 1000 for left, right in itertools.pairwise(ids))


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=5).filter(
    lambda name: not (name.startswith("__") and name.endswith("__"))
)
elements = st.tuples(names, names | st.integers(-(2**63), 2**63 - 1).filter(bool))


@given(
    st.lists(elements, min_size=1, max_size=4),
    st.from_regex(r"[A-Za-z0-9.\-_]{0,8}", fullmatch=True),
)
def test_any_legal_key_finds_its_entity_and_no_other(
    near: service_calls.Service, path: list[Any], namespace: str
) -> None:
    if namespace.startswith("__") and namespace.endswith("__") and len(namespace) > 3:
        namespace = ""
    key = near.key(*(part for element in path for part in element), namespace=namespace)
    near.put(key, a=1)
    assert near.lookup(key).found[0].entity.key == key
    longer = near.key(*(part for element in path for part in element), "T", 1, namespace=namespace)
    assert near.lookup(longer).missing
    near.delete(key)
    assert near.lookup(key).missing
