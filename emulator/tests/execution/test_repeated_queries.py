"""A repeated query gives the answer that the engine would compute, and costs the same."""

import itertools
import subprocess
import sys
import tempfile
import threading
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
from hypothesis import HealthCheck, settings, stateful
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from datastore_emulator import inprocess, testing
from datastore_emulator.execution import repeated_queries
from datastore_emulator.fault_injection import fault_plans
from emulator.tests.support import service_calls, shifted_clock
from emulator.tests.support.service_calls import put_all
from tests.support import programs

CI = settings(
    settings.get_profile("ci"),
    max_examples=25,
    stateful_step_count=20,
    suppress_health_check=list(HealthCheck),
)
IDS = st.integers(1, 4)
NUMBERS = st.integers(0, 2)
ENGINES = st.integers(0, 1)


class Machine(RuleBasedStateMachine):
    """Two engines on one file, as in two processes, and what they must find."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "data"
        self.engines = [inprocess.open_engine(path, durability="fast") for _ in range(2)]
        self.services = [service_calls.Service(inprocess.Channel(each)) for each in self.engines]
        self.state: dict[int, int] = {}
        self.opened: tuple[service_calls.Service, bytes, dict[int, int]] | None = None

    def teardown(self) -> None:
        for each in self.engines:
            each.close()
        self.folder.cleanup()

    @rule(engine=ENGINES, name=IDS, number=NUMBERS)
    def put(self, engine: int, name: int, number: int) -> None:
        service = self.services[engine]
        service.put(service.key("T", name), a=number)
        self.state[name] = number

    @rule(engine=ENGINES, name=IDS)
    def delete(self, engine: int, name: int) -> None:
        service = self.services[engine]
        service.delete(service.key("T", name))
        self.state.pop(name, None)

    @rule(engine=ENGINES, names=st.sets(IDS, min_size=1), number=NUMBERS)
    def load(self, engine: int, names: set[int], number: int) -> None:
        service = self.services[engine]
        entities = [service.entity(service.key("T", name), a=number) for name in sorted(names)]
        self.engines[engine].load(entities, service.project)
        self.state |= dict.fromkeys(names, number)

    @rule(engine=ENGINES)
    def reset(self, engine: int) -> None:
        self.end()
        self.engines[engine].reset()
        self.state = {}

    @rule(engine=ENGINES, name=IDS)
    def refused(self, engine: int, name: int) -> None:
        """Make a transaction that fails after its first mutation."""
        service = self.services[engine]
        key = service.key("T", name)
        wrong = {"update": service.entity(service.key("None", 1))}
        with pytest.raises(grpc.RpcError):
            service.commit({"upsert": service.entity(key, a=9)}, wrong, transaction=service.begin())

    @precondition(lambda self: self.opened is None)
    @rule(engine=ENGINES)
    def begin(self, engine: int) -> None:
        """Open a transaction, whose queries find the state at its beginning."""
        service = self.services[engine]
        name = service.begin(read_only={})
        service.names("T", transaction=name)
        self.opened = service, name, dict(self.state)

    @precondition(lambda self: self.opened is not None)
    @rule()
    def end(self) -> None:
        if self.opened is not None:
            service, name, _ = self.opened
            service.rollback(name)
            self.opened = None

    @invariant()
    def every_query_finds_the_state(self) -> None:
        for service in self.services:
            _compare(service, self.state)
        if self.opened is not None:
            service, name, state = self.opened
            _compare(service, state, transaction=name)


def _compare(service: service_calls.Service, state: dict[int, int], **options: Any) -> None:
    assert service.names("T", **options) == sorted(state)
    ones = [name for name, number in sorted(state.items()) if number == 1]
    assert service.names("T", ("a", "=", 1), **options) == ones
    query = service.query("T", projection=["a"], order=["a"])
    assert len(service.results(query, **options)) == len(state)


@pytest.mark.slow
def test_queries_find_every_commit_of_every_engine_at_once() -> None:
    stateful.run_state_machine_as_test(Machine, settings=CI)


WRITER = """
import sys
from datastore_emulator import inprocess
from emulator.tests.support import service_calls

with inprocess.open_engine(sys.argv[1], durability="fast") as engine:
    service = service_calls.Service(inprocess.Channel(engine))
    for line in sys.stdin:
        service.put(service.key("T", 2), a=int(line))
        print(line, end="", flush=True)
