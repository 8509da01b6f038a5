"""Processes take turns to write; dead processes and other programs stop no process."""

import contextlib
import errno
import fcntl
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from datastore_emulator import errors, inprocess
from datastore_emulator.fault_injection import fault_rules
from datastore_emulator.storage import data_file, maintenance, writer_lock
from emulator.tests.storage import test_processes
from emulator.tests.support import ledger_writer, service_calls
from emulator.tests.support.service_calls import assert_refused
from tests.support import forked_programs, programs

PATIENCE = programs.PATIENCE

# A program that holds the turn again and again, and adds its letter to a file during each turn. A
# turn is longer than the time between two attempts of a waiting process.
TAKING = """
import os, sys, time
from datastore_emulator.storage import writer_lock

path, name = sys.argv[1:]
lock = writer_lock.WriterLock(path)
told = os.open(path + "-told", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
while True:
    lock.acquire()
    until = time.monotonic() + 4 * writer_lock._STEP
    os.write(told, name.encode())
    while time.monotonic() < until:
        pass
    lock.release()
"""

# A program that takes the turn once and says so, or says that the data file is busy.
ASKING = """
import sys
from datastore_emulator import errors
from datastore_emulator.storage import data_file, writer_lock

data_file.BUSY_SECONDS = float(sys.argv[2])
lock = writer_lock.WriterLock(sys.argv[1])
print("asking", flush=True)
try:
    lock.acquire()
except errors.Unavailable:
    print("busy", flush=True)
else:
    print("held", flush=True)
sys.stdin.readline()
"""

# A program whose threads commit without a pause, and print a letter for each commit.
COMMITTING = """
import os, sys, threading
from datastore_emulator import inprocess
from emulator.tests.support import service_calls

path, name, threads = sys.argv[1:]
with inprocess.open_engine(path, concurrency="pessimistic") as engine:
    service = service_calls.Service(inprocess.Channel(engine))

    def commit(thread):
        while True:
            service.put(service.key("T", f"{name} {thread}"), a=1)
            os.write(1, name.encode())

    for thread in range(int(threads)):
        threading.Thread(target=commit, args=(thread,), daemon=True).start()
    sys.stdin.readline()
    os._exit(0)
"""

Start = Callable[..., forked_programs.Program]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    inprocess.open_engine(tmp_path / "data").close()
    return tmp_path / "data"


@pytest.fixture
def start() -> Iterator[Start]:
    """Start programs that end with the test."""
    started = []

    def start(program: str, *arguments: Any) -> forked_programs.Program:
        started.append(forked_programs.start(program, *arguments))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def release(holder: forked_programs.Program) -> str:
    """Let an asking program end; return the rest of what it says."""
    holder.stdin.write("\n")
    return holder.output()


@pytest.fixture
def is_free(path: Path, start: Start) -> Callable[[], bool]:
    """Return a function that asks whether another process could begin to write."""

    def ask() -> bool:
        asking = start(ASKING, path, 0)
        return release(asking).split() == ["asking", "held"]

    return ask


@pytest.fixture
def opened(path: Path) -> Iterator[tuple[inprocess.Engine, service_calls.Service]]:
    with inprocess.open_engine(path) as engine:
        yield engine, service_calls.Service(inprocess.Channel(engine))


def is_mostly(holds: Callable[[Counter[str]], bool], letters: str, parts: int) -> bool:
    """Return whether a condition holds in most of the parts of a text, each of the same length.

    A busy machine may not run one of the processes for some time, which no lock can prevent.
    """
    size = len(letters) // parts
    counts = (Counter(letters[place * size : (place + 1) * size]) for place in range(parts))
    return sum(map(holds, counts)) * 2 > parts


def together(letters: str) -> str:
    """Return the part of a text in which every letter still follows and has already appeared."""
    first = max(letters.index(letter) for letter in set(letters))
    last = min(letters.rindex(letter) for letter in set(letters))
    return letters[first : last + 1]


@pytest.mark.parametrize("names", ["ab", "abc"])
def test_processes_that_always_want_the_turn_get_it_equally_often(
    path: Path, start: Start, names: str
) -> None:
    told = path.with_name("data-told")
    told.touch()
    for name in names:
        start(TAKING, path, name)
    programs.wait_until(lambda: set(told.read_text()) == set(names))
    begun = told.stat().st_size
    programs.wait_until(lambda: told.stat().st_size > begun + 300)
    turns = together(told.read_text())

    def is_fair(counts: Counter[str]) -> bool:
        return counts.keys() == set(names) and min(counts.values()) * 3 > max(counts.values())

    assert is_mostly(is_fair, turns, 9), turns


