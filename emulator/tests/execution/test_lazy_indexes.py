"""Lazy built-in indexes: no answer, bill or version depends on which indexes exist.

A lazy engine and an eager one, which maintains all built-in indexes, get the same requests. Every
page has one entity and every step one page, so writes happen before, during and after a fill.
"""

import functools
import itertools
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from datastore_emulator import inprocess
from datastore_emulator.encoding import indexes, keys
from datastore_emulator.execution import lazy_indexes
from datastore_emulator.server import data_browser
from datastore_emulator.storage import index_writer, inspection, maintenance
from emulator.tests.execution import test_query_laws as laws
from emulator.tests.oracle import messages, queries
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused

NAMES = laws.NAMES
START = 1_800_000_000.0
numbers = itertools.count(1)

CODES = st.lists(st.tuples(st.sampled_from(NAMES), st.booleans()), min_size=1, max_size=2)
ACTS = st.one_of(
    st.tuples(st.just("write"), st.lists(laws.CHANGES, min_size=1, max_size=3)),
    st.tuples(st.just("step"), CODES),
    st.tuples(st.just("ask"), laws.QUERIES),
)


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_writer, "PAGE", 1)
    monkeypatch.setattr(index_writer, "STEP_SECONDS", 0.0)


def open_engine(path: Path | None = None, **options: Any) -> inprocess.Engine:
    return inprocess.open_engine(path, **{"clock": lambda: START} | options)


def service_of(engine: inprocess.Engine) -> service_calls.Service:
    return service_calls.Service(inprocess.Channel(engine))


@pytest.fixture(scope="module")
def pair() -> Iterator[tuple[inprocess.Engine, inprocess.Engine]]:
    with (
        open_engine(built_in_indexes="lazy") as lazy,
        open_engine(built_in_indexes="eager") as all_,
    ):
        yield lazy, all_


def made(engine: inprocess.Engine, kind: str = "T") -> list[tuple[str, bool]]:
    """Return the properties and directions of a kind's complete built-in indexes."""
    with closing(sqlite3.connect(engine.storage.path)) as connection:
        found = connection.execute("SELECT code FROM built_ins WHERE filled_to IS NULL").fetchall()
    decoded = [indexes.decode(code) for (code,) in found]
    return sorted(each.properties[0] for each in decoded if each.kind == kind)


def answered(act: Callable[[], Any]) -> tuple[Any, ...]:
    """Return a serialized response, or the error."""
    try:
        return ("OK", act().SerializeToString(deterministic=True))
    except grpc.RpcError as error:
        return (error.code(), error.details())


class Pair:
    """A kind in both engines, which must give the same answers."""

    def __init__(self, engines: tuple[inprocess.Engine, inprocess.Engine]) -> None:
        self.engines = engines
        self.services = list(map(service_of, engines))
        self.kind = f"K{next(numbers)}"

    def both(self, act: Callable[[service_calls.Service], Any]) -> Any:
        lazy, eager = (answered(functools.partial(act, each)) for each in self.services)
        assert lazy == eager
        return lazy

    def key(self, path: tuple[Any, ...]) -> Any:
        kinds = [self.kind if kind == "K" else kind for kind in path[::2]]
        return laws.Key(tuple(zip(kinds, path[1::2], strict=True)))

    def write(self, changes: list[Any]) -> None:
        mutations = []
        for path, held in dict(changes).items():
            key = messages.key(self.key(path))
            if held is None:
                mutations.append({"delete": key})
            else:
                mutations.append({"upsert": self.services[0].entity(key, **held)})
        self.both(lambda each: each.commit(*mutations))

    def step(self, columns: list[Any]) -> None:
        codes = [
            indexes.builtin(self.kind, name, is_descending=is_descending).code
            for name, is_descending in columns
        ]
        lazy_indexes.take_step(self.engines[0].storage, codes)

    def ask(self, asked: laws.Asked, **options: Any) -> None:
        query = queries.Query(self.kind, laws.filter_of(asked.where, self.key), *asked[1:])
        if queries.complaints(query):
            return
        message = messages.query(query)
        explained: dict[str, Any] = {} if options else {"explain_options": {"analyze": True}}

        def run(service: service_calls.Service) -> Any:
            answer = service.call("RunQuery", query=message, read_options=options, **explained)
            answer.explain_metrics.execution_stats.ClearField("execution_duration")
            return answer

        self.both(run)
        aggregation = {"nested_query": message, "aggregations": [{"count": {}}]}
        self.both(
            lambda each: each.call(
                "RunAggregationQuery", aggregation_query=aggregation, read_options=options
            )
        )

    def properties(self) -> None:
        kind = self.services[0].key("__kind__", self.kind)
        query = self.services[0].query("__property__", (laws.KEY, "under", kind))
        self.both(lambda each: each.call("RunQuery", query=query))


