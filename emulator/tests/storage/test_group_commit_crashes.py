"""A process dies, or a disk fails or loses power, in the middle of a group of commits.

Acknowledged commits survive, and each commit in a group is either complete or absent.
EMULATOR_CRASH_ROUNDS sets the number of rounds, as in all crash tests.
"""

import json
import os
import pickle
import random
import signal
import sqlite3
import threading
from pathlib import Path

import pytest

from datastore_emulator.fault_injection import fault_rules
from emulator.tests.support import concurrent_writers, fault_vfs, ledger_writer, power_loss_disk
from tests.support import forked_programs, programs

pytestmark = pytest.mark.slow

ROUNDS = int(os.environ.get("EMULATOR_CRASH_ROUNDS", "6"))
PATIENCE = programs.PATIENCE


class Run:
    """A process with many writers, and its output so far."""

    def __init__(
        self,
        path: Path,
        acknowledged: dict[str, ledger_writer.Acknowledged],
        *,
        plan: str = "",
        struck: tuple[str, str, int] = ("", "", 0),
    ) -> None:
        self.acknowledged = acknowledged
        self.groups = []
        self.process = forked_programs.start(
            "emulator.tests.support.concurrent_writers", path, plan, *struck
        )

    def read(self, lines: int | None = None) -> None:
        """Read the given number of acknowledgment lines, or all remaining lines."""
        while lines is None or lines > 0:
            line = self.process.stdout.readline()
            if not line.endswith("\n"):  # The output ended, or the kill left an incomplete line
                return
            name, _, rest = line.partition(" ")
            if name == "group":
                self.groups.append(int(rest))
            else:
                self.acknowledged[name].add(line)
                lines = None if lines is None else lines - 1

    def end(self) -> int:
        """Read the remaining lines and return the process's exit code."""
        watchdog = threading.Timer(PATIENCE, self.process.kill)
        watchdog.start()
        self.read()
        ended = self.process.wait()
        watchdog.cancel()
        return ended


@pytest.fixture
def acknowledged() -> dict[str, ledger_writer.Acknowledged]:
    fault_vfs.require()
    return {name: ledger_writer.Acknowledged() for name in concurrent_writers.NAMES}


def check(path: Path, acknowledged: dict[str, ledger_writer.Acknowledged]) -> None:
    """Check the file, in which each worker may have stored one unacknowledged commit."""
    counts = ledger_writer.assert_file_matches(path, acknowledged)
    for name, count in counts.items():
        assert count <= acknowledged[name].commits + 1
        acknowledged[name].commits = count


