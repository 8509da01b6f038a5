"""Several processes on one file: no lost or stale data, and a process that dies stops no other."""

import json
import signal
import threading
from pathlib import Path

import pytest

from datastore_emulator import inprocess
from emulator.tests.support import ledger_writer
from tests.support import forked_programs, programs

PATIENCE = programs.PATIENCE

# A program that increments one entity shared by all processes, in transactions, and allocates ids.
COUNTING = """
import sys
import grpc
from datastore_emulator import inprocess
from emulator.tests.support import ledger_writer

path, name, times = sys.argv[1:]
with inprocess.open_engine(path) as engine:
    worker = ledger_writer.worker(engine, name)
    for _ in range(int(times)):
        while True:
            try:
                begun = worker.call("BeginTransaction").transaction
                shared = ledger_writer.worker(engine, "shared")
                number = shared.count(transaction=begun) + 1
                changed = {"upsert": shared.entity(ledger_writer.key("Counter", "shared"), number)}
                worker.call("Commit", mode=1, transaction=begun, mutations=[changed])
                break
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.ABORTED:
                    raise
        ledger_writer.say(number, worker.step())
"""

# A program that answers questions about the file: for each input line with a kind, it prints the
# numbers of that kind's entities.
READING = """
import sys
from datastore_emulator import inprocess
from emulator.tests.support import ledger_writer

with inprocess.open_engine(sys.argv[1]) as engine:
    worker = ledger_writer.worker(engine, "w")
    ledger_writer.say("opened")
    for line in sys.stdin:
        kind, order = line.split(",")
        found = worker.found(kind, order=order.strip())
        ledger_writer.say(sorted(map(ledger_writer.number_of, found)))
"""


WRITING = "emulator.tests.support.ledger_writer"


def test_three_processes_count_without_losing_one_and_never_share_an_id(tmp_path: Path) -> None:
    with ledger_writer.open_engine(tmp_path / "data"):
        pass
    children = [forked_programs.start(COUNTING, tmp_path / "data", name, 15) for name in "abc"]
    acknowledged, numbers = {}, []
    for name, child in zip("abc", children, strict=True):
        lines = child.output().splitlines()
        assert child.returncode == 0
        acknowledged[name] = ledger_writer.Acknowledged()
        for line in lines:
            number, _, own = line.partition(" ")
            numbers.append(int(number))
            acknowledged[name].add(own)
    assert sorted(numbers) == list(range(1, 46))
    assert ledger_writer.assert_file_matches(tmp_path / "data", acknowledged) == dict.fromkeys(
        "abc", 15
    )


def test_a_process_reads_the_commits_of_another_at_once(tmp_path: Path) -> None:
    with ledger_writer.open_engine(tmp_path / "data") as engine:
        worker = ledger_writer.worker(engine, "w")
        with forked_programs.start(READING, tmp_path / "data") as child:
            assert child.stdout.readline() == "opened\n"
            for number in range(1, 30):
                worker.commit()
                for kind, order in (("Log", ""), ("Left", "n"), ("Slot", "")):
                    child.stdin.write(f"{kind},{order}\n")
                    child.stdin.flush()
                    found = json.loads(child.stdout.readline())
                    assert found == worker.expected(number)[kind]
            child.stdin.close()


def test_a_process_keeps_the_indexes_that_another_one_defines(tmp_path: Path) -> None:
    with inprocess.open_engine(tmp_path / "data") as engine:
        worker = ledger_writer.worker(engine, "w")
        worker.commit()
        with forked_programs.start(WRITING, tmp_path / "data", "other") as child:
            assert child.stdout.readline() == "opened\n"
            child.stdout.readline()
            with ledger_writer.open_engine(tmp_path / "data"):  # Defines the indexes
                pass
            for _ in range(3):
                worker.commit()
                child.stdout.readline()
            child.kill()
            lines = [line for line in child.stdout if line.endswith("\n")]
        last = int(lines[-1].split()[1]) if lines else 4
        assert [ledger_writer.number_of(each) for each in worker.found("Left", order="n")] == [
            4,
            3,
            2,
            1,
        ]
    acknowledged = {"w": ledger_writer.Acknowledged(4), "other": ledger_writer.Acknowledged(last)}
    ledger_writer.assert_file_matches(tmp_path / "data", acknowledged)


@pytest.mark.parametrize("point", ["commit.mutation", "commit.before", "commit.after"])
def test_a_process_that_dies_in_a_commit_does_not_stop_the_others(
    tmp_path: Path, point: str
) -> None:
    plan = {"rules": [{"point": point, "call": 11, "kill": True}]}
    acknowledged = {"dies": ledger_writer.Acknowledged(), "lives": ledger_writer.Acknowledged()}
    path = tmp_path / "data"
    with (
        forked_programs.start(WRITING, path, "lives") as living,
        forked_programs.start(WRITING, path, "dies", json.dumps(plan)) as dying,
    ):
        assert living.stdout.readline() == dying.stdout.readline() == "opened\n"
        reader = threading.Thread(target=collect, args=(living, acknowledged["lives"]))
        reader.start()
        collect(dying, acknowledged["dies"])
        assert dying.wait() == -signal.SIGKILL
        with ledger_writer.open_engine(tmp_path / "data") as engine:
            worker = ledger_writer.worker(engine, "lives")
            before = worker.count()
            programs.wait_until(lambda: worker.count() >= before + 5)
        living.kill()
        reader.join(PATIENCE)
    counts = ledger_writer.assert_file_matches(tmp_path / "data", acknowledged)
    for name, count in counts.items():
        assert acknowledged[name].commits <= count <= acknowledged[name].commits + 1


def collect(child: forked_programs.Program, acknowledged: ledger_writer.Acknowledged) -> None:
    for line in child.stdout:
        if line.endswith("\n"):
            acknowledged.add(line)