"""


@pytest.mark.slow
def test_eight_threads_find_what_two_processes_have_acknowledged(
    tmp_path: Path, threads: futures.ThreadPoolExecutor
) -> None:
    acknowledged = {1: 0, 2: 0}
    is_over = threading.Event()
    path = tmp_path / "data"
    with (
        inprocess.open_engine(path, durability="fast") as engine,
        subprocess.Popen(
            [sys.executable, "-c", WRITER, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=programs.environment(),
        ) as writer,
    ):
        service = service_calls.Service(inprocess.Channel(engine))
        put_all(service, *((name, {"a": 0}) for name in acknowledged))
        query = service.query("T")

        turns = [0] * 8

        def read(reader: int) -> None:
            while not is_over.is_set():
                least = dict(acknowledged)
                found = service.results(query)
                shown = {
                    service_calls.last(each.entity.key): service.plain(each.entity)["a"]
                    for each in found
                }
                assert all(shown[name] >= number for name, number in least.items())
                turns[reader] += 1

        readers = [threads.submit(read, reader) for reader in range(8)]
        try:
            assert writer.stdin is not None
            assert writer.stdout is not None
            # A busy machine may not run one of the readers for some time.
            for number in itertools.count(1):
                if number > 40 and (min(turns) > 40 or any(each.done() for each in readers)):
                    break
                service.put(service.key("T", 1), a=number)
                acknowledged[1] = number
                print(number, file=writer.stdin, flush=True)
                acknowledged[2] = int(writer.stdout.readline())
        finally:
            is_over.set()
        for each in readers:
            each.result(programs.PATIENCE)
        assert min(turns) > 40


def test_a_repeated_query_costs_as_much_as_the_first(
    service: service_calls.Service, engine: inprocess.Engine
) -> None:
    put_all(service, (1, {"a": 1}), (2, {"a": 2}))
    queries = [
        service.query("T"),
        service.query("T", order=["a"], projection=["a"]),
        service.query("T", ("a", ">", 9), projection=["a"]),
        service.query("T", limit=1, offset=1),
    ]
    for query in queries:
        service.results(query)  # Makes the indexes
        service.put(service.key("T", 1), a=1)
        readings = []
        for _ in range(2):
            with testing.meter(engine) as cost:
                answer = service.results(query)
            readings.append((cost.total(), cost.keys_read, answer))
        assert readings[0] == readings[1]


def test_a_fault_plan_strikes_repeated_queries_too(
    near: service_calls.Service, engine: inprocess.Engine
) -> None:
    put_all(near, (1, {}), (2, {}))
    query = near.query("T")
    whole = near.batch(query)
    cut = {"rpc": "RunQuery", "batch": 1}
    engine.install_faults(fault_plans.Plan.parse({"seed": 1, "rules": [cut]}))
    assert len(near.batch(query).entity_results) <= 1
    engine.install_faults(None)
    assert near.batch(query) == whole


def test_a_past_moment_keeps_its_own_answer(
    near: service_calls.Service, clock: shifted_clock.ShiftedClock
) -> None:
    put_all(near, (1, {"a": 1}))
    query = near.query("T")
    before = near.batch(query)
    clock.ahead += 1
    near.put(near.key("T", 2), a=1)
    for _ in range(2):
        assert len(near.results(query)) == 2
        past = near.batch(query, read_time=before.read_time)
        assert past.entity_results == before.entity_results


def test_explain_reports_the_work_of_a_repeated_query(near: service_calls.Service) -> None:
    put_all(near, (1, {"a": 1}))
    query = near.query("T")
    for _ in range(2):
        near.results(query)
        asked = {"partition_id": {"project_id": near.project}, "query": query}
        told = near.call("RunQuery", explain_options={"analyze": True}, **asked)
        assert told.explain_metrics.execution_stats.results_returned == 1


def test_the_number_and_size_of_known_answers_are_limited(
    near: service_calls.Service, engine: inprocess.Engine
) -> None:
    put_all(near, *((number, {"a": "x" * 1_000}) for number in range(1, 6)), (9, {"a": "y"}))
    near.names("T", ("a", "=", "y"))
    for number in range(2 * repeated_queries.MOST_KEPT + 10):
        near.names("T", ("a", "=", f"absent {number}"))
    near.names("T", ("a", "=", "z" * 1_400))
    near.names("T")
    known = engine._runs._repeated._known[1]
    assert 0 < len(known) <= repeated_queries.MOST_KEPT
    assert max(map(len, known)) <= repeated_queries.LONGEST_REQUEST
    longest = max(len(answer.response) for answer in known.values())
    assert longest <= repeated_queries.LONGEST_RESPONSE
