"""The system tests of google-cloud-datastore, rewritten for this suite.

The numbers (8 characters, 9 projected results, 14 results of a merge join) come from the original
tests.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.api_core import exceptions
from google.cloud import datastore
from google.cloud.datastore.query import And, Or, PropertyFilter

from datastore_emulator import inprocess, protobufs, testing
from datastore_emulator.transactions import lock_manager

INDEXES = """
indexes:
- kind: Character
  ancestor: yes
  properties: [{name: appearances}]
- kind: Character
  ancestor: yes
  properties: [{name: family}, {name: appearances}]
- kind: Character
  ancestor: yes
  properties: [{name: name}, {name: family}]
- kind: Character
  ancestor: yes
  properties: [{name: alive}]
- kind: Character
  ancestor: yes
  properties: [{name: alive}, {name: family}, {name: appearances}]
- kind: Character
  properties: [{name: name}, {name: family}]
"""
BOOK = ("Book", "GoT")
RICKARD = (*BOOK, "Character", "Rickard")
EDDARD = (*RICKARD, "Character", "Eddard")
CATELYN = (*BOOK, "Character", "Catelyn")
CHARACTERS = {
    RICKARD: ("Stark", 0, False),
    EDDARD: ("Stark", 9, False),
    CATELYN: (["Stark", "Tully"], 26, False),
    (*EDDARD, "Character", "Arya"): ("Stark", 33, True),
    (*EDDARD, "Character", "Sansa"): ("Stark", 31, True),
    (*EDDARD, "Character", "Robb"): ("Stark", 22, False),
    (*EDDARD, "Character", "Bran"): ("Stark", 25, True),
    (*EDDARD, "Character", "Jon Snow"): ("Stark", 32, True),
}


@pytest.fixture
def index_yaml(tmp_path: Path) -> Path:
    path = tmp_path / "index.yaml"
    path.write_text(INDEXES)
    return path


@pytest.fixture(params=[("in process", None), ("gRPC", "system-tests-named-db")], ids=str)
def client(engine: inprocess.Engine, request: pytest.FixtureRequest) -> Iterator[datastore.Client]:
    """A client for the default database in process, or for a named database over gRPC."""
    transport, database = request.param
    with reached(engine, transport) as channel:
        yield testing.datastore_client(channel, database=database)


@contextlib.contextmanager
def reached(engine: inprocess.Engine, transport: str) -> Iterator[grpc.Channel | inprocess.Channel]:
    """Yield a channel to an engine over one of the two transports."""
    if transport == "in process":
        yield inprocess.Channel(engine)
        return
    with testing.running_server(engine) as address, grpc.insecure_channel(address) as channel:
        yield channel


@pytest.fixture
def characters(client: datastore.Client) -> datastore.Client:
    made = []
    for path, (family, appearances, alive) in CHARACTERS.items():
        character = datastore.Entity(client.key(*path))
        character.update(name=path[-1], family=family, appearances=appearances, alive=alive)
        made.append(character)
    client.put_multi(made)
    return client


def below(client: datastore.Client, **fields: Any) -> protobufs.Query:
    return client.query(kind="Character", ancestor=client.key(*BOOK), **fields)


def names(results: Any) -> list[str]:
    return [each["name"] for each in results]


def where(name: str, operator: str, value: Any) -> PropertyFilter:
    return PropertyFilter(name, operator, value)


FILTERS = [
    ([], 8),
    ([where("appearances", ">=", 20)], 6),
    ([where("appearances", ">=", 26), where("family", "=", "Stark")], 4),
    ([And([where("family", "=", "Stark"), where("name", "=", "Arya")])], 1),
    ([Or([where("name", "=", "Arya"), where("name", "=", "Jon Snow")])], 2),
    (
        [
            Or([where("alive", "=", value=True), where("appearances", ">=", 26)]),
            where("family", "IN", ["Stark"]),
        ],
        5,
    ),
]


def test_filters_find_the_expected_number_in_and_out_of_a_transaction(
    characters: datastore.Client,
) -> None:
    for filters, count in FILTERS:
        query = below(characters)
        for each in filters:
            query.add_filter(filter=each)
        assert len(list(query.fetch(limit=count + 1))) == count
        with characters.transaction():
            assert len(list(query.fetch())) == count


def test_a_key_filter_orders_and_limits_page(characters: datastore.Client) -> None:
    query = below(characters)
    query.add_filter(filter=where("__key__", "=", characters.key(*RICKARD)))
    assert names(query.fetch(limit=2)) == ["Rickard"]
    query = below(characters, order=["appearances"])
    assert names(query.fetch())[::7] == ["Rickard", "Arya"]
    iterator = query.fetch(limit=3, offset=2)
    assert names(next(iterator.pages)) == ["Robb", "Bran", "Catelyn"]
    assert names(query.fetch(limit=3, start_cursor=iterator.next_page_token)) == [
        "Sansa", "Jon Snow", "Arya",
    ]  # fmt: skip
    iterator = below(characters).fetch(limit=5)
    assert len(list(next(iterator.pages))) == 5
    assert len(list(below(characters).fetch(start_cursor=iterator.next_page_token))) == 3


def test_a_projection_gives_nine_results_for_eight_characters(characters: datastore.Client) -> None:
    fields = {"projection": ["name", "family"]}
    for query in (
        below(characters, order=["name", "family"], **fields),
        characters.query(kind="Character", **fields),
    ):
        found = [dict(each) for each in query.fetch(limit=10)]
        assert len(found) == 9
        assert found[0] == {"name": "Arya", "family": "Stark"}
        assert found[2:4] == [
            {"name": "Catelyn", "family": "Stark"},
            {"name": "Catelyn", "family": "Tully"},
        ]
        assert found[8] == {"name": "Sansa", "family": "Stark"}


def test_distinct_results_are_ordered_by_the_distinct_properties(
    characters: datastore.Client,
) -> None:
    assert names(below(characters, distinct_on=["alive"]).fetch(limit=3)) == ["Catelyn", "Arya"]


def test_an_alias_cannot_be_used_twice(characters: datastore.Client) -> None:
    query = characters.aggregation_query(below(characters))
    query.count(alias="total").sum("appearances", alias="total")
    with pytest.raises(exceptions.BadRequest):
        list(query.fetch())


def test_reads_of_an_earlier_moment(characters: datastore.Client) -> None:
    """Lookups, queries, aggregations and transactions can read an earlier moment."""
    key = characters.key(*RICKARD)
    rickard = characters.get(key)
    moment = now(characters, key)
    characters.delete(key)
    assert characters.get(key) is None
    assert characters.get(key, read_time=moment) == rickard
    assert len(list(below(characters).fetch())) == 7
    assert len(list(below(characters).fetch(read_time=moment))) == 8
    counted = characters.aggregation_query(below(characters)).count().fetch(read_time=moment)
    assert [each.value for each in next(iter(counted))] == [8]
    with characters.transaction(read_only=True, read_time=moment):
        assert characters.get(key) == rickard


def now(client: datastore.Client, key: protobufs.Key) -> Any:
    """Return the read time of a lookup."""
    database = client.database or ""
    asked = {"project_id": "test", "database_id": database, "keys": [key.to_protobuf()]}
    return client._datastore_api.lookup(request=asked).read_time


def test_a_transaction_can_begin_with_its_first_call(characters: datastore.Client) -> None:
    key = characters.key(*RICKARD)
    with characters.transaction(begin_later=True) as transaction:
        assert transaction.id is None
        rickard = characters.get(key)
        assert transaction.id is not None
        rickard["appearances"] = 1
        transaction.put(rickard)
    assert characters.get(key)["appearances"] == 1
    with characters.transaction(begin_later=True):
        assert len(list(below(characters).fetch())) == 8
    with characters.transaction(begin_later=True) as transaction:
        transaction.delete(key)
    assert characters.get(key) is None


def test_a_lazily_begun_transaction_without_calls_never_begins(client: datastore.Client) -> None:
    with client.transaction(begin_later=True) as transaction:
        pass
    assert transaction.id is None


def test_a_transfer_with_explicit_begin_and_commit(client: datastore.Client) -> None:
    keys = [client.key("Account", name) for name in "ab"]
    for key, balance in zip(keys, (100, 0), strict=True):
        account = datastore.Entity(key)
        account["balance"] = balance
        client.put(account)
    transaction = client.transaction()
    transaction.begin()
    giver, taker = (client.get(key, transaction=transaction) for key in keys)
    giver["balance"] -= 40
    taker["balance"] += 40
    transaction.put(giver)
    transaction.put(taker)
    transaction.commit()
    assert [client.get(key)["balance"] for key in keys] == [60, 40]


@pytest.mark.parametrize("transport", ["in process", "gRPC"])
@pytest.mark.parametrize("in_block", [True, False], ids=["with", "begin and commit"])
def test_in_pessimistic_mode_the_outside_write_gets_the_conflict(
    transport: str, in_block: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock_manager, "WRITE_WAIT", 0.0)
    with (
        inprocess.open_engine(None, concurrency="pessimistic") as engine,
        reached(engine, transport) as channel,
    ):
        inside, outside = (testing.datastore_client(channel) for _ in range(2))
        key = inside.key("BreakTxn", 1234)
        entity = datastore.Entity(key)
        outside.put(entity)
        transaction = inside.transaction()
        with transaction if in_block else contextlib.nullcontext():
            if not in_block:
                transaction.begin()
            found = inside.get(key, transaction=transaction)
            entity["baz"] = "outside"
            with pytest.raises(exceptions.Conflict):
                outside.put(entity)
            found["baz"] = "inside"
            transaction.put(found)
        if not in_block:
            transaction.commit()
        assert outside.get(key)["baz"] == "inside"


def test_in_optimistic_mode_the_transaction_gets_the_conflict(
    client: datastore.Client,
) -> None:
    key = client.key("BreakTxn", 1234)
    entity = datastore.Entity(key)
    client.put(entity)
    outside = testing.datastore_client(
        client._datastore_api.transport.grpc_channel, database=client.database
    )
    with (  # noqa: PT012 - the commit at the end raises
        pytest.raises(exceptions.Conflict),
        client.transaction() as transaction,
    ):
        found = client.get(key)
        entity["baz"] = "outside"
        outside.put(entity)
        found["baz"] = "inside"
        transaction.put(found)
    assert client.get(key)["baz"] == "outside"


def many(engine: inprocess.Engine, kind: str, count: int, properties: Callable[..., Any]) -> None:
    def entity(number: int) -> Any:
        made = protobufs.Entity(properties=properties(number))
        made.key.path.add(kind=kind, id=number + 1)
        return made

    engine.load(map(entity, range(count)), "test")


@pytest.mark.slow
def test_large_results_fit_a_client_with_the_limits_of_grpc(engine: inprocess.Engine) -> None:
    """The query matches 2,500 entities of 39 kB each, with two equality filters and an offset."""
    text = {"string_value": "x" * 39_000, "exclude_from_indexes": True}
    held = {"family": {"string_value": "Stark"}, "alive": {"boolean_value": False}, "space": text}
    many(engine, "LargeCharacter", 2500, lambda _: held)
    with reached(engine, "gRPC") as channel:
        query = testing.datastore_client(channel).query(kind="LargeCharacter")
        query.add_filter(filter=where("family", "=", "Stark"))
        query.add_filter(filter=where("alive", "=", value=False))
        for limit, offset, expected in ((200, 1100, 200), (100, 2450, 50), (200, 3500, 0)):
            assert len(list(query.fetch(limit=limit, offset=offset))) == expected


def test_many_results_come_in_several_pages(engine: inprocess.Engine) -> None:
    many(engine, "timestamp_key", 2000, lambda _: {})
    query = testing.datastore_client(inprocess.Channel(engine)).query(kind="timestamp_key")
    pages = [[each.key for each in page] for page in query.fetch().pages]
    keys = [key for page in pages for key in page]
    assert len(pages) > 1
    assert len(set(keys)) == len(keys) == 2000
    assert [each.key for each in query.fetch(offset=1, limit=1999)] == keys[1:]


@pytest.mark.slow
def test_offsets_count_the_results_of_a_merge_join(engine: inprocess.Engine) -> None:
    """Of the 4,014 entities, 14 match both filters and are far apart."""

    def properties(number: int) -> dict[str, dict[str, int]]:
        own = number % 286 == 0 and number < 14 * 286
        return {
            "a": {"integer_value": 1 if own else number % 2},
            "b": {"integer_value": 1 if own else 1 - number % 2},
        }

    many(engine, "MergeJoin", 4014, properties)
    client = testing.datastore_client(inprocess.Channel(engine))
    query = client.query(kind="MergeJoin")
    query.add_filter(filter=where("a", "=", 1))
    query.add_filter(filter=where("b", "=", 1))
    for offset in range(15):
        assert len(list(query.fetch(offset=offset, limit=20))) == 14 - offset
