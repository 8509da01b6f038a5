"""Acknowledged commits survive kill -9 at any moment and at every named point.

Each round kills a real process and opens its file again. EMULATOR_CRASH_ROUNDS sets the number of
rounds for each test; the default is low enough for every test run.
"""

import contextlib
import io
import json
import os
import queue
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from datastore_emulator.fault_injection import fault_rules
from emulator.tests.support import fault_vfs, ledger_writer
from tests.support import forked_programs, programs

pytestmark = pytest.mark.slow

ROUNDS = int(os.environ.get("EMULATOR_CRASH_ROUNDS", "6"))
PATIENCE = programs.PATIENCE


@contextlib.contextmanager
def serving(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Start a server on a data file; kill it when the block ends."""
    with subprocess.Popen(
        [sys.executable, "-m", "datastore_emulator", "--port", "0", "--data", path],
        cwd=programs.ROOT, stdout=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        try:
            yield child
        finally:
            child.kill()


def note(
    acknowledged: ledger_writer.Acknowledged, lines: Iterator[Any] | io.TextIOWrapper | list[str]
) -> None:
    """Record the acknowledgments to a writer.

    An incomplete line, which the kill may leave behind, is ignored.
    """
    for line in lines:
        if line.endswith("\n") and line != "opened\n":
            acknowledged.add(line)


def write_until_killed(
    path: Path,
    acknowledged: ledger_writer.Acknowledged,
    *,
    lines: int,
    pause: float = 0.0,
    plan: Any = None,
) -> int:
    """Run a writer, read `lines` lines, and kill it if it is still alive; return its exit code."""
    plans = [] if plan is None else [json.dumps(plan)]
    writer = "emulator.tests.support.ledger_writer"
    with forked_programs.start(writer, path, "w", *plans) as child:
        note(acknowledged, (child.stdout.readline() for _ in range(lines)))
        if plan is None:
            threading.Event().wait(pause)  # Kill at a random moment
            child.send_signal(signal.SIGKILL)
        note(acknowledged, child.stdout.readlines())
    return child.wait()


def test_a_writer_killed_at_random_moments_loses_nothing(tmp_path: Path) -> None:
    chance = random.Random(20261121)
    acknowledged = ledger_writer.Acknowledged()
    for number in range(ROUNDS):
        lines, pause = chance.randint(0, 30), chance.uniform(0, 0.05)
        write_until_killed(tmp_path / "data", acknowledged, lines=lines, pause=pause)
        counts = ledger_writer.assert_file_matches(tmp_path / "data", {"w": acknowledged})
        assert counts["w"] <= acknowledged.commits + 1, f"round {number}"
        acknowledged.commits = counts["w"]
    assert acknowledged.commits


@pytest.mark.parametrize("point", sorted(fault_rules.POINTS))
def test_a_writer_killed_at_a_point_leaves_all_of_a_commit_or_nothing(
    tmp_path: Path, point: str
) -> None:
    acknowledged = ledger_writer.Acknowledged()
    for number in range(max(1, ROUNDS // 6)):
        before = acknowledged.commits
        # The number is odd, because a worker's writes alternate between commits and id allocations.
        plan = {"rules": [{"point": point, "call": 33 + 8 * number, "kill": True}]}
        ended = write_until_killed(tmp_path / "data", acknowledged, lines=0, plan=plan)
        assert ended == -signal.SIGKILL
        counts = ledger_writer.assert_file_matches(tmp_path / "data", {"w": acknowledged})
        assert before < counts["w"] <= acknowledged.commits + (point == "commit.after")
        acknowledged.commits = counts["w"]


# A writer that kills itself before the n-th operation of a kind on a file. The writer's log is
# checkpointed often.
KILLED_BELOW = """
import os, signal, sys
from emulator.tests.support import ledger_writer
from emulator.tests.support import fault_vfs

wanted, left = tuple(sys.argv[3:5]), int(sys.argv[5])
del sys.argv[3:]

def watch(operation):
    global left
    left -= (operation.kind, operation.name) == wanted
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    return 0

shim = fault_vfs.Shim(watch)
fault_vfs.use_small_logs()
ledger_writer.main()
"""


@pytest.mark.parametrize("name", ["data", "data-wal"])
@pytest.mark.parametrize("kind", ["write", "sync"])
def test_a_writer_killed_between_operations_on_the_disk_loses_nothing(
    tmp_path: Path, kind: str, name: str
) -> None:
    fault_vfs.require()
    acknowledged = ledger_writer.Acknowledged()
    for number in range(max(1, ROUNDS // 6)):
        nth = (13 if kind == "write" else 5) + 3 * number
        arguments = (tmp_path / "data", "w", kind, name, nth)
        with forked_programs.start(KILLED_BELOW, *arguments) as child:
            note(acknowledged, child.stdout)
        assert child.returncode == -signal.SIGKILL
        counts = ledger_writer.assert_file_matches(tmp_path / "data", {"w": acknowledged})
        assert counts["w"] <= acknowledged.commits + 1
        acknowledged.commits = counts["w"]


class Client(threading.Thread):
    """Writes through a server until the server dies."""

    def __init__(
        self,
        address: str,
        name: str,
        acknowledged: ledger_writer.Acknowledged,
        progress: queue.Queue[Any],
    ) -> None:
        super().__init__(daemon=True)
        self.address = address
        self.name = name
        self.acknowledged = acknowledged
        self.progress = progress
        self.unexpected: Exception | None = None

    def run(self) -> None:
        with grpc.insecure_channel(self.address) as channel:
            worker = ledger_writer.Worker(channel, self.name)
            try:
                while True:
                    self.step(worker)
                    self.progress.put(self.name)
            except grpc.RpcError as error:
                if error.code() is not grpc.StatusCode.UNAVAILABLE:
                    self.unexpected = error

    def step(self, worker: ledger_writer.Worker) -> None:
        try:
            self.acknowledged.add(worker.step())
        except grpc.RpcError as error:
            if error.code() is not grpc.StatusCode.ABORTED:
                raise


def test_a_server_killed_under_four_clients_loses_nothing(tmp_path: Path) -> None:
    chance = random.Random(1121)
    acknowledged = {name: ledger_writer.Acknowledged() for name in "abcd"}
    for number in range(max(2, ROUNDS // 2)):
        progress = queue.Queue()
        with serving(tmp_path / "data") as server:
            address = server.stdout.readline().split()[1].partition("=")[2]
            clients = [Client(address, each, acknowledged[each], progress) for each in acknowledged]
            for client in clients:
                client.start()
            for _ in range(chance.randint(1, 60)):
                progress.get(timeout=PATIENCE)
            server.send_signal(signal.SIGKILL)
            for client in clients:
                client.join(PATIENCE)
        assert [client.unexpected for client in clients] == [None] * 4
        counts = ledger_writer.assert_file_matches(tmp_path / "data", acknowledged)
        for name, count in counts.items():
            assert count <= acknowledged[name].commits + 1, f"round {number}"
            acknowledged[name].commits = count
