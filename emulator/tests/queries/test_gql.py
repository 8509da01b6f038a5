"""GQL: the query that each text means, the same results as that query, and refusals."""

# ruff: noqa: S608 - GQL only reads

import contextlib
import datetime as dt
import math
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from hypothesis import given, strategies

from datastore_emulator import errors, inprocess
from datastore_emulator.queries import gql_parser
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused, message, put_all

SERVICE = service_calls.Service(None, "test")  # type: ignore[arg-type]
PARTITION = message("PartitionId")(project_id="test")
ONE, LIST = SERVICE.value(1), SERVICE.value([1, "x"])
NAMED: dict[str, Any] = {"one": {"value": ONE}, "list": {"value": LIST}, "from": {"cursor": b"c"}}

MEANINGS: list[tuple[str, dict[str, Any]]] = [
    ("SELECT *", {"kind": None}),
    ("select\t* From\n T", {}),
    ("SELECT*FROM`a``b\\n \\%\\Z`", {"kind": "a`b\n \\%\x1a"}),
    ("SELECT * FROM \u00e9$1", {"kind": "\u00e9$1"}),
    ("SELECT __key__ FROM T", {"keys_only": True}),
    ("SELECT key, a.b, T.c, T.T.d, U.e, `T.f`, `T`.g FROM T",
     {"projection": ["key", "a.b", "c", "T.d", "U.e", "T.f", "g"]}),
    ("SELECT DISTINCT a, T.b FROM T", {"projection": ["a", "b"], "distinct": ["a", "b"]}),
    ("SELECT DISTINCT ON (a) a, b FROM T", {"projection": ["a", "b"], "distinct": ["a"]}),
    ("SELECT DISTINCT ON (T.a) * FROM T", {"distinct": ["a"]}),
    ("SELECT * FROM T ORDER BY a, T.b DESC, __key__ ASC", {"order": ["a", "-b", "__key__"]}),
    ("SELECT * FROM T LIMIT 5 OFFSET +3", {"limit": 5, "offset": 3}),
    ("SELECT * FROM T LIMIT 0", {"limit": 0}),
    ("SELECT * FROM T LIMIT @one OFFSET @1", {"limit": 1, "offset": 1}),
    ("SELECT * FROM T LIMIT @from", {"end_cursor": b"c"}),
    ("SELECT * FROM T LIMIT FIRST(@from, 2)", {"end_cursor": b"c", "limit": 2}),
    ("SELECT * FROM T LIMIT first(2, @from)", {"end_cursor": b"c", "limit": 2}),
    ("SELECT * FROM T OFFSET @from", {"start_cursor": b"c"}),
    ("SELECT * FROM T OFFSET @from + 17", {"start_cursor": b"c", "offset": 17}),
    ("SELECT * FROM T OFFSET @from + +17", {"start_cursor": b"c", "offset": 17}),
    ("SELECT * FROM T OFFSET @from + @one", {"start_cursor": b"c", "offset": 1}),
]  # fmt: skip
KEY = SERVICE.key("A", 1, "B", "x")
CONDITIONS: list[tuple[str, tuple[Any, ...]]] = [
    ("a = 1", ("a", "=", 1)),
    ("T.a=-9223372036854775808", ("a", "=", -(2**63))),
    ("a < +0012", ("a", "<", 12)),
    ("a <= -3.", ("a", "<=", -3.0)),
    ("a > +.1", ("a", ">", 0.1)),
    ("a >= 314159e-5", ("a", ">=", 3.14159)),
    ("a != 6.022E23", ("a", "!=", 6.022e23)),
    ("a = 1e999", ("a", "=", math.inf)),
    ("1 = a", ("a", "=", 1)),
    ("1 != a", ("a", "!=", 1)),
    ("1 < a", ("a", ">", 1)),
    ("1 <= a", ("a", ">=", 1)),
    ("1 > a", ("a", "<", 1)),
    ("1 >= T.a", ("a", "<=", 1)),
    ("a = TRUE", ("a", "=", True)),
    ("a = false", ("a", "=", False)),
    ("a = NULL", ("a", "=", None)),
    ("a IS NULL", ("a", "=", None)),
    ("first = 'Joe''s \"'", ("first", "=", "Joe's \"")),
    ('a = "x ""y"" \'z\'"', ("a", "=", "x \"y\" 'z'")),
    (r"a = '\\ \0 \b \n \r \t \Z \' \" \` \% \_'",
     ("a", "=", "\\ \0 \b \n \r \t \x1a ' \" ` \\% \\_")),
    ("a = BLOB('_-8')", ("a", "=", b"\xff\xef")),
    ("a = BLOB('')", ("a", "=", b"")),
    ("a = DATETIME('2013-09-29T09:30:20.00002-08:00')",
     ("a", "=", dt.datetime(2013, 9, 29, 17, 30, 20, 20, dt.UTC))),
    ("a = datetime('2013-09-29t09:30:20z')",
     ("a", "=", dt.datetime(2013, 9, 29, 9, 30, 20, 0, dt.UTC))),
    ("a = KEY(A, 1, B, 'x')", ("a", "=", KEY)),
    ("a = KEY(PROJECT('test'), NAMESPACE('n'), `A b`, -1)",
     ("a", "=", SERVICE.key("A b", -1, namespace="n"))),
    ("a = KEY(PROJECT, 1)", ("a", "=", SERVICE.key("PROJECT", 1))),
    ("__key__ HAS ANCESTOR KEY(A, 1, B, 'x')", ("__key__", "under", KEY)),
    ("KEY(A, 1, B, 'x') HAS DESCENDANT __key__", ("__key__", "under", KEY)),
    ("a CONTAINS 1", ("a", "=", 1)),
    ("1 IN a", ("a", "=", 1)),
    ("a IN 1", ("a", "=", 1)),
    ("a IN ARRAY(1, 'x')", ("a", "in", [1, "x"])),
    ("a IN @list", ("a", "in", [1, "x"])),
    ('a NOT IN array(@one, "x")', ("a", "not in", [1, "x"])),
    ("a = @one", ("a", "=", 1)),
    ("a = @2", ("a", "=", "two")),
    ("a=1AND b=2and c=3",
     ("and", ("a", "=", 1), ("b", "=", 2), ("c", "=", 3))),
    ("a = 1 OR b = 2 AND c = 3",
     ("or", ("a", "=", 1), ("and", ("b", "=", 2), ("c", "=", 3)))),
    ("((a = 1) OR b = 2) AND c = 3",
     ("and", ("or", ("a", "=", 1), ("b", "=", 2)), ("c", "=", 3))),
]  # fmt: skip
WRONG = [
    ("", "line 1, column 1: found the end, expected SELECT"),
    ("UPDATE T", "column 1: found UPDATE, expected SELECT"),
    ("SELECT FROM T", 'column 8: found FROM, expected DISTINCT, "*" or a name'),
    ("SELECT DISTINCT * FROM T", 'column 17: found "*", expected ON or a name'),
    ("SELECT * FROM select", "column 15: found select, expected a name"),
    ("SELECT * FROM T.U", 'column 16: found ".", expected WHERE'),
    ("SELECT * FROM T;", "column 16: ';' begins"),
    ("SELECT * FROM T\n WHERE a = 'x", "line 2, column 12: \"'\" begins"),
    ("SELECT * FROM T WHERE a = '\\x'", "column 27"),
    ("SELECT * FROM T WHERE a = - 1", "column 27: '-' begins"),
    ("SELECT * FROM T WHERE a == 1", 'column 26: found "=", expected a value'),
    ("SELECT * FROM T WHERE a = b", "column 27: found b, expected a value"),
    ("SELECT * FROM T WHERE a = `KEY`(A, 1)", "column 27"),
    ("SELECT * FROM T WHERE a LIKE 'x'", "column 25: found LIKE, expected"),
    ("SELECT * FROM T WHERE a IS NOT NULL", "column 28: found NOT, expected NULL"),
    ("SELECT * FROM T WHERE KEY(A, 1) HAS ANCESTOR __key__", "expected DESCENDANT"),
    ("SELECT * FROM T WHERE a = FOO(1)", "FOO is not one of ARRAY, BLOB, DATETIME, KEY"),
    ("SELECT * FROM T WHERE a = KEY(A, 1, B)", "column 38"),
    ("SELECT * FROM T WHERE a = KEY(A, 0)", "column 34: a key has no id 0"),
    ("SELECT * FROM T WHERE a = KEY(NAMESPACE('n'), PROJECT('test'), A, 1)", "column 54"),
    ("SELECT * FROM T WHERE a = 9223372036854775808", "column 27: the integer does not fit"),
    (f"SELECT * FROM T WHERE a = {'9' * 9999}", "column 27: the integer does not fit"),
    ("SELECT * FROM T WHERE a = BLOB('/+8=')", "column 32: the blob"),
    ("SELECT * FROM T WHERE a = BLOB('A')", "column 32: the blob"),
    ("SELECT * FROM T WHERE a = DATETIME('2013-09-29 09:30:20Z')", "column 36: the time"),
    ("SELECT * FROM T WHERE a = DATETIME('2013-09-29T09:30:20+00:00')", "column 36: the time"),
    ("SELECT * FROM T WHERE a = DATETIME('2013-02-30T09:30:20Z')", "the time does not exist"),
    ("SELECT * FROM T WHERE a = DATETIME('0001-01-01T00:00:00+01:00')", "does not exist"),
    (f"SELECT * FROM T WHERE {'(' * 9999}", "deeper than 40 levels"),
    ("SELECT * FROM T ORDER a", "column 23: found a, expected BY"),
    ("SELECT * FROM T GROUP BY a", "column 17: found GROUP, expected WHERE"),
    ("SELECT * FROM T LIMIT -1", "column 23: the limit"),
    ("SELECT * FROM T LIMIT 2147483648", "column 23: the limit"),
    ("SELECT * FROM T LIMIT @list", "column 23: the limit"),
    ("SELECT * FROM T LIMIT FIRST(5, 6)", "FIRST needs one cursor and one count"),
    ("SELECT * FROM T OFFSET 3 LIMIT 5", "column 26: found LIMIT, expected the end"),
    ("SELECT * FROM T OFFSET 3 + 4", 'column 26: found "+", expected the end'),
    ("SELECT * FROM T OFFSET @from +17", 'column 30: found "+17", expected "+" or the end'),
    ("SELECT * FROM T OFFSET @from + @from", "the offset must be a count"),
    ("SELECT * FROM T WHERE a = @from", "bound to a cursor"),
    ("SELECT * FROM T WHERE a = @missing", "the named binding @missing is missing"),
    ("SELECT * FROM T WHERE a = @0", "the positional binding @0 is missing"),
    ("SELECT COUNT(*) FROM T", "column 8: found COUNT"),
]  # fmt: skip
AGGREGATIONS: list[tuple[str, dict[str, Any], list[dict[str, Any]]]] = [
    ("SELECT COUNT(*), SUM(T.a) AS s, AVG(b) FROM T", {},
     [{"count": {}}, {"sum": {"property": {"name": "a"}}, "alias": "s"},
      {"avg": {"property": {"name": "b"}}}]),
    ("AGGREGATE COUNT_UP_TO(5) AS `a b`, SUM(T.a) OVER (SELECT * FROM T LIMIT 2 OFFSET 1)",
     {"limit": 2, "offset": 1},
     [{"count": {"up_to": {"value": 5}}, "alias": "a b"}, {"sum": {"property": {"name": "a"}}}]),
]  # fmt: skip


