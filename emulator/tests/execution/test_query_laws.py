"""Laws of queries: index scans find the same results as a search of all entities, for any query.

The oracle does the search. Each kind is used only once, with only the indexes that the engine
recommends for one query. This tests the recommendation, and makes the order of a projection
predictable.
"""

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import grpc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datastore_emulator import inprocess
from datastore_emulator.encoding import index_yaml
from emulator.tests.oracle import messages, queries, query_results, values
from emulator.tests.oracle.queries import And, Compare, Or, Order, Query
from emulator.tests.oracle.values import KEY, Key
from emulator.tests.support import service_calls

NAMES = ("a", "b", "c")
VALUES = st.sampled_from([None, 0, 1, 2, 3, True, b"z", "x", "y\x00", 1.0, -0.0, 0.0, math.nan])
NUMBERS = st.sampled_from([0, 1, 2, 3])
PATHS = st.sampled_from(
    [("K", 1), ("K", 2), ("K", "n"), ("A", 1, "K", 1), ("A", 1, "K", 2), ("A", 2, "K", "m"),
     ("A", 1, "B", 5, "K", 3), ("K", 1, "K", 4)]
)  # fmt: skip
HELD = st.one_of(NUMBERS, NUMBERS, VALUES, st.lists(st.one_of(NUMBERS, VALUES), max_size=3))
PROPERTIES = st.one_of(
    st.fixed_dictionaries(dict.fromkeys(NAMES, HELD)),
    st.dictionaries(st.sampled_from(NAMES), HELD, min_size=1),
)
ENTITIES = st.dictionaries(PATHS, PROPERTIES, min_size=3, max_size=8)
CHANGES = st.tuples(PATHS, st.none() | PROPERTIES)
COMPARED = st.one_of(NUMBERS, NUMBERS, VALUES)
COMPARISONS = st.sampled_from(["=", "=", "=", "<", "<=", ">", ">=", "!="])
LEAVES = st.one_of(
    st.tuples(st.sampled_from(NAMES), COMPARISONS, COMPARED),
    st.tuples(st.sampled_from(NAMES), COMPARISONS, COMPARED),
    st.tuples(
        st.sampled_from(NAMES),
        st.sampled_from(["in", "in", "not in"]),
        st.lists(COMPARED, min_size=1, max_size=3),
    ),
    st.tuples(st.just(KEY), COMPARISONS, st.one_of(PATHS, st.just(("J", 1)))),
    st.tuples(st.just(KEY), st.just("in"), st.lists(PATHS, min_size=1, max_size=2)),
)
TREES = st.one_of(
    LEAVES,
    st.tuples(st.just("and"), LEAVES, LEAVES),
    st.tuples(st.just("or"), LEAVES, LEAVES),
    st.tuples(st.just("or"), LEAVES, st.tuples(st.just("and"), LEAVES, LEAVES)),
    st.tuples(st.just("and"), LEAVES, st.tuples(st.just("or"), LEAVES, LEAVES)),
    st.tuples(st.sampled_from(["and", "or"]), LEAVES, LEAVES, LEAVES, LEAVES),
)
UNDER = st.sampled_from([("A", 1), ("A", 2), ("K", 1), ("Z", 9)])
WHERE = st.one_of(
    st.none(),
    TREES,
    TREES,
    st.builds(lambda tree, path: ("and", tree, (KEY, "under", path)), TREES, UNDER),
)
SOME = st.lists(st.sampled_from(NAMES), unique=True, max_size=2).map(tuple)
ORDERS = st.one_of(
    st.just(()),
    st.lists(
        st.builds(Order, st.sampled_from((*NAMES, KEY)), st.booleans()),
        max_size=3,
    ).map(tuple),
)


class Asked(NamedTuple):
    """A query for a kind that is not named yet; its paths use the kind K."""

    where: tuple[Any, ...] | None
    orders: tuple[Any, ...]
    projection: tuple[Any, ...]
    distinct: tuple[Any, ...]


QUERIES = st.builds(
    Asked,
    where=WHERE,
    orders=ORDERS,
    projection=st.one_of(st.just(()), st.just(()), st.just((KEY,)), SOME),
    distinct=st.one_of(st.just(()), st.just(()), SOME),
)
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def shared() -> Iterator[inprocess.Engine]:
    with inprocess.open_engine(None, indexes=None) as engine:
        yield engine


