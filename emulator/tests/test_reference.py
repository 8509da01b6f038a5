"""The documents: the table of RPCs matches the engine item by item, and the commands work.

An item that has no probe here fails the test: write a probe, so that the table stays correct.
"""

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import timestamp_pb2

from datastore_emulator import inprocess, protobufs
from datastore_emulator.cli import command_line, commands, flags
from datastore_emulator.server import admin_port, http_server
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused

FOLDER = Path(__file__).parents[1]
REFERENCE = (FOLDER / "docs" / "reference.md").read_text()
DOCUMENTS = [(FOLDER / name).read_text() for name in ("README.md", "docs/use-it.md")]


def rows_of_the_table() -> dict[str, list[list[Any] | list[str]] | list[list[str]]]:
    """Return the supported and unsupported items of each RPC."""
    table = REFERENCE.partition("| RPC | supported | not supported yet |\n")[2].partition("\n\n")[0]
    found = {}
    for line in table.splitlines()[1:]:
        names, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        for name in names.split(", "):
            found[name] = [[item for item in cell.split(", ") if item] for cell in cells]
    return found


ROWS = rows_of_the_table()


def filtered(operator: str, given: int | list[int], found: list[int]) -> Callable[..., Any]:
    return lambda s: s.names("T", ("a", operator, given)) == found


def distinct(s: service_calls.Service) -> bool:
    query = s.query("T")
    query.distinct_on.add(name="a")
    return len(s.results(query)) == 2


def totals(
    s: service_calls.Service, *operators: tuple[Any, ...], **fields: Any
) -> float | int | list[float | int]:
    results = aggregate(s, *operators, **fields).batch.aggregation_results[0]
    found = [s.python(value) for _, value in sorted(results.aggregate_properties.items())]
    return found[0] if len(found) == 1 else found


def either(s: service_calls.Service) -> bool:
    one, two = (
        {"property_filter": {"property": {"name": "a"}, "op": 5, "value": s.value(given)}}
        for given in (1, 2)
    )
    query = s.query("T")
    query.filter.composite_filter.op = 2
    for each in (one, two):
        query.filter.composite_filter.filters.add(**each)
    return len(s.results(query)) == 2


def explained(s: service_calls.Service) -> bool:
    request = {"query": s.query("T"), "explain_options": {"analyze": True}}
    return s.call("RunQuery", **request).HasField("explain_metrics")


def aggregate(
    s: service_calls.Service, *operators: tuple[Any, ...], query: Any = None, **fields: Any
) -> Any:
    aggregations = [{name: options} for name, options in operators]
    given = {"nested_query": query or s.query("T"), "aggregations": aggregations}
    return s.call("RunAggregationQuery", aggregation_query=given, **fields)


def deferred(s: Any) -> Any:
    big = s.message_of("x" * 1_000_000)
    for number in range(4):
        s.put(s.key("Big", number + 1), text=big)
    return s.lookup(*(s.key("Big", number + 1) for number in range(4))).deferred


def at(s: service_calls.Service) -> dict[str, timestamp_pb2.Timestamp]:
    """Return read options for the current moment."""
    return {"read_time": s.lookup(s.key("T", 1)).read_time}


def pages(s: service_calls.Service) -> bool:
    query = s.query("T", limit=1)
    query.start_cursor = s.batch(query).end_cursor
    return [each.entity.key.path[0].id for each in s.batch(query).entity_results] == [2]


def sum_with_cursor(s: service_calls.Service) -> Any:
    query = s.query("T", order=["b"], limit=1)
    query.start_cursor = s.batch(query).end_cursor
    return aggregate(s, ("sum", {"property": {"name": "a"}}), query=query)


def commit(s: service_calls.Service, **mutation: Any) -> Any:
    return s.commit({"upsert": s.entity(s.key("T", 1), a=5, b=5)} | mutation)


def in_transaction(s: service_calls.Service) -> bool:
    return s.commit({"delete": s.key("T", 1)}, transaction=s.begin()) and not s.get(s.key("T", 1))


def single_use(s: service_calls.Service) -> bool:
    mutation = protobufs.Mutation(delete=s.key("T", 1))
    return s.call(
        "Commit", mode=1, mutations=[mutation], single_use_transaction={"read_write": {}}
    ) and not s.get(s.key("T", 1))