@pytest.mark.slow
def test_a_process_with_one_thread_is_not_starved_by_two_with_eight(
    path: Path,
) -> None:
    reading, writing = os.pipe()
    letters = ""
    with contextlib.ExitStack() as stack:
        for name, threads in (("a", 8), ("b", 8), ("c", 1)):
            program = [sys.executable, "-c", COMMITTING, str(path), name, str(threads)]
            process = subprocess.Popen(
                program, cwd=programs.ROOT, stdin=subprocess.PIPE, stdout=writing
            )
            stack.enter_context(process)
            stack.callback(process.kill)
        os.close(writing)
        lines = stack.enter_context(os.fdopen(reading))
        while set(letters) != set("abc") or len(together(letters)) < 1_350:
            letters += lines.read(1)

    # Each process gets one of three turns. In a turn, a process commits at most once per thread.
    def is_fair(commits: Counter[str]) -> bool:
        one, other = commits["a"], commits["b"]
        return min(one, other) * 3 > max(one, other) and commits["c"] * 8 * 3 > one

    assert is_mostly(is_fair, together(letters), 9), letters


@pytest.mark.parametrize("dead", ["the holder", "the next"])
def test_the_kernel_ends_the_turn_of_a_killed_process(path: Path, start: Start, dead: str) -> None:
    holder = start(ASKING, path, PATIENCE)
    assert [holder.stdout.readline() for _ in range(2)] == ["asking\n", "held\n"]
    following = start(ASKING, path, PATIENCE)
    assert following.stdout.readline() == "asking\n"
    killed, left = (holder, following) if dead == "the holder" else (following, holder)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    if left is holder:
        release(left)
        left = start(ASKING, path, PATIENCE)
        assert left.stdout.readline() == "asking\n"
    assert left.stdout.readline() == "held\n"