@pytest.fixture
def make_world(
    shared: inprocess.Engine, make_service: type[service_calls.Service]
) -> Callable[..., Any]:
    return lambda entities: World(shared, make_service(inprocess.Channel(shared)), entities)


def filter_of(tree: tuple[Any, ...] | None, key: Callable[..., Any]) -> Any:
    """Convert a filter tree to the oracle's form; `key` converts a path to a key."""
    match tree:
        case None:
            return None
        case ("and", *parts):
            return And(tuple(filter_of(part, key) for part in parts))
        case ("or", *parts):
            return Or(tuple(filter_of(part, key) for part in parts))
    name, operator, operand = tree
    if operator in ("in", "not in"):
        return Compare(name, operator, tuple(map(key, operand) if name == KEY else operand))
    return Compare(name, operator, key(operand) if name == KEY else operand)


def store(
    service: service_calls.Service, entities: dict[values.Key, values.Properties]
) -> dict[values.Key, query_results.Stored]:
    """Put entities and return them as the oracle's objects."""
    mutations = [{"upsert": messages.entity(*each)} for each in entities.items()]
    told = map(messages.told, service.commit(*mutations).mutation_results)
    return {
        key: query_results.Stored(key, properties, version=each.version, created=each.created)
        for (key, properties), each in zip(entities.items(), told, strict=True)
    }


class World:
    """A kind with its entities and queries."""

    def __init__(
        self, engine: inprocess.Engine, service: service_calls.Service, entities: dict[Any, Any]
    ) -> None:
        self.engine = engine
        self.service = service
        # Each kind is used only once, so definitions and entries of earlier kinds cost nothing.
        self.kind = f"K{next(numbers)}"
        self.define(())
        self.defined = ()
        self.state = store(
            service,
            {self.key(path): values.properties(**held) for path, held in entities.items()},
        )

    def key(self, path: tuple[Any, ...]) -> values.Key:
        kinds = [self.kind if kind == "K" else kind for kind in path[::2]]
        return Key(tuple(zip(kinds, path[1::2], strict=True)))

    def query(self, asked: Asked) -> queries.Query:
        return Query(self.kind, filter_of(asked.where, self.key), *asked[1:])

    def define(self, wanted: tuple[Any, ...]) -> None:
        with self.engine._storage.write() as writer:
            writer.define(wanted)
        self.defined = wanted

    def message(self, query: queries.Query, limit: int | None = None, **paging: Any) -> Any:
        made = messages.query(query)
        for name, field in paging.items():
            setattr(made, name, field)
        if limit is not None:
            made.limit.value = limit
        return made

    def batch(self, query: queries.Query, **paging: Any) -> Any:
        """Run one request, with the indexes that the engine recommends for it."""
        message = self.message(query, **paging)
        try:
            return self.service.batch(message)
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
                raise
            text = error.details().partition("recommended index is:\n")[2]
            self.define((*self.defined, *index_yaml.parse(f"indexes:\n{text}", "recommended")))
        return self.service.batch(message)


def found(query: queries.Query, batch: Any) -> list[Any]:
    return [messages.result_from(query, each) for each in batch.entity_results]


def expected(query: queries.Query, state: dict[values.Key, query_results.Stored]) -> list[Any]:
    """Return the expected results, each with its entity, version and times."""
    return [messages.result(query, each) for each in query_results.run(query, state)]


@pytest.mark.slow
@settings(max_examples=settings.default.max_examples * 3)
@given(entities=ENTITIES, asked=QUERIES, data=st.data())
def test_every_query_finds_what_a_full_search_finds(
    make_world: Callable[..., Any], entities: dict[Any, Any], asked: Asked, data: Any
) -> None:
    world = make_world(entities)
    query = world.query(asked)
    if queries.complaints(query):
        with pytest.raises(grpc.RpcError) as caught:
            world.batch(query)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        return
    wanted = expected(query, world.state)
    everything = world.batch(query)
    assert found(query, everything) == wanted
    assert everything.more_results == 3
    assert world.service.count(world.message(query, limit=0), None) == [0]
    pages(world, query, wanted, data)
    reversed_pages(world, query, everything, wanted)


