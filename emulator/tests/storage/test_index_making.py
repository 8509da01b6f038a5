"""Making a built-in index: kills between and within its steps, races, and writers beside it."""

import json
import os
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from datastore_emulator import inprocess
from datastore_emulator.encoding import indexes
from datastore_emulator.execution import lazy_indexes
from datastore_emulator.storage import index_writer, inspection
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import Service
from tests.support import forked_programs, programs

ROUNDS = int(os.environ.get("EMULATOR_CRASH_ROUNDS", "6"))
ENTITIES = 5

# A program that queries a file with small steps, under a fault plan, and prints the result.
ASKING = """
import sys
from datastore_emulator import inprocess
from datastore_emulator.fault_injection import fault_plans
from datastore_emulator.storage import index_writer
from emulator.tests.support.service_calls import Service

index_writer.PAGE, index_writer.STEP_SECONDS = 1, 0.0
with inprocess.open_engine(sys.argv[1]) as engine:
    if sys.argv[2]:
        engine.install_faults(fault_plans.Plan.parse(sys.argv[2]))
    print(Service(inprocess.Channel(engine)).names(order=["a"]))
"""

# A program that writes to a file with random changes of the property `a`, until it is killed.
WRITING = """
import itertools, random, sys
from datastore_emulator import inprocess
from emulator.tests.support.service_calls import Service

chance = random.Random(int(sys.argv[2]))
with inprocess.open_engine(sys.argv[1]) as engine:
    service = Service(inprocess.Channel(engine))
    for number in itertools.count():
        key = service.key("T", chance.randint(1, 40))
        if chance.random() < 0.3:
            service.delete(key)
        else:
            service.put(key, a=chance.randint(1, 9))
        print(number, flush=True)
"""


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_writer, "PAGE", 1)
    monkeypatch.setattr(index_writer, "STEP_SECONDS", 0.0)