def test_a_stopped_process_makes_the_file_busy_and_not_wait_forever(
    path: Path,
    start: Start,
    opened: tuple[inprocess.Engine, service_calls.Service],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, service = opened
    holder = start(ASKING, path, PATIENCE)
    assert [holder.stdout.readline() for _ in range(2)] == ["asking\n", "held\n"]
    holder.send_signal(signal.SIGSTOP)
    monkeypatch.setattr(data_file, "BUSY_SECONDS", 0.01)
    for _ in range(2):
        with assert_refused("UNAVAILABLE", "data file is busy"):
            service.put(service.key("T", 1), a=1)
    monkeypatch.setattr(data_file, "BUSY_SECONDS", PATIENCE)
    holder.kill()
    service.put(service.key("T", 1), a=1)
    assert service.names("T") == [1]


@pytest.mark.parametrize("ending", ["commit", "refusal", "fault", "begin", "alone", "reset"])
def test_the_turn_ends_with_the_transaction(
    opened: tuple[inprocess.Engine, service_calls.Service],
    is_free: Callable[[], bool],
    monkeypatch: pytest.MonkeyPatch,
    ending: str,
) -> None:
    engine, service = opened
    turn = engine.storage._connections.turn
    if ending == "commit":
        service.put(service.key("T", 1), a=1)
    elif ending == "refusal":
        with assert_refused("NOT_FOUND"):
            service.commit({"update": service.entity(service.key("T", 1), a=1)})
    elif ending == "fault":
        service.put(service.key("T", 1), a=1)
        turn.connection.execute("PRAGMA max_page_count = 1")
        with assert_refused("RESOURCE_EXHAUSTED"):
            text = service_calls.Unindexed("x" * 100_000)
            service.put(service.key("T", 2), a=1, text=text)
    elif ending == "begin":
        monkeypatch.setattr(data_file, "BUSY_SECONDS", 0.01)
        with sqlite3.connect(engine.storage.path, isolation_level=None) as other:
            other.execute("BEGIN IMMEDIATE")
            with assert_refused("UNAVAILABLE"):
                service.put(service.key("T", 1), a=1)
            other.execute("ROLLBACK")
    elif ending == "alone":
        with turn.alone():
            assert not is_free()
    else:
        engine.reset()
    assert is_free()


def test_a_group_holds_the_turn_until_it_is_on_disk(
    opened: tuple[inprocess.Engine, service_calls.Service], is_free: Callable[[], bool]
) -> None:
    engine, _ = opened
    with engine.storage.write():
        assert not is_free()
    assert is_free()


def test_compaction_takes_the_turn(path: Path, start: Start) -> None:
    holder = start(ASKING, path, PATIENCE)
    assert [holder.stdout.readline() for _ in range(2)] == ["asking\n", "held\n"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(data_file, "BUSY_SECONDS", 0.01)
        with pytest.raises(errors.Unavailable, match="data file is busy"):
            maintenance.compact(path, now=1)
    release(holder)
    maintenance.compact(path, now=1)


def test_a_forked_child_does_not_hold_its_parents_turn(path: Path) -> None:
    lock = writer_lock.WriterLock(str(path))
    lock.acquire()
    child = forked_programs.fork()
    if not child:
        try:
            lock.release()  # Releases nothing, because the child holds nothing
            data_file.BUSY_SECONDS = 0.01
            with pytest.raises(errors.Unavailable):
                lock.acquire()
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    lock.release()
    child = forked_programs.fork()
    if not child:
        lock.acquire()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    lock.close()


def test_the_lock_does_not_outlive_its_process_in_a_child(
    path: Path, start: Start, is_free: Callable[[], bool]
) -> None:
    program = ASKING.replace("sys.stdin.readline()", "import os\nos.fork() or sys.stdin.readline()")
    parent = start(program, path, 0)
    assert [parent.stdout.readline() for _ in range(2)] == ["asking\n", "held\n"]
    parent.kill()
    # To wait with `wait` would close the pipe from which the child reads.
    programs.wait_until(lambda: parent.returncode is not None)
    assert is_free()


@pytest.mark.parametrize("fault", ["folder", "no locks"])
def test_without_the_file_sqlites_own_lock_suffices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    if fault == "folder":
        (tmp_path / "data-turn").mkdir()
    else:
        monkeypatch.setattr(fcntl, "lockf", refuse)
    with inprocess.open_engine(tmp_path / "data") as engine:
        service = service_calls.Service(inprocess.Channel(engine))
        for number in (1, 2):
            service.put(service.key("T", number), a=1)
        assert service.names("T") == [1, 2]


def test_a_program_that_does_not_know_the_lock_loses_nothing(path: Path) -> None:
    """The first process is like an older program: it relies on SQLite's lock alone."""
    older = (
        "from datastore_emulator.storage import writer_lock\n"
        "writer_lock.WriterLock.acquire = lambda lock: None\n"
    )
    children = [
        forked_programs.start(prelude + test_processes.COUNTING, path, name, 15)
        for name, prelude in zip("abc", (older, "", ""), strict=True)
    ]
    numbers = []
    for child in children:
        lines = child.output().splitlines()
        assert child.returncode == 0
        numbers += [int(line.split()[0]) for line in lines]
    assert sorted(numbers) == list(range(1, 46))


# A program that kills itself in its fourth commit: at a point of a fault plan, or after the COMMIT.
DYING = """
import os, signal, sys
from pathlib import Path
from datastore_emulator.fault_injection import fault_plans
from datastore_emulator.storage import group_commit
from emulator.tests.support import ledger_writer

def die(turn, group):
    os.kill(os.getpid(), signal.SIGKILL)

with ledger_writer.open_engine(Path(sys.argv[1])) as engine:
    worker = ledger_writer.worker(engine, "dead")
    for _ in range(3):
        ledger_writer.say(worker.step())
    if sys.argv[2] == "COMMIT":
        group_commit.WriteTurn._has_happened = die
    else:
        engine.install_faults(fault_plans.Plan.parse(sys.argv[2]))
    worker.step()
"""


@pytest.mark.slow
@pytest.mark.parametrize("point", ["COMMIT", *sorted(fault_rules.POINTS)])
def test_a_process_killed_in_its_turn_stops_no_other(path: Path, start: Start, point: str) -> None:
    plan = json.dumps({"rules": [{"point": point, "call": 1, "kill": True}]})
    known = {"dead": ledger_writer.Acknowledged(), "left": ledger_writer.Acknowledged()}
    with ledger_writer.open_engine(path) as engine:
        worker = ledger_writer.worker(engine, "left")
        dying = start(DYING, path, point if point == "COMMIT" else plan)
        is_over = False
        while not is_over:
            is_over = dying.returncode is not None
            known["left"].commits = worker.commit()[0]
    assert dying.returncode == -signal.SIGKILL
    for line in dying.stdout:
        known["dead"].add(line)
    found = ledger_writer.assert_file_matches(path, known)
    assert found["left"] == known["left"].commits
    assert found["dead"] == 3 + (point in {"COMMIT", "commit.after"})