AVG = ("avg", {"property": {"name": "a"}})
SUM = ("sum", {"property": {"name": "a"}})
COUNT = ("count", {})
A = {"property": "a"}
SUPPORTED = {
    "Lookup": {
        "up to 1,000 keys": lambda s: s.lookup(*(s.key("T", n + 1) for n in range(1000))).missing,
        "transactions": lambda s: s.get(s.key("T", 1), transaction=s.begin()),
        "`new_transaction`": lambda s: s.lookup(s.key("T", 1), new_transaction={}).transaction,
        "`deferred` beyond 3 MB": deferred,
        "`property_mask`": lambda s: s.plain(
            s.call("Lookup", keys=[s.key("T", 1)], property_mask={"paths": ["a"]}).found[0].entity
        ) == {"a": 1},
        "`read_time`": lambda s: s.get(s.key("T", 1), **at(s)),
    },
    "RunQuery": {
        "`=`": filtered("=", 1, [1]), "`<`": filtered("<", 2, [1]), "`<=`": filtered("<=", 1, [1]),
        "`>`": filtered(">", 1, [2]), "`>=`": filtered(">=", 1, [1, 2]),
        "`!=`": filtered("!=", 1, [2]),
        "IN": filtered("in", [1, 9], [1]), "NOT_IN": filtered("not in", [1, 9], [2]),
        "AND": lambda s: s.names("T", ("a", "=", 1), ("b", "=", 2)) == [1], "OR": either,
        "HAS_ANCESTOR": lambda s: s.names("T", ("__key__", "under", s.key("T", 1))),
        "up to 10 inequality properties": lambda s: s.names(
            "T", ("a", ">", 0), ("b", ">", 0)
        ) == [1, 2],
        "`__key__` filters": lambda s: s.names("T", ("__key__", ">", s.key("T", 1))) == [2],
        "transactions": lambda s: s.names("T", transaction=s.begin()),
        "`new_transaction`": lambda s: s.call(
            "RunQuery", query=s.query("T"), read_options={"new_transaction": {}}
        ).transaction,
        "orders": lambda s: s.names("T", order=["-a"]) == [2, 1],
        "keys-only": lambda s: s.names("T", keys_only=True),
        "projection": lambda s: s.names("T", projection=["a"]),
        "`distinct_on`": distinct,
        "limit": lambda s: s.names("T", limit=1) == [1],
        "offset": lambda s: s.names("T", offset=1) == [2],
        "cursors": pages,
        "kindless": lambda s: len(s.names(None)) == 2,
        "metadata kinds": lambda s: s.names("__kind__") == ["T"],
        "`property_mask`": lambda s: s.call(
            "RunQuery", query=s.query("T"), property_mask={"paths": ["a"]}
        ).batch.entity_results,
        "`read_time`": lambda s: s.batch(s.query("T"), **at(s)).entity_results,
        "`explain_options`": explained,
        "`gql_query`": lambda s: s.call(
            "RunQuery", gql_query={"query_string": "SELECT * FROM T"}
        ).batch.entity_results,
    },
    "RunAggregationQuery": {
        "COUNT": lambda s: totals(s, COUNT) == 2, "SUM": lambda s: totals(s, SUM) == 3,
        "AVG": lambda s: totals(s, AVG) == 1.5,
        "up to 5 in a request": lambda s: totals(s, COUNT, SUM, AVG, COUNT, SUM)
        == [2, 3, 1.5, 2, 3],
        "transactions": lambda s: totals(s, COUNT, read_options={"transaction": s.begin()}) == 2,
        "`read_time`": lambda s: totals(s, COUNT, read_options=at(s)) == 2,
        "`explain_options`": lambda s: aggregate(
            s, COUNT, explain_options={"analyze": True}
        ).HasField("explain_metrics"),
        "`gql_query`": lambda s: s.call(
            "RunAggregationQuery", gql_query={"query_string": "SELECT COUNT(*) FROM T"}
        ).batch.aggregation_results,
    },
    "BeginTransaction": {
        "`read_write`": lambda s: s.begin(read_write={}),
        "`read_only`": lambda s: s.begin(read_only={}),
        "`read_only.read_time`": lambda s: s.begin(read_only=at(s)),
    },
    "Commit": {
        "insert": lambda s: s.commit({"insert": s.entity(s.key("T", 9), a=1)}),
        "update": lambda s: s.commit({"update": s.entity(s.key("T", 1), a=1)}),
        "upsert": lambda s: s.put(s.key("T", 1), a=9) and s.get(s.key("T", 1)) == {"a": 9},
        "delete": lambda s: s.delete(s.key("T", 1)) and not s.get(s.key("T", 1)),
        "transactions": in_transaction,
        "`single_use_transaction`": single_use,
        "`base_version`": lambda s: commit(s, base_version=1).mutation_results[0].conflict_detected,
        "`update_time`": lambda s: commit(
            s, update_time={"seconds": 1}
        ).mutation_results[0].conflict_detected,
        "`conflict_resolution_strategy`": lambda s: commit(
            s, base_version=1, conflict_resolution_strategy=1
        ).mutation_results[0].conflict_detected,
        "`property_mask`": lambda s: commit(s, property_mask={"paths": ["a"]})
        and s.get(s.key("T", 1)) == {"a": 5, "b": 2},
        "`property_transforms`": lambda s: commit(
            s, property_transforms=[A | {"increment": {"integer_value": 3}}]
        ) and s.get(s.key("T", 1))["a"] == 8,
    },
    "Rollback": {"all": lambda s: s.rollback(s.begin()) is None},
    "AllocateIds": {"all": lambda s: s.call("AllocateIds", keys=[s.key("T")]).keys},
    "ReserveIds": {"all": lambda s: s.call("ReserveIds", keys=[s.key("T", 77)]) is not None},
}  # fmt: skip
NEAREST = {
    "vector_property": {"name": "a"},
    "query_vector": {"array_value": {"values": [{"double_value": 1.0}]}},
    "distance_measure": 1, "limit": {"value": 1},
}  # fmt: skip
REFUSED = {
    "RunQuery": {
        "`find_nearest`": lambda s: s.batch(message_of_query(s, find_nearest=NEAREST)),
    },
    "RunAggregationQuery": {
        "SUM or AVG over a property with two equality filters": lambda s: aggregate(
            s, SUM, query=s.query("T", ("a", "=", 1), ("a", "=", 2))
        ),
        "SUM or AVG with a cursor over a property that the query does not order by":
            sum_with_cursor,
    },
}  # fmt: skip