def gql(text: str, *, allow_literals: bool = True, **bindings: Any) -> Any:
    return message("GqlQuery")(query_string=text, allow_literals=allow_literals, **bindings)


def bound(text: str) -> Any:
    """Return a query with values for the named and positional bindings that its text uses."""
    values = [{"value": ONE}, {"value": SERVICE.value("two")}]
    used = 2 if "@2" in text else "@1" in text
    if used == 2:
        text = text.replace("WHERE ", "WHERE z = @1 AND ")
    return gql(text, named_bindings=NAMED, positional_bindings=values[:used])


def meant(where: tuple[Any, ...] | None = None, **fields: Any) -> Any:
    query = SERVICE.query(fields.pop("kind", "T"), **fields)
    if where is not None:
        SERVICE.fill_filter(query.filter, where)
    return query


@pytest.mark.parametrize(("text", "fields"), MEANINGS)
def test_clauses_mean_the_fields_of_a_query(text: str, fields: dict[str, Any]) -> None:
    assert gql_parser.query(bound(text), PARTITION) == meant(**fields)


@pytest.mark.parametrize(("text", "where"), CONDITIONS)
def test_conditions_mean_filters(text: str, where: tuple[Any, ...]) -> None:
    asked = bound(f"SELECT * FROM T WHERE {text}")
    expected = ("and", ("z", "=", 1), where) if "@2" in text else where
    assert gql_parser.query(asked, PARTITION) == meant(expected)