def test_many_writers_killed_at_random_moments_lose_nothing(
    tmp_path: Path, acknowledged: dict[str, ledger_writer.Acknowledged]
) -> None:
    chance = random.Random(20261121)
    groups = []
    for _ in range(max(2, ROUNDS // 2)):
        run = Run(tmp_path / "data", acknowledged)
        run.read(chance.randint(0, 60))
        threading.Event().wait(chance.uniform(0, 0.02))
        run.process.send_signal(signal.SIGKILL)
        assert run.end() == -signal.SIGKILL
        groups += run.groups
        check(tmp_path / "data", acknowledged)
    assert max(groups) > 1


@pytest.mark.parametrize("point", sorted(fault_rules.POINTS))
def test_many_writers_killed_at_a_point_leave_whole_commits(
    tmp_path: Path, acknowledged: dict[str, ledger_writer.Acknowledged], point: str
) -> None:
    for number in range(max(1, ROUNDS // 6)):
        plan = {"rules": [{"point": point, "call": 90 + 13 * number, "kill": True}]}
        run = Run(tmp_path / "data", acknowledged, plan=json.dumps(plan))
        assert run.end() == -signal.SIGKILL
        assert max(run.groups) > 1
        check(tmp_path / "data", acknowledged)


@pytest.mark.parametrize("name", ["data", "data-wal"])
@pytest.mark.parametrize("kind", ["write", "sync"])
def test_many_writers_killed_between_disk_operations_lose_nothing(
    tmp_path: Path, acknowledged: dict[str, ledger_writer.Acknowledged], kind: str, name: str
) -> None:
    for number in range(max(1, ROUNDS // 6)):
        nth = {"data-wal": {"write": 403, "sync": 24}, "data": {"write": 33, "sync": 5}}[name][kind]
        run = Run(tmp_path / "data", acknowledged, struck=(kind, name, nth + 7 * number))
        assert run.end() == -signal.SIGKILL
        assert max(run.groups) > 1
        check(tmp_path / "data", acknowledged)


def test_commits_refused_one_by_one_leave_their_groups_intact(
    tmp_path: Path, acknowledged: dict[str, ledger_writer.Acknowledged]
) -> None:
    rules = [
        {"point": "commit.before", "probability": 0.2, "status": "INTERNAL"},
        {"point": "commit.indexes", "probability": 0.02, "status": "INTERNAL"},
        {"rpc": "Commit", "call": 100, "kill": True},
    ]
    run = Run(tmp_path / "data", acknowledged, plan=json.dumps({"seed": 3, "rules": rules}))
    assert run.end() == -signal.SIGKILL
    assert max(run.groups) > 1
    check(tmp_path / "data", acknowledged)


# Disk operations occasionally fail while many writers write. At the end, the disk works again, and
# every commit in the file is compared with the answers to its writer.
FAILING = """
import random
import sys
from pathlib import Path
import grpc
from emulator.tests.support import concurrent_writers
from emulator.tests.support import ledger_writer
from emulator.tests.support import fault_vfs

path, result, status = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
chance, refused, groups, is_well = random.Random(1), [], [], True
acknowledged = {name: ledger_writer.Acknowledged() for name in concurrent_writers.NAMES}

def watch(operation):
    return 0 if is_well or chance.random() > 0.01 else result

def step(worker):
    try:
        acknowledged[worker.name].commits, given = worker.commit()
    except grpc.RpcError as error:
        assert error.code().name in (status, "ABORTED"), error
        refused.append(error.code().name)
    else:
        acknowledged[worker.name].ids += given
    return acknowledged[worker.name].commits < 25

shim = fault_vfs.Shim(concurrent_writers.slowly(watch))
fault_vfs.use_small_logs()
concurrent_writers.tell_of_groups(groups.append)
with ledger_writer.open_engine(path) as engine:
    is_well = False
    concurrent_writers.run(engine, step)
    is_well = True
    for name in concurrent_writers.NAMES:
        ledger_writer.worker(engine, name).commit()
        acknowledged[name].commits += 1
counts = ledger_writer.assert_file_matches(path, acknowledged)
assert counts == dict.fromkeys(concurrent_writers.NAMES, 26), counts
ledger_writer.say(len(refused), max(groups))
"""


@pytest.mark.parametrize(
    ("result", "status"),
    [(sqlite3.SQLITE_FULL, "RESOURCE_EXHAUSTED"), (sqlite3.SQLITE_IOERR_FSYNC, "UNAVAILABLE")],
)
def test_an_unreliable_disk_fails_whole_groups(
    tmp_path: Path, acknowledged: dict[str, ledger_writer.Acknowledged], result: int, status: str
) -> None:
    ended, output = forked_programs.run(FAILING, tmp_path / "data", result, status)
    assert ended == 0
    refused, largest = map(int, output.split())
    assert refused > 4
    assert largest > 1


RECORDING = """
import pickle
import sys
from pathlib import Path
from emulator.tests.support import concurrent_writers
from emulator.tests.support import ledger_writer
from emulator.tests.support import fault_vfs

path, target = map(Path, sys.argv[1:])
recording, left = [], dict.fromkeys(concurrent_writers.NAMES, 8)

def step(worker):
    line = worker.step()
    recording.append(fault_vfs.Operation("acknowledged", line))
    left[worker.name] -= 1
    return bool(left[worker.name])

shim = fault_vfs.Shim(concurrent_writers.slowly(lambda operation: recording.append(operation) or 0))
fault_vfs.use_small_logs()
concurrent_writers.tell_of_groups(lambda parts: parts > 1 and ledger_writer.say(parts))
with ledger_writer.open_engine(path) as engine:
    concurrent_writers.run(engine, step)
del shim
target.write_bytes(pickle.dumps(recording))
"""


def test_a_power_loss_loses_no_acknowledged_commit_of_many_writers(
    tmp_path: Path, acknowledged: dict[str, ledger_writer.Acknowledged]
) -> None:
    status, output = forked_programs.run(RECORDING, tmp_path / "data", tmp_path / "recording")
    assert status == 0
    assert output, "no two commits shared a COMMIT"
    recording = pickle.loads((tmp_path / "recording").read_bytes())  # noqa: S301 - written by this test
    faults = [
        power_loss_disk.lose_power(recording, tmp_path / str(seed), seed, concurrent_writers.NAMES)
        for seed in range(10 * ROUNDS)
    ]
    assert [fault for fault in faults if fault] == []


def test_a_single_writer_gets_its_turn_beside_many_in_another_process(
    tmp_path: Path, acknowledged: dict[str, ledger_writer.Acknowledged]
) -> None:
    run = Run(tmp_path / "data", acknowledged)
    run.read(8)
    with ledger_writer.open_engine(tmp_path / "data") as engine:
        worker = ledger_writer.worker(engine, "alone")
        for number in range(1, 11):
            assert worker.commit()[0] == number
    run.process.kill()
    run.end()
    check(tmp_path / "data", acknowledged | {"alone": ledger_writer.Acknowledged(10)})
