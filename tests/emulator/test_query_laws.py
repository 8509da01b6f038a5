"""Laws of queries: whatever is asked, index walks find what looking at every entity finds.

Indexes are those that the engine recommends, so the recommendation is under test, too.
"""

import contextlib
import itertools
import math

import grpc
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator import indexes, inprocess
from tests.emulator import bruteforce

NAMES = ("a", "b", "c")
KEY = bruteforce.KEY
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
QUERIES = st.builds(
    bruteforce.Asked,
    where=WHERE,
    order=st.one_of(
        st.just(()),
        st.lists(st.tuples(st.sampled_from((*NAMES, KEY)), st.booleans()), max_size=3).map(tuple),
    ),
    projection=st.one_of(st.just(()), st.just(()), st.just((KEY,)), SOME),
    distinct=st.one_of(st.just(()), st.just(()), SOME),
)  # fmt: skip
numbers = itertools.count(1)


@pytest.fixture(scope="module")
def shared():
    with inprocess.open_engine(None, indexes=None) as engine:
        yield engine


@pytest.fixture
def make_world(shared, make_service):
    return lambda entities: World(shared, make_service(inprocess.Channel(shared)), entities)


class World:
    """One kind with entities, and the queries on it."""

    def __init__(self, engine, service, entities):
        self.engine = engine
        self.service = service
        # Kinds are never used twice: definitions and entries of old ones cost nothing then.
        self.kind = f"K{next(numbers)}"
        self.define(())
        self.defined = ()
        mutations = [
            {"upsert": service.entity(self.key(path), **held)} for path, held in entities.items()
        ]
        service.commit(*mutations)
        self.entities = [
            (path, {name: ranks(held) for name, held in properties.items()})
            for path, properties in entities.items()
        ]

    def key(self, path):
        names = [self.kind if name == "K" else name for name in path[::2]]
        return self.service.key(*itertools.chain(*zip(names, path[1::2], strict=True)))

    def path(self, key):
        kinds = ["K" if each.kind == self.kind else each.kind for each in key.path]
        names = [each.name or each.id for each in key.path]
        return tuple(itertools.chain(*zip(kinds, names, strict=True)))

    def define(self, wanted):
        with self.engine._storage.write() as writer:
            writer.define(wanted)
        self.defined = wanted

    def message(self, asked, **paging):
        where = [] if asked.where is None else [self.filter(asked.where)]
        query = self.service.query(
            self.kind,
            *where,
            order=["-" * down + name for name, down in asked.order],
            projection=asked.projection,
            distinct=asked.distinct,
            **paging,
        )
        if where:  # without the AND around it
            inner = query.filter.composite_filter.filters[0]
            query.filter.CopyFrom(type(inner).FromString(inner.SerializeToString()))
        return query

    def filter(self, tree):
        if tree[0] in ("and", "or"):
            return (tree[0], *map(self.filter, tree[1:]))
        name, operator, value = tree
        if name == KEY:
            value = [self.key(each) for each in value] if operator == "in" else self.key(value)
        return name, operator, value

    def batch(self, asked, **paging):
        """Run one request, with the indexes that the engine recommends for it."""
        query = self.message(asked, **paging)
        try:
            return self.service.batch(query)
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
                raise
            text = error.details().partition("recommended index is:\n")[2]
            self.define((*self.defined, *map(indexes._from_yaml, yaml.safe_load(text))))
        return self.service.batch(query)

    def result(self, found):
        values = found.entity.properties
        return self.path(found.entity.key), {
            name: bruteforce.rank(self.service.python(value)) for name, value in values.items()
        }


def ranks(held):
    if isinstance(held, list):
        return {bruteforce.rank(each) for each in held} or {bruteforce.rank(None)}
    return {bruteforce.rank(held)}


def expected(world, asked):
    """Return the results as pairs of a path and the projected values by name."""
    names = [] if asked.projection == (KEY,) else asked.projection
    found = bruteforce.answer(world.entities, asked)
    return [(path, dict(zip(names, values, strict=True))) for path, values in found]


def results(world, asked, batch):
    if asked.projection:
        return [world.result(each) for each in batch.entity_results]
    return [(world.path(each.entity.key), {}) for each in batch.entity_results]


