"""Hypothesis strategies that draw keys, values, entities, queries and mutations.

The strategies use few keys and few values, so that histories collide. Some of the values are
difficult to order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from emulator.tests.oracle import (
    aggregations,
    datastore,
    metadata,
    mutation_results,
    queries,
    values,
)
from emulator.tests.oracle.queries import And, Compare, Or, Order, Query
from emulator.tests.oracle.values import KEY, Geo, Key, Properties, Timestamp, Value

PLACES = (*3 * (("", ""), ("", ""), ("", "space")), ("other", ""), ("other", "space"))
KINDS = ("K", "K", "K", "L")
SCALARS = ("a", "b")
ARRAYS = ("v", "w")
NAMES = (*SCALARS, *ARRAYS, "o.x")

PATHS: tuple[tuple[tuple[str, int | str | None], ...], ...] = (
    (("K", 1),),
    (("K", 2),),
    (("K", 10),),
    (("K", "a"),),
    (("K", "B"),),
    (("K", 1), ("K", 1)),
    (("K", 1), ("K", "a")),
    (("K", "a"), ("K", 3)),
    (("K", 1), ("L", 1)),
    (("L", 1),),
    (("L", 1), ("K", 1), ("L", "\x00")),
    (("L", "z"), ("K", 1)),
)
ROOTS = ((("K", 1),), (("K", "a"),), (("L", 1),), (("L", "z"),), (("K", 10),))

_key_values = (Key((("K", 1),)), Key((("K", "a"), ("K", 3))), Key((("K", 1),), "space"))
EXOTIC = (
    None,
    True,
    False,
    -1,
    2**63 - 1,
    -(2**63),
    Timestamp(1),
    Timestamp(-1),
    Timestamp(2_000_000),
    "",
    "a",
    "B",
    "a\x00",
    "é",
    "\uffff",
    "\U0001f600",
    b"",
    b"a",
    b"\xff",
    0.0,
    -0.0,
    1.0,
    1.5,
    -2.5,
    math.inf,
    -math.inf,
    math.nan,
    Geo(1.0, -2.0),
    Geo(-1.0, 2.0),
    *_key_values,
)

small = st.sampled_from((0, 1, 2))
doubles = st.sampled_from((math.nan, 0.0, -0.0, 1.0, -math.inf))
contents = st.one_of(small, small, small, doubles, st.sampled_from(EXOTIC))
places = st.sampled_from(PLACES)
own_places = st.sampled_from((("", ""), ("", ""), ("", "space")))
databases = st.sampled_from(("", "", "", "", "", "other"))


@st.composite
def keys(draw: Callable[..., Any], database: str) -> values.Key:
    namespace = draw(st.sampled_from(("", "", "", "space")))
    elsewhere = draw(st.integers(0, 39)) == 17
    path = draw(st.sampled_from(PATHS))
    return Key(path, namespace, "elsewhere" if elsewhere else database)


@st.composite
def incomplete_keys(draw: Callable[..., Any], database: str) -> values.Key:
    whole = draw(keys(database))
    return Key((*whole.path[:-1], (whole.kind, None)), whole.namespace, whole.database)


scalars = st.builds(Value, contents, st.sampled_from((True, True, True, True, False)))
arrays = st.lists(scalars, max_size=3).map(lambda found: Value(tuple(found)))
embedded = st.builds(
    Value,
    st.fixed_dictionaries({}, optional={"x": st.one_of(scalars, arrays), "y": scalars}).map(
        lambda found: Properties(tuple(sorted(found.items())))
    ),
    st.sampled_from((True, True, True, False)),
)
properties = st.fixed_dictionaries(
    {},
    optional={
        "a": scalars,
        "b": scalars,
        "v": st.one_of(arrays, arrays, scalars),
        "w": arrays,
        "o": st.one_of(embedded, st.lists(embedded, max_size=2).map(lambda o: Value(tuple(o)))),
        "o.x": scalars,
    },
).map(lambda found: Properties(tuple(sorted(found.items()))))


# Placeholders for expected versions; the state machine replaces them with real versions.
CURRENT, STALE, AHEAD = -1, -2, 2**62
_numbers = st.sampled_from((1, 2, -3, 2**63 - 1, 1.0, 0.5, -0.0, math.nan, math.inf))
_elements = st.lists(st.builds(Value, contents), max_size=3).map(tuple)
_transforms = st.one_of(
    st.builds(
        mutation_results.Transform,
        st.sampled_from(
            (mutation_results.INCREMENT, mutation_results.MAXIMUM, mutation_results.MINIMUM)
        ),
        st.sampled_from(("a", "b", "v")),
        _numbers,
    ),
    st.builds(
        mutation_results.Transform,
        st.sampled_from((mutation_results.APPEND, mutation_results.REMOVE)),
        st.sampled_from(("a", "v", "w")),
        _elements,
    ),
)
_masks = st.lists(st.sampled_from(("a", "b", "v", "o", "none")), max_size=3, unique=True)
conditions = st.fixed_dictionaries(
    {},
    optional={
        "mask": _masks.map(tuple),
        "transforms": st.lists(_transforms, min_size=1, max_size=3).map(tuple),
        "base_version": st.sampled_from((CURRENT, STALE, 0, AHEAD)),
        "must_hold": st.booleans(),
    },
)


@st.composite
def mutations(draw: Callable[..., Any], database: str) -> datastore.Mutation:
    operation = draw(st.sampled_from(("upsert", "upsert", "upsert", "insert", "update", "delete")))
    if operation == datastore.DELETE:
        return datastore.Mutation(operation, draw(keys(database)))
    whole = operation == datastore.UPDATE or draw(st.integers(0, 4))
    key = draw(keys(database) if whole else incomplete_keys(database))
    made = datastore.Mutation(operation, key, draw(properties))
    return replace(made, **draw(conditions)) if draw(st.integers(0, 2)) == 0 else made


@st.composite
def requests(draw: Callable[..., Any], part: Callable[..., Any], *, most: int) -> tuple[Any, ...]:
    """Draw a database and some of its keys or mutations."""
    database = draw(databases)
    return database, tuple(draw(st.lists(part(database), min_size=1, max_size=most)))


populations = st.dictionaries(
    st.builds(Key, st.sampled_from(PATHS), st.sampled_from(("", "", "", "space"))),
    properties,
    min_size=3,
    max_size=9,
)

names = st.sampled_from(NAMES)
operands = st.one_of(small, small, small, contents)
ranges = st.sampled_from(("<", "<=", ">", ">="))


@st.composite
def equalities(draw: Callable[..., Any], name: Any = names) -> queries.Compare:
    return Compare(draw(name), "=", draw(operands))


@st.composite
def choices(draw: Callable[..., Any], name: Any = names) -> queries.Compare:
    return Compare(draw(name), "in", tuple(draw(st.lists(operands, min_size=1, max_size=4))))


@st.composite
def inequalities(draw: Callable[..., Any], name: str) -> queries.Compare:
    return Compare(name, draw(ranges), draw(operands))


@st.composite
def exclusions(draw: Callable[..., Any], name: str) -> queries.Compare:
    if draw(st.booleans()):
        return Compare(name, "!=", draw(operands))
    return Compare(name, "not in", tuple(draw(st.lists(operands, min_size=1, max_size=3))))


@st.composite
def key_filters(draw: Callable[..., Any], place: tuple[str, str]) -> queries.Compare:
    database, namespace = place
    key = st.sampled_from(PATHS).map(lambda path: Key(path, namespace, database))
    if draw(st.booleans()):
        return Compare(KEY, draw(st.sampled_from(("=", "<", "<=", ">", ">="))), draw(key))
    return Compare(KEY, "in", tuple(draw(st.lists(key, min_size=1, max_size=3))))


@st.composite
def filter_parts(
    draw: Callable[..., Any], place: tuple[str, str], name: str
) -> queries.Compare | queries.Or:
    """Draw a filter or an OR of filters, with all inequalities on one property."""
    shape = draw(st.sampled_from(("=", "=", "=", "in", "!=", "or", "or", "key", "<", "<")))
    if shape == "=":
        return draw(equalities())
    if shape == "in":
        return draw(choices())
    if shape == "!=":
        return draw(exclusions(name))
    if shape == "or":
        parts = st.one_of(equalities(), equalities(), inequalities(name), choices())
        return Or(tuple(draw(st.lists(parts, min_size=1, max_size=3))))
    if shape == "key":
        return draw(key_filters(place))
    return draw(inequalities(name))


@st.composite
def filters(draw: Callable[..., Any], place: tuple[str, str], most: int = 3) -> Any:
    name = draw(names)
    parts = draw(st.lists(filter_parts(place, name), max_size=most))
    if draw(st.integers(0, 9)) == 0:
        parts.append(draw(inequalities(draw(names))))
    if draw(st.integers(0, 4)) == 0:
        database, namespace = place
        root = draw(st.sampled_from(ROOTS))
        parts.append(Compare(KEY, "under", Key(root, namespace, database)))
    if not parts:
        return None
    return parts[0] if len(parts) == 1 and draw(st.booleans()) else And(tuple(parts))


@st.composite
def orders(draw: Callable[..., Any], ranged: set[str]) -> tuple[Any, ...]:
    """Draw orders that mostly begin with the inequality property, as Datastore requires."""
    count = draw(st.sampled_from((0, 0, 0, 1, 1, 2)))
    named = draw(st.lists(names, min_size=count, max_size=count, unique=True))
    if named and draw(st.integers(0, 7)):
        named = [*ranged, *(each for each in named if each not in ranged)][
            : max(count, len(ranged))
        ]
    if draw(st.integers(0, 4)) == 0 and KEY not in named:
        named.append(KEY)
    return tuple(Order(name, draw(st.booleans())) for name in named)


@st.composite
def plain_queries(draw: Callable[..., Any], place: tuple[str, str], most: int = 3) -> queries.Query:
    database, namespace = place
    made = Query("K", draw(filters(place, most)), namespace=namespace, database=database)
    made = Query(
        draw(st.sampled_from(KINDS)),
        made.filter,
        draw(orders(queries.inequality_names(made))),
        namespace=namespace,
        database=database,
    )
    shape = draw(st.integers(0, 9))
    if shape < 6:
        return made
    if shape < 8:
        return replace(made, projection=(KEY,))
    listed = st.lists(names, min_size=1, max_size=2, unique=True)
    projection = tuple(draw(listed))
    if draw(st.integers(0, 2)) == 0:
        projection = tuple(draw(st.permutations((KEY, *projection))))
    if shape == 8:
        return replace(made, projection=projection)
    distinct = tuple(draw(listed))
    projections = ((), distinct, (KEY, *distinct))
    return replace(made, distinct=distinct, projection=draw(st.sampled_from(projections)))


@st.composite
def kindless_queries(draw: Callable[..., Any], place: tuple[str, str]) -> queries.Query:
    database, namespace = place
    parts = []
    if draw(st.booleans()):
        parts.append(draw(key_filters(place)))
    if draw(st.booleans()):
        root = draw(st.sampled_from(ROOTS))
        parts.append(Compare(KEY, "under", Key(root, namespace, database)))
    return Query(
        None,
        And(tuple(parts)) if parts else None,
        draw(st.sampled_from(((), (Order(KEY),), (Order(KEY, is_descending=True),)))),
        draw(st.sampled_from(((), (KEY,)))),
        namespace=namespace,
        database=database,
    )


@st.composite
def metadata_queries(draw: Callable[..., Any], place: tuple[str, str]) -> queries.Query:
    database, namespace = place
    kind = draw(st.sampled_from(metadata.KINDS))
    named: st.SearchStrategy[Any] = st.sampled_from(("K", "L", "M", "space", "a")).map(
        lambda name: ((kind, name),)
    )
    if kind == metadata.PROPERTY:
        named = st.sampled_from(NAMES).map(lambda name: ((metadata.KIND, "K"), (kind, name)))
    parts = []
    for _ in range(draw(st.sampled_from((0, 0, 1, 2)))):
        key = Key(draw(named), namespace, database)
        parts.append(Compare(KEY, draw(st.sampled_from(("=", "<", "<=", ">", ">="))), key))
    if kind == metadata.PROPERTY and draw(st.booleans()):
        root = Key(((metadata.KIND, draw(st.sampled_from("KL"))),), namespace, database)
        parts.append(Compare(KEY, "under", root))
    return Query(
        kind,
        And(tuple(parts)) if parts else None,
        projection=draw(st.sampled_from(((), (KEY,)))),
        namespace=namespace,
        database=database,
    )


@st.composite
def all_queries(draw: Callable[..., Any]) -> queries.Query:
    kinds = (*6 * (plain_queries,), kindless_queries, kindless_queries, metadata_queries)
    return draw(draw(st.sampled_from(kinds))(draw(places)))


@st.composite
def wide_queries(draw: Callable[..., Any]) -> queries.Query:
    """Draw a query that finds many entities in the default database and so causes conflicts."""
    return draw(plain_queries(draw(own_places), most=1))


offsets = st.sampled_from((0, 0, 0, 1, 2))
limits = st.sampled_from((None, None, 0, 1, 2, 3))
aggregation = st.one_of(
    st.builds(aggregations.Aggregation, st.just("count"), up_to=st.sampled_from((None, 0, 1, 2))),
    st.builds(aggregations.Aggregation, st.sampled_from(("sum", "avg")), st.sampled_from(SCALARS)),
)