def pages(world: World, query: queries.Query, wanted: list[Any], data: Any) -> None:
    """Page through the results up to an end cursor, using cursors, limits and offsets."""
    cursor, at = b"", 0
    while at < len(wanted):
        limit = data.draw(st.integers(1, 4), label="limit")
        offset = data.draw(st.integers(0, 2), label="offset")
        batch = world.batch(query, start_cursor=cursor, limit=limit, offset=offset)
        part = wanted[at + offset : at + offset + limit]
        assert found(query, batch) == part
        assert batch.skipped_results == min(offset, len(wanted) - at)
        assert batch.more_results == (2 if len(part) == limit else 3)
        back = world.batch(query, end_cursor=batch.end_cursor)
        assert found(query, back) == wanted[: at + offset + limit]
        cursor, at = batch.end_cursor, at + offset + limit
    assert world.batch(query, start_cursor=cursor).more_results == 3
    assert not world.batch(query, start_cursor=cursor).entity_results


def reversed_pages(world: World, query: queries.Query, everything: Any, wanted: list[Any]) -> None:
    """Reverse the query at each cursor, where possible."""
    if not query.orders or query.orders[-1].name != KEY or query.distinct:
        return
    if any(len(ranks) > 1 for each in world.state.values() for ranks in each.ranks.values()):
        return  # An array has a different position in the reversed order
    turned = query.reversed()
    for place, result in enumerate(everything.entity_results):
        batch = world.batch(turned, start_cursor=result.cursor)
        assert found(turned, batch) == wanted[: place + 1][::-1]


@given(entities=ENTITIES, asked=QUERIES, change=CHANGES, data=st.data())
def test_a_change_of_a_querys_results_aborts_its_transaction(
    make_world: Callable[..., Any],
    entities: dict[Any, Any],
    asked: Asked,
    change: tuple[Any, ...],
    data: Any,
) -> None:
    world = make_world(entities)
    service, query = world.service, world.query(asked)
    paging = {"offset": data.draw(st.integers(0, 2)), "limit": data.draw(st.integers(1, 9))}
    try:
        cursor = world.batch(query, limit=data.draw(st.integers(0, 2))).end_cursor
    except grpc.RpcError:
        return
    message = world.message(query, start_cursor=cursor, **paging)
    transaction = service.begin()
    seen = service.batch(message, transaction=transaction)
    path, changed = change
    key = messages.key(world.key(path))
    if changed is None:
        service.delete(key)
    else:
        service.put(key, **changed)
    now = service.batch(message)
    assert service.batch(message, transaction=transaction).entity_results == seen.entity_results
    unread = {"upsert": service.entity(service.key("Unread", 1))}
    if now.entity_results == seen.entity_results and now.skipped_results == seen.skipped_results:
        with contextlib.suppress(grpc.RpcError):
            service.commit(unread, transaction=transaction)
        return
    with pytest.raises(grpc.RpcError) as caught:
        service.commit(unread, transaction=transaction)
    assert caught.value.code() is grpc.StatusCode.ABORTED


KEYS = st.one_of(PATHS, st.sampled_from([("A", 1), ("A", 2), ("Z", "z"), ("A", 1, "B", 5)]))
KEY_LEAVES = st.one_of(
    st.tuples(st.just(KEY), COMPARISONS, KEYS),
    st.tuples(st.just(KEY), st.just("in"), st.lists(KEYS, min_size=1, max_size=3)),
)
KEY_TREES = st.one_of(
    KEY_LEAVES,
    st.tuples(st.sampled_from(["and", "or"]), KEY_LEAVES, KEY_LEAVES),
    st.builds(lambda tree, path: ("and", tree, (KEY, "under", path)), KEY_LEAVES, UNDER),
)


@given(paths=st.sets(KEYS, min_size=1), where=KEY_TREES, limit=st.integers(1, 9))
def test_a_kindless_query_finds_what_a_full_search_finds(
    shared: inprocess.Engine,
    make_service: type[service_calls.Service],
    paths: set[Any],
    where: tuple[Any, ...],
    limit: int,
) -> None:
    service = make_service(inprocess.Channel(shared))
    namespace = f"n{next(numbers)}"

    def key(path: tuple[Any, ...]) -> values.Key:
        return Key(tuple(zip(path[::2], path[1::2], strict=True)), namespace)

    state = store(service, {key(path): values.properties() for path in paths})
    query = Query(None, filter_of(where, key), namespace=namespace)
    message = messages.query(query)
    message.limit.value = limit
    if queries.complaints(query):
        with pytest.raises(grpc.RpcError) as caught:
            service.batch(message, namespace)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        return
    answered = []
    while batch := service.batch(message, namespace).entity_results:
        answered += [messages.result_from(query, each) for each in batch]
        message.start_cursor = batch[-1].cursor
    assert answered == expected(query, state)
