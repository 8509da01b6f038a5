"""Reads of the past: the range of readable moments, and the old state at each moment."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import timestamp_pb2
from hypothesis import given, settings
from hypothesis import strategies as st

from datastore_emulator import inprocess
from datastore_emulator.storage import file_store
from emulator.tests.support import service_calls, shifted_clock
from emulator.tests.support.service_calls import assert_refused

COMPOSITES = """
indexes:
- kind: T
  properties:
  - name: a
  - name: b
    direction: desc
- kind: T
  ancestor: yes
  properties:
  - name: a
"""


def micros(timestamp: timestamp_pb2.Timestamp) -> int:
    return timestamp.seconds * 1_000_000 + timestamp.nanos // 1000


def at(moment: int) -> dict[str, Any]:
    return {"read_time": {"seconds": moment // 1_000_000, "nanos": moment % 1_000_000 * 1000}}


def put(service: service_calls.Service, key: Any, /, **properties: Any) -> int:
    """Put an entity and return the time of the commit."""
    return micros(service.put(key, **properties).mutation_results[0].update_time)


class Still:
    """A stopped clock that a test can move."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def still() -> Still:
    return Still()


@pytest.fixture
def opened(
    still: Still, tmp_path: Path, make_service: type[service_calls.Service]
) -> Iterator[Callable[..., Any]]:
    engines = []

    def open_engine(**options: Any) -> service_calls.Service:
        engine = inprocess.open_engine(tmp_path / "data", clock=still, durability="fast", **options)
        engines.append(engine)
        return make_service(inprocess.Channel(engine))

    yield open_engine
    for engine in engines:
        engine.close()


def test_a_lookup_of_the_past_finds_the_old_state(service: service_calls.Service) -> None:
    key = service.key("T", 1)
    first = put(service, key, a=1)
    second = put(service, key, a=2)
    service.delete(key)
    assert service.get(key, **at(first - 1)) is None
    assert service.get(key, **at(first)) == {"a": 1}
    assert service.get(key, **at(second - 1)) == {"a": 1}
    assert service.get(key, **at(second)) == {"a": 2}
    assert service.get(key) is None


def test_an_entity_of_the_past_has_the_version_and_times_it_had(
    service: service_calls.Service,
) -> None:
    key = service.key("T", 1)
    first = put(service, key, a=1)
    second = put(service, key, a=2)
    put(service, key, a=3)
    answer = service.lookup(key, service.key("T", 9), **at(second))
    found = answer.found[0]
    assert (found.version, micros(found.update_time)) == (second, second)
    assert micros(found.create_time) == first
    assert micros(answer.read_time) == answer.missing[0].version == second


def test_a_query_of_the_past_lists_entities_deleted_or_changed_since(
    service: service_calls.Service,
) -> None:
    keys = [service.key("T", n) for n in (1, 2, 3)]
    moment = 0
    for n, key in enumerate(keys):
        moment = put(service, key, a=n, tag=["x", "y"])
    service.delete(keys[0])
    service.put(keys[1], a=9)
    service.put(service.key("T", 4), a=5)
    past = at(moment)
    asked = service.query("T", order=["a"])
    assert [each.entity.key.path[-1].id for each in service.results(asked, **past)] == [1, 2, 3]
    assert [service.plain(each.entity)["a"] for each in service.results(asked, **past)] == [0, 1, 2]
    tagged = service.query("T", ("tag", "=", "x"), ("tag", "=", "y"))
    assert len(service.results(tagged, **past)) == 3
    assert service.count(tagged, None, **past) == [3]
    assert service.count(tagged, None) == [1]
    batch = service.batch(asked, **past)
    assert micros(batch.read_time) == batch.snapshot_version == moment


def test_a_read_only_transaction_can_read_the_past(service: service_calls.Service) -> None:
    key = service.key("T", 1)
    moment = put(service, key, a=1)
    service.put(key, a=2)
    transaction = service.begin(read_only=at(moment))
    service.put(key, a=3)
    assert service.get(key, transaction=transaction) == {"a": 1}
    assert service.names(order=["a"], transaction=transaction) == [1]
    with assert_refused("INVALID_ARGUMENT", "read-only"):
        service.commit({"delete": key}, transaction=transaction)
    service.commit(transaction=transaction)
    answer = service.lookup(key, new_transaction={"read_only": at(moment)})
    assert service.plain(answer.found[0].entity) == {"a": 1}
    assert service.get(key, transaction=answer.transaction) == {"a": 1}
    service.rollback(answer.transaction)