@given(acts=st.lists(ACTS, min_size=2, max_size=12), last=laws.QUERIES, back=st.integers(0, 4))
def test_a_lazy_engine_answers_and_bills_as_an_eager_one(
    pair: tuple[inprocess.Engine, inprocess.Engine], acts: list[Any], last: Any, back: int
) -> None:
    both = Pair(pair)
    for engine in pair:
        engine.meter.reset()
    for name, argument in acts:
        getattr(both, name)(argument)
    both.ask(last)
    both.properties()
    with pair[0].storage.read() as snapshot:
        moment = snapshot.version - back
    seconds, micros = divmod(moment, 1_000_000)
    both.ask(last, read_time={"seconds": seconds, "nanos": micros * 1000})
    # Explained responses contain a duration, whose size varies.
    lazy, eager = (engine.meter.total()._replace(bytes_out=0) for engine in pair)
    assert lazy == eager
    assert inspection.check(pair[0].storage.path).problems == []


def test_a_write_before_any_query_stores_one_index_row(
    pair: tuple[inprocess.Engine, inprocess.Engine],
) -> None:
    counts = []
    for service in map(service_of, pair):
        answer = service.put(service.key("Row", 1), a=1, b=[1, 2], c="x")
        counts.append(answer.index_updates)
    assert counts == [9, 9]
    rows = []
    for engine in pair:
        with closing(sqlite3.connect(engine.storage.path)) as connection:
            (number,) = connection.execute(
                "SELECT count(*) FROM index_entries JOIN indexes ON id = index_id "
                "WHERE code >= ? AND code < ?",
                (keys.encode_text("Row"), keys.encode_text("Row") + b"\xff"),
            ).fetchone()
            rows.append(number)
    assert rows == [1, 9]
    deleted = {"delete": service_of(pair[0]).key("Row", 1)}
    assert [service_of(engine).commit(deleted).index_updates for engine in pair] == [9, 9]


def test_a_query_makes_only_the_indexes_that_its_plan_scans() -> None:
    with open_engine() as engine:
        service = service_of(engine)
        for number in range(1, 4):
            service.put(service.key("T", number), a=number, b=1, c=1)
        assert service.names("T") == [1, 2, 3]
        assert made(engine) == []
        assert service.names(order=["-a"]) == [3, 2, 1]
        assert made(engine) == [("a", True)]
        assert service.names("T", ("a", "=", 2), ("b", "=", 1)) == [2]
        assert made(engine) == [("a", False), ("a", True), ("b", False)]


def test_a_plan_alone_makes_no_index() -> None:
    with open_engine() as engine:
        service = service_of(engine)
        service.put(service.key("T", 1), a=1)
        service.call("RunQuery", query=service.query(order=["a"]), explain_options={})
        assert made(engine) == []


def test_the_data_browser_shows_the_same_sizes(
    pair: tuple[inprocess.Engine, inprocess.Engine],
) -> None:
    shown = []
    for engine in pair:
        service = service_of(engine)
        service.put(service.key("Size", 1), a=1, b=["x", "yy"])
        service.put(service.key("Size", 1, "Size", "two"), a="x" * 20)
        service.names("Size", order=["a"])
        with engine.storage.read() as snapshot:
            shown.append(
                [each for each in data_browser.sizes(snapshot) if each.index.kind == "Size"]
            )
    assert shown[0] == shown[1] != []