@pytest.mark.parametrize(("text", "fields", "aggregations"), AGGREGATIONS)
def test_aggregations_mean_an_aggregation_query(
    text: str, fields: dict[str, Any], aggregations: list[dict[str, Any]]
) -> None:
    expected = message("AggregationQuery")(nested_query=meant(**fields), aggregations=aggregations)
    assert gql_parser.aggregation_query(gql(text), PARTITION) == expected


@pytest.mark.parametrize(("text", "problem"), WRONG)
def test_a_wrong_text_is_refused_with_its_place(
    near: service_calls.Service, text: str, problem: str
) -> None:
    with assert_refused("INVALID_ARGUMENT", problem):
        near.call("RunQuery", gql_query=bound(text))


@pytest.mark.parametrize(
    "text",
    ["a = 1", "a IS NULL", "a = TRUE", "a = KEY(A, 1)", "a IN ARRAY(@one)", "@one = a AND 'x' = b"],
)
def test_literals_can_be_forbidden(near: service_calls.Service, text: str) -> None:
    for query in (f"SELECT * FROM T WHERE {text}", "SELECT * LIMIT 1", "SELECT * OFFSET 1"):
        asked = gql(query, allow_literals=False, named_bindings=NAMED)
        with assert_refused("INVALID_ARGUMENT", "is not allowed: bind the value"):
            near.call("RunQuery", gql_query=asked)