def test_a_moment_that_cannot_be_read_is_an_invalid_argument(
    service: service_calls.Service, clock: shifted_clock.ShiftedClock
) -> None:
    key = service.key("T", 1)
    moment = put(service, key, a=1)
    for read_time in (
        at(moment + 60_000_000),
        at(0),
        at(-1),
        at(moment - 3_700_000_000),
        {"read_time": {"seconds": moment // 1_000_000, "nanos": 1}},
        {"read_time": {"seconds": moment // 1_000_000, "nanos": -1000}},
    ):
        with assert_refused("INVALID_ARGUMENT", "read_time"):
            service.get(key, **read_time)
        with assert_refused("INVALID_ARGUMENT", "read_time"):
            service.begin(read_only=read_time)
        with assert_refused("INVALID_ARGUMENT", "read_time"):
            service.batch(service.query(), **read_time)
        with assert_refused("INVALID_ARGUMENT", "read_time"):
            service.count(service.query(), None, **read_time)
    clock.ahead += 3601
    with assert_refused("INVALID_ARGUMENT", "3600 seconds"):
        service.get(key, **at(moment))


def test_nothing_older_than_the_file_can_be_read(opened: Callable[..., Any], still: Still) -> None:
    service = opened()
    with assert_refused("INVALID_ARGUMENT", "history of this data file"):
        service.get(service.key("T", 1), **at(int(still.now * 1e6) - 1))


def test_without_history_read_time_is_not_implemented(opened: Callable[..., Any]) -> None:
    service = opened(history=0)
    moment = put(service, service.key("T", 1), a=1)
    with assert_refused("UNIMPLEMENTED", "read_time"):
        service.get(service.key("T", 1), **at(moment))


def test_the_past_cannot_be_read_through_changes_made_without_history(
    opened: Callable[..., Any],
) -> None:
    without, service = opened(history=0), opened()
    key = service.key("T", 1)
    before = put(service, key, a=1)
    without.put(key, a=2)
    with assert_refused("INVALID_ARGUMENT"):
        service.get(key, **at(before))
    after = put(service, key, a=3)
    service.put(key, a=4)
    assert service.get(key, **at(after)) == {"a": 3}


def test_a_moment_always_reads_the_same(opened: Callable[..., Any], still: Still) -> None:
    service = opened()
    key = service.key("T", 1)
    now = int(still.now * 1e6)
    still.now += 1
    assert service.get(key, **at(now + 1_000_000)) is None
    service.put(key, a=1)
    assert service.get(key, **at(now + 1_000_000)) is None
    assert service.get(key) == {"a": 1}


def test_a_read_of_the_past_waits_for_a_commit_in_progress(
    tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    engine = inprocess.open_engine(tmp_path / "data")
    service = make_service(inprocess.Channel(engine))
    key = service.key("T", 1)
    with engine:
        committed = put(service, key, a=1)
        with engine._storage.write() as writer:
            began = writer.commit_version
            assert engine._storage._connections.turn._lock.locked()
        assert began > committed
        assert service.get(key, **at(began)) == {"a": 1}


def test_a_moment_reads_the_same_while_its_entities_are_deleted(
    opened: Callable[..., Any],
) -> None:
    service = opened()
    moment = 0
    for n in range(1, 9):
        moment = put(service, service.key("T", n), a=n % 3, tag=["x", "y"])
    queries = [
        service.query("T", order=["a"]),
        service.query("T", ("tag", "=", "x"), keys_only=True),
    ]
    before = [service.results(query, **at(moment)) for query in queries]
    transaction = service.begin(read_only=at(moment))
    for n in range(1, 9):
        service.delete(service.key("T", n))
        service.put(service.key("T", n + 100), a=0)
        for query, wanted in zip(queries, before, strict=True):
            assert service.results(query, **at(moment)) == wanted
            assert service.results(query, transaction=transaction) == wanted


def test_expired_history_is_deleted_in_small_steps(
    opened: Callable[..., Any], still: Still
) -> None:
    service = opened(history=100)
    store = service.channel._engine._storage
    for n in range(50):
        service.put(service.key("T", 1), a=n)
    assert kept(store) == 49
    still.now += 101
    sizes = []
    for n in range(100, 130):
        service.put(service.key("T", n), a=n)
        sizes.append(kept(store))
    assert all(before - after <= 4 for before, after in itertools.pairwise(sizes))
    assert sizes[-1] == 0


def kept(store: file_store.FileStore) -> int:
    with store.read() as snapshot:
        return snapshot._connection.execute("SELECT count(*) FROM history").fetchone()[0]


def test_new_entities_cost_no_history(opened: Callable[..., Any]) -> None:
    service = opened()
    for n in range(1, 5):
        service.put(service.key("T", n), a=n)
    assert kept(service.channel._engine._storage) == 0


def test_an_entity_changed_twice_in_one_commit_leaves_one_revision(
    opened: Callable[..., Any],
) -> None:
    service = opened()
    key = service.key("T", 1)
    moment = put(service, key, a=1)
    changes = ({"upsert": service.entity(key, a=n)} for n in (2, 3))
    service.commit(*changes, transaction=service.begin())
    assert kept(service.channel._engine._storage) == 1
    assert service.get(key, **at(moment)) == {"a": 1}
    assert service.names("T", ("a", "=", 2)) == []
    assert service.names("T", ("a", "=", 3)) == [1]


def test_a_new_index_can_read_the_past(opened: Callable[..., Any], index_yaml: Path) -> None:
    early = opened()
    early.put(early.key("T", 3), c=1, a=0)
    moment = put(early, early.key("T", 1), c=1, a=1)
    early.put(early.key("T", 1), c=1, a=5)
    early.put(early.key("T", 2), c=1, a=2)
    late = opened(indexes=index_yaml)
    query = late.query("T", ("c", "=", 1), order=["a"])
    found = late.results(query, **at(moment))
    assert [late.plain(each.entity) for each in found] == [
        {"a": 0, "c": 1},
        {"a": 1, "c": 1},
    ]


def test_an_index_that_is_empty_now_can_read_the_past(
    opened: Callable[..., Any], index_yaml: Path
) -> None:
    early = opened()
    moment = put(early, early.key("T", 1), c=1, a=1)
    early.delete(early.key("T", 1))
    late = opened(indexes=index_yaml)
    found = late.results(late.query("T", ("c", "=", 1), order=["a"]), **at(moment))
    assert [late.plain(each.entity) for each in found] == [{"a": 1, "c": 1}]


VALUES = st.one_of(
    st.none(), st.integers(0, 3), st.lists(st.integers(0, 3), max_size=3), st.just("x")
)
PATHS = st.sampled_from([("T", 1), ("T", 2), ("T", 3), ("T", 1, "T", 4), ("U", 1, "T", 5)])
CHANGES = st.lists(
    st.tuples(PATHS, st.none() | st.fixed_dictionaries({"a": VALUES}, optional={"b": VALUES})),
    min_size=1,
    max_size=3,
)


def everything(service: service_calls.Service, **options: Any) -> tuple[Any, ...]:
    """Return the responses to a few requests of every kind."""
    asked = [
        service.query(None),
        service.query("T"),
        service.query("T", order=["a"]),
        service.query("T", order=["-a"]),
        service.query("T", ("a", "=", 1), ("b", "=", 1)),
        service.query("T", ("a", "in", [0, 2, "x"]), order=["a"]),
        service.query("T", ("a", ">", 1)),
        service.query("T", order=["a", "-b"]),
        service.query("T", ("__key__", "under", service.key("T", 1)), order=["a"]),
        service.query("T", projection=["a"]),
        service.query("T", ("b", ">=", 0), keys_only=True),
        service.query("T", ("a", "!=", 1)),
    ]
    found = [
        [(each.entity.SerializeToString(deterministic=True), each.version) for each in results]
        for results in (service.results(query, **options) for query in asked)
    ]
    kinds = [
        service.results(service.query(kind), **options) for kind in ("__kind__", "__property__")
    ]
    named = [[each.entity for each in results] for results in kinds]
    counts = [service.count(query, None, 2, **options) for query in (asked[0], asked[5], asked[6])]
    return found, named, counts


@pytest.mark.slow
@settings(max_examples=20)
@given(history=st.lists(CHANGES, min_size=2, max_size=8))
def test_every_moment_reads_its_own_state(
    tmp_path_factory: pytest.TempPathFactory,
    make_service: type[service_calls.Service],
    history: list[Any],
) -> None:
    folder = tmp_path_factory.mktemp("past")
    (folder / "index.yaml").write_text(COMPOSITES)
    clock = Still()
    with inprocess.open_engine(None, indexes=folder / "index.yaml", clock=clock) as engine:
        service = make_service(inprocess.Channel(engine))
        seen = []
        for changes in history:
            clock.now += 1
            mutations = [
                {"delete": service.key(*path)}
                if properties is None
                else {"upsert": service.entity(service.key(*path), **properties)}
                for path, properties in changes
            ]
            answer = service.commit(*mutations, transaction=service.begin())
            seen.append((micros(answer.commit_time), everything(service)))
        clock.now += 1
        for moment, answers in seen:
            assert everything(service, **at(moment)) == answers
            assert everything(service, **at(moment + 999_999)) == answers
