"""Large sets stay exact with killed and concurrent processes and with thousands of ids."""

import itertools
import json
import signal
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from comments.domain import records
from comments.store import connection, ownership, reads, transactions
from comments.store.large_sets import membership, set_compaction
from comments.store.models import set_rows
from datastore_emulator import inprocess
from tests.support import dying_programs, forked_programs, programs

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

NAME = records.SetName("a set")
INDEXES = dying_programs.INDEXES
THREADS, CHANGES = 25, 4  # Threads per process, changes per thread
LARGE = 40_000

# In this program, many threads join and leave while one thread compacts. The program prints the
# last change to each id.
CHANGING = """
import json
import random
import sys
import threading
from comments.store.large_sets import set_compaction
from comments.store import connection
from comments.store.large_sets import membership
from datastore_emulator import inprocess
from tests.comments.store.large_sets import test_membership_processes

process = sys.argv[2]
set_compaction.SEGMENT_BYTES = 500
last, folded, is_over = {}, [0, 0], threading.Event()

def change(number):
    seed = random.Random(f"{process} {number}")
    with store.context():
        for _ in range(test_membership_processes.CHANGES):
            own = f"{process}-{number:02d}-{seed.randrange(4)}"
            for member in (own, "everybody's"):
                belongs = seed.random() < 0.6
                membership.mark(test_membership_processes.NAME, member, belongs=belongs)
                last[member] = belongs

def fold():
    with store.context():
        # A busy machine may not run this thread while the others change the set.
        while not is_over.is_set() or not folded[True]:
            folded[set_compaction.compact(test_membership_processes.NAME)] += 1

with inprocess.open_engine(sys.argv[1], indexes=test_membership_processes.INDEXES) as engine:
    store = connection.Store(inprocess.Channel(engine), project="test", deadline=120.0)
    print("opened", flush=True)
    sys.stdin.read()
    folder = threading.Thread(target=fold)
    numbers = range(test_membership_processes.THREADS)
    threads = [threading.Thread(target=change, args=(n,)) for n in numbers]
    for thread in (folder, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    is_over.set()
    folder.join()
last.pop("everybody's")
print(json.dumps([last, folded]))
"""


def compact() -> None:
    """Compact with small segments in a process of its own."""
    set_compaction.SEGMENT_BYTES = set_compaction.DIRECTORY_BYTES = 60
    set_compaction.LINES = 2
    membership.AT_ONCE = 5
    set_compaction.compact(NAME)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[connection.Store]:
    """Open a store in a file that other processes share, and enter its context."""
    with inprocess.open_engine(path, indexes=INDEXES, history=0) as engine:
        opened = connection.Store(inprocess.Channel(engine), project="test")
        with opened.context():
            yield opened


def _assert_read(expected: set[str]) -> None:
    assert list(membership.every(NAME, limit=10)) == sorted(expected)


def _assert_settled(expected: set[str]) -> None:
    """Check that compaction in a different process leaves no marks or unused segments."""
    for _ in range(2):
        assert set_compaction.compact(NAME)
    _assert_read(expected)
    at = membership.pointer(NAME)
    assert at.directory.count == len(expected)
    query = reads.Query("FollowerMark", keys_only=True)
    assert list(reads.fetch(query)) == []
    query = reads.Query("FollowerSegment", keys_only=True)
    stored = {message.key.path[-1].name for message in reads.fetch(query)}
    assert stored == set(membership.keys(NAME, at.directory))


def _change(expected: set[str], turn: int) -> None:
    """Let some ids join and some ids leave."""
    for number in range(8):
        member = f"{(turn * 5 + number * 3) % 40:02d}"
        membership.mark(NAME, member, belongs=number % 3 > 0)
        (expected.add if number % 3 else expected.discard)(member)


def test_a_compactor_killed_at_any_commit_loses_nobody_and_the_next_one_finishes(
    path: Path, store: connection.Store
) -> None:
    expected: set[str] = set()
    for turn in range(3):
        _change(expected, turn)
    status, commits = dying_programs.run(path, [], compact)
    assert status == 0
    _assert_settled(expected)
    # The commits write the marks of two queries, three segments, the lines, the switch and the
    # closing.
    assert int(commits) > 6
    killed = 0
    # A kill after one commit has the same effect as a kill before the next.
    for call in range(1, int(commits) + 1):
        _change(expected, call)
        rule = {"rpc": "Commit", "call": call, "when": "before", "kill": True}
        status, said = dying_programs.run(path, [rule], compact)
        # Later histories may need fewer commits than the first.
        assert (status, said) == (-signal.SIGKILL, "") or int(said) < call
        killed += status != 0
        _assert_read(expected)
        _change(expected, call + 1)
        _assert_read(expected)
        _assert_settled(expected)
    assert killed > 5


def test_fifty_threads_of_two_processes_change_a_list_that_both_compact(
    path: Path, store: connection.Store
) -> None:
    with (
        forked_programs.start(CHANGING, path, "a") as one,
        forked_programs.start(CHANGING, path, "b") as other,
    ):
        for child in (one, other):
            assert child.stdout.readline() == "opened\n"
        said = [child.output(5 * programs.PATIENCE) for child in (one, other)]
    assert [child.returncode for child in (one, other)] == [0, 0]
    wanted: dict[str, bool] = {}
    for line in said:
        last, (_, folded) = json.loads(line)
        wanted |= last
        assert folded > 0
    assert len(wanted) > THREADS * 2
    found = set(membership.every(NAME, limit=50)) - {"everybody's"}
    assert found == {member for member, belongs in wanted.items() if belongs}
    _assert_settled(set(membership.every(NAME, limit=50)))


def _mark_many(ids: list[str], *, belongs: bool) -> None:
    """Write the marks that joining or leaving one by one would write, but in less time."""
    at = membership.pointer(NAME)
    entry = set_rows.mark_entry(NAME, at.generation, belongs=belongs)
    for first in range(0, len(ids), 500):
        rows = tuple(
            set_rows.FollowerMarkRow(key=set_rows.mark_key(NAME, at.generation, each), entry=entry)
            for each in ids[first : first + 500]
        )
        writes = ownership.Writes("membership", put=rows)
        transactions.transaction(lambda writes=writes: transactions.apply(writes))  # type: ignore[misc]


def test_no_step_of_a_set_of_40_000_ids_holds_them_all(
    store: connection.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(set_compaction, "SEGMENT_BYTES", 50_000)
    monkeypatch.setattr(set_compaction, "AT_ONCE", 100)
    names = [f"{(number * 7919) % LARGE:026d}" for number in range(LARGE)]
    set_compaction.load(NAME, iter(names))
    left, joined = sorted(names)[::100], [f"new {number}" for number in range(400)]
    _mark_many(left, belongs=False)
    _mark_many(joined, belongs=True)
    expected = sorted({*names, *joined} - set(left))
    del names
    whole = LARGE * sys.getsizeof(expected[0])
    segments = len(membership.pointer(NAME).directory.lines)
    assert segments > 20
    tracemalloc.start()
    try:
        assert set_compaction.compact(NAME)
        pairs = itertools.zip_longest(membership.every(NAME, limit=1_000), expected)
        assert all(one == other for one, other in pairs)
        assert tracemalloc.get_traced_memory()[1] < whole / 2
    finally:
        tracemalloc.stop()
    assert membership.count(NAME) == len(expected)
    for member in (expected[0], expected[7_777], expected[-1]):
        assert membership.contains(NAME, member)
    assert not membership.contains(NAME, left[100])