def message_of_query(s: service_calls.Service, **fields: Any) -> Any:
    query = s.query("T")
    query.MergeFrom(type(query)(**fields))
    return query


@pytest.fixture
def filled(near: Any, unindexed: type[service_calls.Unindexed]) -> service_calls.Service:
    near.message_of = unindexed
    near.put(near.key("T", 1), a=1, b=2)
    near.put(near.key("T", 2), a=2, b=3)
    return near


def test_the_table_lists_every_rpc_once() -> None:
    assert set(ROWS) == set(protobufs.REQUESTS)


def cases(place: int) -> list[tuple[str, str]]:
    return [(rpc, item) for rpc, cells in ROWS.items() for item in cells[place]]


@pytest.mark.parametrize(("rpc", "item"), cases(0))
def test_supported_items_of_the_table_work(
    filled: service_calls.Service, rpc: str, item: str
) -> None:
    assert SUPPORTED[rpc][item](filled)


@pytest.mark.parametrize(("rpc", "item"), cases(1))
def test_unsupported_items_of_the_table_are_refused_by_name(
    filled: service_calls.Service, rpc: str, item: str
) -> None:
    with assert_refused("UNIMPLEMENTED", "is not implemented by this emulator"):
        REFUSED[rpc][item](filled)


def test_every_probe_is_an_item_of_the_table() -> None:
    for place, probes in enumerate((SUPPORTED, REFUSED)):
        probed = {(rpc, item) for rpc, by_item in probes.items() for item in by_item}
        assert probed == set(cases(place))


def test_every_command_in_the_documents_exists() -> None:
    text = "\n".join((REFERENCE, *DOCUMENTS))
    named = re.findall(r"^(?:    )?datastore-emulator ([a-z-][^#\n]*)", text, flags=re.MULTILINE)
    assert {line.split()[0] for line in named if line[0] != "-"} == set(commands.COMMANDS)
    for line in named:
        assert vars(flags.parse(line.split())[1])


def test_the_readme_shows_the_line_that_a_server_prints(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["env-init"]) == 0
    assert f"\n    {capsys.readouterr().out}" in DOCUMENTS[0]


def test_every_flag_in_the_guide_is_in_the_help() -> None:
    named = re.findall(r"`(--[a-z-]+)", REFERENCE)
    named += re.findall(r" (--[a-z-]+)", DOCUMENTS[0])
    helped = flags.server_parser().format_help() + flags.command_parser().format_help()
    assert {flag for flag in named if flag not in helped} <= {"--batch", "--replace"}


def test_every_path_of_the_admin_port_is_in_the_guide(engine: inprocess.Engine) -> None:
    admin = admin_port.AdminPort(engine, lambda: None)
    table = REFERENCE.partition("| path | what it does |")[2].partition("\n\n")[0]
    listed = set(re.findall(r"(?:GET|POST|PUT|DELETE) (/\S*?)`", table))
    for path in listed - {"/ui", "/v1/projects/{project}:{method}"}:
        with pytest.raises(http_server.BadRequest, match="accepts only"):
            admin.answer(http_server.Request("PATCH", path, {}, "", io.BytesIO()))
    assert {*admin.paths, "/ui", "/v1/projects/{project}:{method}"} == listed