@settings(max_examples=settings.default.max_examples * 3)
@given(entities=ENTITIES, asked=QUERIES, data=st.data())
def test_every_query_finds_what_looking_at_every_entity_finds(make_world, entities, asked, data):
    world = make_world(entities)
    try:
        wanted = expected(world, asked)
    except bruteforce.Refused:
        with pytest.raises(grpc.RpcError) as caught:
            world.batch(asked)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        return
    named = [name for name, _ in bruteforce.shape(asked)[1]]
    if KEY in named and not {*asked.projection} <= {*named}:
        return  # not implemented: no index has a property behind the key
    everything = world.batch(asked)
    assert results(world, asked, everything) == wanted
    assert everything.more_results == 3
    assert world.service.count(world.message(asked, limit=0), None) == [0]
    pages(world, asked, wanted, data)
    reversed_pages(world, asked, everything, wanted)


def pages(world, asked, wanted, data):
    """Walk on from cursor to cursor with limits and offsets, up to an end cursor."""
    cursor, at = b"", 0
    while at < len(wanted):
        limit = data.draw(st.integers(1, 4), label="limit")
        offset = data.draw(st.integers(0, 2), label="offset")
        batch = world.batch(asked, start_cursor=cursor, limit=limit, offset=offset)
        part = wanted[at + offset : at + offset + limit]
        assert results(world, asked, batch) == part
        assert batch.skipped_results == min(offset, len(wanted) - at)
        assert batch.more_results == (2 if len(part) == limit else 3)
        back = world.batch(asked, end_cursor=batch.end_cursor)
        assert results(world, asked, back) == wanted[: at + offset + limit]
        cursor, at = batch.end_cursor, at + offset + limit
    assert world.batch(asked, start_cursor=cursor).more_results == 3
    assert not world.batch(asked, start_cursor=cursor).entity_results


def reversed_pages(world, asked, everything, wanted):
    """Turn round at each cursor, where that is possible."""
    if not asked.order or asked.order[-1][0] != KEY or asked.distinct:
        return
    turned = bruteforce.Asked(
        where=asked.where,
        order=tuple((name, not down) for name, down in asked.order),
        projection=asked.projection,
    )
    held = [len(values) for _, properties in world.entities for values in properties.values()]
    if max(held, default=1) > 1:
        return  # an array has another place in the reversed order
    for place, result in enumerate(everything.entity_results):
        batch = world.batch(turned, start_cursor=result.cursor)
        assert results(world, turned, batch) == wanted[: place + 1][::-1]


@given(entities=ENTITIES, asked=QUERIES, change=CHANGES, data=st.data())
def test_a_change_of_what_a_query_would_answer_aborts_its_transaction(
    make_world, entities, asked, change, data
):
    world = make_world(entities)
    service = world.service
    paging = {"offset": data.draw(st.integers(0, 2)), "limit": data.draw(st.integers(1, 9))}
    try:
        cursor = world.batch(asked, limit=data.draw(st.integers(0, 2))).end_cursor
    except grpc.RpcError:
        return
    query = world.message(asked, start_cursor=cursor, **paging)
    transaction = service.begin()
    seen = service.batch(query, transaction=transaction)
    path, changed = change
    key = world.key(path)
    if changed is None:
        service.delete(key)
    else:
        service.put(key, **changed)
    now = service.batch(query)
    assert service.batch(query, transaction=transaction).entity_results == seen.entity_results
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
def test_a_kindless_query_finds_what_looking_at_every_key_finds(
    shared, make_service, paths, where, limit
):
    service = make_service(inprocess.Channel(shared))
    namespace = f"n{next(numbers)}"

    def key(path):
        return service.key(*path, namespace=namespace)

    def keyed(tree):
        if tree[0] in ("and", "or"):
            return (tree[0], *map(keyed, tree[1:]))
        return (*tree[:2], list(map(key, tree[2])) if tree[1] == "in" else key(tree[2]))

    service.commit(*({"upsert": service.entity(key(path))} for path in paths))
    query = service.query(None, keyed(where), limit=limit)
    try:
        wanted = bruteforce.answer([(path, {}) for path in paths], bruteforce.Asked(where))
    except bruteforce.Refused:
        with pytest.raises(grpc.RpcError) as caught:
            service.batch(query, namespace)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        return
    found = []
    while batch := service.batch(query, namespace).entity_results:
        found += [each.entity.key for each in batch]
        query.start_cursor = batch[-1].cursor
    assert found == [key(path) for path, _ in wanted]