@pytest.fixture(params=["optimistic", "pessimistic"])
def engine(request: pytest.FixtureRequest) -> Iterator[inprocess.Engine]:
    with open_engine(concurrency=request.param) as opened:
        service = service_of(opened)
        for number in range(1, 5):
            service.put(service.key("T", number), a=number)
        service.put(service.key("Other", 1), n=0)
        yield opened


@pytest.fixture
def one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_writer, "PAGE", 100)


@pytest.mark.usefixtures("one_step")
def test_a_transaction_with_unchanged_reads_sees_the_new_index(engine: inprocess.Engine) -> None:
    service = service_of(engine)
    transaction = service.begin()
    service.get(service.key("Other", 1), transaction=transaction)
    service.put(service.key("T", 9), a=0)
    assert service.names(order=["a"], transaction=transaction) == [9, 1, 2, 3, 4]
    service.commit({"delete": service.key("T", 9)}, transaction=transaction)
    assert service.names(order=["a"]) == [1, 2, 3, 4]


@pytest.mark.usefixtures("one_step", "impatient")
def test_a_transaction_that_read_through_a_new_index_conflicts_with_phantoms(
    engine: inprocess.Engine,
) -> None:
    service = service_of(engine)
    transaction = service.begin()
    assert service.names("T", ("a", ">", 2), transaction=transaction) == [3, 4]
    phantom = service_calls.upsert(service, service.key("T", 9), a=9)
    mine = {"delete": service.key("T", 1)}
    # In the optimistic mode, the transaction loses; in the pessimistic mode, the other writer does.
    results = [
        answered(lambda: service.commit(phantom)),
        answered(lambda: service.commit(mine, transaction=transaction)),
    ]
    statuses = [result[0] for result in results]
    assert sorted(map(str, statuses)) == ["OK", "StatusCode.ABORTED"]


def test_a_transaction_with_an_outdated_read_fails_at_its_commit() -> None:
    with open_engine() as engine:
        service = service_of(engine)
        service.put(service.key("T", 1), a=1)
        service.put(service.key("T", 2), a=2)
        transaction = service.begin()
        service.names(order=["a"], transaction=transaction)
        service.put(service.key("T", 1), a=3)
        # The fill takes several steps, so the transaction ends; the next one needs only one.
        with assert_refused("ABORTED", "Run the transaction again"):
            service.names(order=["-a"], transaction=transaction)
        transaction = service.begin()
        assert service.names("T", ("a", "=", 3), transaction=transaction) == [1]
        service.put(service.key("T", 1), a=4)
        assert service.names("T", ("a", "=", 3), transaction=transaction) == [1]
        with assert_refused("ABORTED"):
            service.commit({"delete": service.key("T", 2)}, transaction=transaction)


@pytest.mark.parametrize("history", [0, 3600])
def test_a_read_only_transaction_keeps_its_moment_or_is_aborted_once(
    tmp_path: Path, history: int
) -> None:
    with open_engine(tmp_path / "data", history=history) as engine:
        service = service_of(engine)
        for number in range(1, 4):
            service.put(service.key("T", number), a=number)
        transaction = service.begin(read_only={})
        assert service.names(order=["a"], transaction=transaction) == [1, 2, 3]
        service.put(service.key("T", 1), a=9)
        service.delete(service.key("T", 2))
        service.put(service.key("T", 4), a=0)
        if history:
            assert service.names(order=["-a"], transaction=transaction) == [3, 2, 1]
            assert service.names(order=["a"], transaction=transaction) == [1, 2, 3]
        else:
            with assert_refused("ABORTED", "Run the transaction again"):
                service.names(order=["-a"], transaction=transaction)
        again = service.begin(read_only={})
        assert service.names(order=["-a"], transaction=again) == [1, 3, 4]


def test_a_first_query_needs_no_unchanged_data(engine: inprocess.Engine) -> None:
    service = service_of(engine)
    transaction = service.begin(read_only={})
    before = lazy_indexes.take_step

    def busy(*arguments: Any) -> bool:
        service.put(service.key("Other", 1), n=1)
        return before(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lazy_indexes, "take_step", busy)
        assert service.names(order=["a"], transaction=transaction) == [1, 2, 3, 4]