@pytest.mark.parametrize(
    "bindings",
    [
        {"positional_bindings": [{"value": ONE}]},
        {"named_bindings": {"__x__": {"value": ONE}}},
        {"named_bindings": {"1x": {"value": ONE}}},
        {"named_bindings": {"": {"value": ONE}}},
        {"named_bindings": {"x": {}}},
    ],
)
def test_wrong_bindings_are_refused(near: service_calls.Service, bindings: dict[str, Any]) -> None:
    with assert_refused("INVALID_ARGUMENT", "inding"):
        near.call("RunQuery", gql_query=gql("SELECT *", **bindings))


def test_results_are_those_of_the_query_that_is_returned(service: service_calls.Service) -> None:
    put_all(service, *((number, {"a": number, "b": number % 2}) for number in range(1, 9)))
    partition = {"project_id": "test"}
    for text in (
        "SELECT *",
        "SELECT * FROM T WHERE a >= 3 AND a < 7 ORDER BY a DESC",
        "SELECT a, b FROM T WHERE a > 3 LIMIT 2 OFFSET 1",
        "SELECT DISTINCT b FROM T",
        "SELECT __key__ FROM T WHERE a IN ARRAY(1, 4) OR b = 1",
        "SELECT * FROM T WHERE __key__ HAS ANCESTOR KEY(T, 3)",
    ):
        answer = service.call("RunQuery", gql_query=gql(text), partition_id=partition)
        assert answer.HasField("query")
        assert answer.batch.entity_results == service.batch(answer.query).entity_results
        assert answer.batch.entity_results


def test_a_cursor_continues_and_a_count_skips(service: service_calls.Service) -> None:
    put_all(service, *((number, {}) for number in range(1, 9)))
    start = service.call("RunQuery", gql_query=gql("SELECT * FROM T LIMIT 3")).batch.end_cursor
    end = service.call("RunQuery", gql_query=gql("SELECT * FROM T LIMIT 7")).batch.end_cursor
    page = gql(
        "SELECT * FROM T LIMIT @end OFFSET @start + 1",
        named_bindings={"start": {"cursor": start}, "end": {"cursor": end}},
    )
    for _ in range(2):
        found = service.call("RunQuery", gql_query=page)
        names = [service_calls.last(each.entity.key) for each in found.batch.entity_results]
        assert (names, found.query.start_cursor) == ([5, 6, 7], start)


def test_aggregations_run_and_are_returned(service: service_calls.Service) -> None:
    put_all(service, *((number, {"a": number}) for number in range(1, 5)))
    asked = gql("SELECT COUNT(*) AS n, SUM(a) AS s FROM T WHERE a > 1")
    answer = service.call("RunAggregationQuery", gql_query=asked)
    found = answer.batch.aggregation_results[0].aggregate_properties
    assert (found["n"].integer_value, found["s"].integer_value) == (3, 9)
    assert answer.query.nested_query.kind[0].name == "T"
    with assert_refused("INVALID_ARGUMENT", "expected COUNT, COUNT_UP_TO, SUM or AVG"):
        service.call("RunAggregationQuery", gql_query=gql("SELECT * FROM T"))


PIECES = [text for row in (*MEANINGS, *WRONG) for text in row[0][:300].split()]
PIECES += [
    "(",
    ")",
    ",",
    ".",
    "@1",
    "@one",
    "@from",
    "'",
    '"',
    "`",
    "\\",
    "AND",
    "OR",
    "ARRAY(",
    "KEY(",
]


@pytest.fixture(scope="module")
def open_minded() -> Iterator[service_calls.Service]:
    """A service that makes every index that a query needs."""
    with inprocess.open_engine(None) as engine:
        yield service_calls.Service(inprocess.Channel(engine))


@given(text=strategies.lists(strategies.sampled_from(PIECES)).map(" ".join) | strategies.text())
def test_any_text_has_results_or_is_an_invalid_argument(
    open_minded: service_calls.Service, text: str
) -> None:
    for asked in (text, f"SELECT {text}", f"SELECT * FROM T WHERE {text}"):
        try:
            answer = open_minded.call("RunQuery", gql_query=gql(asked, named_bindings=NAMED))
        except grpc.RpcError as refusal:
            assert refusal.code() is grpc.StatusCode.INVALID_ARGUMENT  # noqa: PT017 - either is right
        else:
            assert answer.HasField("query")
        with contextlib.suppress(errors.InvalidArgument):
            gql_parser.aggregation_query(gql(asked, named_bindings=NAMED), PARTITION)