def service_of(engine: inprocess.Engine) -> Service:
    return Service(inprocess.Channel(engine))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file with a few entities and no index of their property."""
    with inprocess.open_engine(tmp_path / "data") as engine:
        service = service_of(engine)
        for number in range(1, ENTITIES + 1):
            service.put(service.key("T", number), a=ENTITIES - number)
    return tmp_path / "data"


BACKWARDS = list(range(ENTITIES, 0, -1))


def check(path: Path, expected: list[Any]) -> None:
    assert inspection.check(path).problems == []
    with inprocess.open_engine(path) as engine:
        assert service_of(engine).names(order=["a"]) == expected
    assert inspection.check(path).problems == []


@pytest.mark.slow
@pytest.mark.parametrize("point", ["commit.begin", "commit.before", "commit.after"])
def test_a_kill_at_any_step_leaves_an_index_that_the_next_query_completes(
    path: Path, tmp_path: Path, point: str
) -> None:
    original = path.read_bytes()
    for call in range(1, ENTITIES + 3):
        copy = tmp_path / f"copy{call}"
        copy.write_bytes(original)
        plan = {"rules": [{"point": point, "call": call, "kill": True}]}
        ended, output = forked_programs.run(ASKING, copy, json.dumps(plan))
        # Each entity takes a step, and one more step finds no entity.
        is_over = call > ENTITIES + 1
        assert ended == (0 if is_over else -signal.SIGKILL)
        assert bool(output) == is_over
        with inprocess.open_engine(copy) as engine:
            service = service_of(engine)
            # Change an entity on each side of the filled part before the next query.
            service.put(service.key("T", 1), a=99)
            service.delete(service.key("T", ENTITIES))
        check(copy, [*BACKWARDS[1:-1], 1])


@pytest.mark.slow
def test_processes_make_the_same_index_at_once_beside_writers(path: Path) -> None:
    chance = random.Random(7)
    for _ in range(max(2, ROUNDS // 3)):
        writers = [forked_programs.start(WRITING, path, chance.randint(0, 10**9)) for _ in range(2)]
        for each in writers:
            each.stdout.readline()
        asking = [forked_programs.start(ASKING, path, "") for _ in range(3)]
        for each in asking:
            found = json.loads(each.output())
            assert each.returncode == 0
            assert len(found) == len(set(found))
        for each in writers:
            each.kill()
            each.output()
        with inprocess.open_engine(path) as engine:
            service = service_of(engine)
            values = {n: service.get(service.key("T", n)) for n in range(1, 41)}
            expected = sorted((each["a"], n) for n, each in values.items() if each is not None)
        check(path, [n for _, n in expected])
        forget_indexes(path)


def forget_indexes(path: Path) -> None:
    """Drop all built-in indexes, so that the next query makes them again."""
    with inprocess.open_engine(path) as engine, engine.storage.write() as writer:
        writer._connection.execute("UPDATE built_ins SET is_asked = 0, filled_to = NULL")
        index_writer.drop_unasked(writer._connection)


@pytest.mark.usefixtures("small_steps")
def test_threads_make_the_same_index_at_once_beside_writers(tmp_path: Path, threads: Any) -> None:
    with inprocess.open_engine(tmp_path / "data", concurrency="pessimistic") as engine:
        service = service_of(engine)
        stop = threading.Event()

        def write(number: int) -> int:
            chance, written = random.Random(number), 0
            while not stop.is_set():
                key = service.key("T", 10 * chance.randint(1, 12) + number)
                if chance.random() < 0.3:
                    service.delete(key)
                else:
                    service.put(key, a=chance.randint(1, 9))
                written += 1
            return written

        for number in range(1, 30):
            service.put(service.key("T", 1000 + number), a=number)
        writers = [threads.submit(write, number) for number in range(3)]
        asking = [threads.submit(service.names, order=["a"]) for _ in range(4)]
        found = [each.result(programs.PATIENCE) for each in asking]
        stop.set()
        assert all(each.result(programs.PATIENCE) for each in writers)
        for each in found:
            assert len(each) == len(set(each))
            assert {1000 + number for number in range(1, 30)} <= set(each)
        rows = service.batch(service.query()).entity_results
        expected = sorted(
            (each.entity.properties["a"].integer_value, each.entity.key.path[0].id) for each in rows
        )
        assert service.names(order=["a"]) == [number for _, number in expected]
    assert inspection.check(tmp_path / "data").problems == []


@pytest.fixture
def other(path: Path) -> Iterator[Service]:
    """Another engine on the same file, which locks it like another process."""
    with inprocess.open_engine(path) as engine:
        yield service_of(engine)


@pytest.mark.usefixtures("small_steps")
def test_others_read_and_write_between_any_two_steps(
    path: Path, other: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses = []

    def write(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) > ENTITIES:
            return
        number = 100 + len(pauses)
        other.put(other.key("T", number), a=number)
        other.put(other.key("T", 1), a=-number)
        assert other.get(other.key("T", number)) == {"a": number}

    monkeypatch.setattr("datastore_emulator.execution.lazy_indexes.time.sleep", write)
    with inprocess.open_engine(path) as engine:
        found = service_of(engine).names(order=["a"])
    assert len(pauses) == 2 * ENTITIES
    added = [100 + number for number in range(1, ENTITIES + 1)]
    assert found == [1, *BACKWARDS[:-1], *added]
    assert all(0 < seconds <= 0.5 for seconds in pauses)
    assert inspection.check(path).problems == []


@pytest.mark.usefixtures("small_steps")
def test_no_query_uses_an_incomplete_index(path: Path, other: Service) -> None:
    with inprocess.open_engine(path) as engine:
        code = indexes.builtin("T", "a").code
        assert not lazy_indexes.take_step(engine.storage, [code])
    assert other.names(order=["a"]) == BACKWARDS


@pytest.mark.usefixtures("small_steps")
def test_a_fill_reaches_descendants_of_its_kind_and_all_namespaces(path: Path) -> None:
    with inprocess.open_engine(path) as engine:
        service = service_of(engine)
        for namespace in ("", "n"):
            keys = [("T", 1), ("T", 1, "T", 7), ("T", 1, "T", 7, "T", 8), ("T", 2)]
            for number, key in enumerate(keys):
                service.put(service.key(*key, namespace=namespace), c=number)
        for namespace in ("", "n"):
            assert service.names(order=["c"], namespace=namespace) == [1, 7, 8, 2]
    assert inspection.check(path).problems == []


@pytest.mark.usefixtures("small_steps")
def test_two_indexes_of_a_query_are_filled_together(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("datastore_emulator.execution.lazy_indexes.time.sleep", pauses.append)
    with inprocess.open_engine(path) as engine:
        service = service_of(engine)
        service.put(service.key("T", 9), a=1, b=1)
        assert service.names("T", ("a", "=", 1), ("b", "=", 1)) == [9]
    assert len(pauses) == ENTITIES + 1


def test_a_check_accepts_an_incomplete_index_but_no_gap_in_its_filled_part(path: Path) -> None:
    def changed(statement: str) -> list[str]:
        with inprocess.open_engine(path) as engine, engine.storage.write() as writer:
            writer._connection.execute(statement)
        return inspection.check(path).problems

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index_writer, "PAGE", 1)
        patch.setattr(index_writer, "STEP_SECONDS", 0.0)
        with inprocess.open_engine(path) as engine:
            for _ in range(3):
                code = indexes.builtin("T", "a").code
                assert not lazy_indexes.take_step(engine.storage, [code])
    assert inspection.check(path).problems == []
    gap = (
        "DELETE FROM index_entries "
        "WHERE index_id = (SELECT max(id) FROM indexes) AND entity_id = {}"
    )
    assert "is missing" in changed(gap.format(2))[0]
    assert len(changed(gap.format(4))) == 1


def test_entries_of_an_index_that_is_not_maintained_are_found_by_the_check(path: Path) -> None:
    with inprocess.open_engine(path) as engine:
        service_calls.put_all(service_of(engine), (7, {"a": 1}))
        service_of(engine).names(order=["a"])
        with engine.storage.write() as writer:
            writer._connection.execute("DELETE FROM built_ins")
    assert "belong to an existing entity" in inspection.check(path).problems[0]