def test_a_transaction_in_the_past_sees_its_moment_in_a_new_index(
    engine: inprocess.Engine,
) -> None:
    service = service_of(engine)
    with engine.storage.read() as snapshot:
        seconds, micros = divmod(snapshot.version, 1_000_000)
    moment = {"seconds": seconds, "nanos": micros * 1000}
    transaction = service.begin(read_only={"read_time": moment})
    service.get(service.key("T", 1), transaction=transaction)
    service.put(service.key("T", 1), a=9)
    service.delete(service.key("T", 2))
    assert service.names(order=["a"], transaction=transaction) == [1, 2, 3, 4]
    assert service.names(order=["a"]) == [3, 4, 1]


def test_a_transaction_holds_no_lock_while_a_fill_takes_several_steps(
    engine: inprocess.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    service, written = service_of(engine), []

    def write(_seconds: float) -> None:
        service.put(service.key("Other", 1), n=len(written))
        written.append(service.names("T"))

    monkeypatch.setattr("datastore_emulator.execution.lazy_indexes.time.sleep", write)
    transaction = service.begin()
    service.get(service.key("Other", 1), transaction=transaction)
    with assert_refused("ABORTED", "Run the transaction again"):
        service.names(order=["a"], transaction=transaction)
    assert written == [[1, 2, 3, 4]] * 3
    service.rollback(transaction)
    again = service.begin()
    service.get(service.key("Other", 1), transaction=again)
    assert service.names(order=["a"], transaction=again) == [1, 2, 3, 4]
    service.commit({"delete": service.key("T", 1)}, transaction=again)


@pytest.mark.parametrize("first", ["lazy", "eager"])
def test_a_file_that_becomes_lazy_keeps_its_indexes(tmp_path: Path, first: Any) -> None:
    with open_engine(tmp_path / "data", built_in_indexes="eager") as eager:
        service = service_of(eager)
        service.put(service.key("T", 1), a=1, b=2)
        with open_engine(tmp_path / "data", built_in_indexes="lazy"):
            # The eager engine maintains what the file lists, like the lazy one.
            service.put(service.key("T", 2), a=2, b=1, c=3)
    with open_engine(tmp_path / "data", built_in_indexes=first) as engine:
        service = service_of(engine)
        assert service.names(order=["b"]) == [2, 1]
        assert [name for name, _ in made(engine)] == ["a", "a", "b", "b"]
        assert service.names(order=["c"]) == [2]
        assert ("c", False) in made(engine)
    assert inspection.check(tmp_path / "data").problems == []


def test_a_compaction_drops_the_built_in_indexes_that_no_query_has_asked_for(
    tmp_path: Path,
) -> None:
    with open_engine(tmp_path / "data", built_in_indexes="eager") as eager:
        service = service_of(eager)
        for number in range(1, 4):
            service.put(service.key("T", number), a=number, b=-number)
    maintenance.compact(tmp_path / "data", now=int(START * 1e6))
    with open_engine(tmp_path / "data") as engine:
        service = service_of(engine)
        assert service.names(order=["a"]) == [1, 2, 3]
        maintenance.compact(tmp_path / "data", now=int(START * 1e6))
        assert made(engine) == [("a", False)]
        assert inspection.check(tmp_path / "data").problems == []
        service.put(service.key("T", 4), a=0, b=-4)
        assert service.names(order=["a"]) == [4, 1, 2, 3]
        assert service.names(order=["b"]) == [4, 3, 2, 1]
        service.delete(service.key("T", 4))
        assert service.names(order=["b"]) == [3, 2, 1]
    assert inspection.check(tmp_path / "data").problems == []


def test_a_reset_during_a_fill_leaves_nothing_behind() -> None:
    with open_engine() as engine:
        service = service_of(engine)
        codes = [indexes.builtin("T", "a").code]
        for number in range(1, 5):
            service.put(service.key("T", number), a=number)
        lazy_indexes.take_step(engine.storage, codes)
        engine.reset()
        service.put(service.key("T", 1), a=5)
        service.put(service.key("T", 7), a=4)
        assert service.names(order=["a"]) == [7, 1]
        assert inspection.check(engine.storage.path).problems == []
