"""Large follower lists stay exact with killed and concurrent processes and with 200,000 ids."""

import itertools
import json
import signal
import sys
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from comments.domain import records
from comments.notifications import follower_compaction, follower_lists
from comments.store import connection, ownership, reads, transactions
from comments.store.models import follower_rows
from emulator import inprocess
from tests.support import dying_programs, forked_programs, programs

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

NAME = records.ListName("a list")
INDEXES = dying_programs.INDEXES
THREADS, CHANGES = 25, 12  # threads per process, changes per thread
LARGE = 200_000

# In this program, many threads join and leave while one thread compacts. The program prints the
# last change to each id.
CHANGING = """
import json
import random
import sys
import threading
from comments.notifications import follower_compaction
from comments.store import connection
from comments.notifications import follower_lists
from emulator import inprocess
from tests.comments.notifications import test_follower_lists_processes

process = sys.argv[2]
follower_compaction.SEGMENT_BYTES = 500
last, folded, is_over = {}, [0, 0], threading.Event()

def change(number):
    seed = random.Random(f"{process} {number}")
    with store.context():
        for _ in range(test_follower_lists_processes.CHANGES):
            own = f"{process}-{number:02d}-{seed.randrange(4)}"
            for follower in (own, "everybody's"):
                follows = seed.random() < 0.6
                follower_lists.mark(test_follower_lists_processes.NAME, follower, follows=follows)
                last[follower] = follows

def fold():
    with store.context():
        while not is_over.is_set():
            folded[follower_compaction.compact(test_follower_lists_processes.NAME)] += 1

with inprocess.open_engine(sys.argv[1], indexes=test_follower_lists_processes.INDEXES) as engine:
    store = connection.Store(inprocess.Channel(engine), project="test", deadline=120.0)
    print("opened", flush=True)
    sys.stdin.read()
    folder = threading.Thread(target=fold)
    numbers = range(test_follower_lists_processes.THREADS)
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
    follower_compaction.SEGMENT_BYTES = follower_compaction.DIRECTORY_BYTES = 60
    follower_compaction.LINES = 2
    follower_lists.AT_ONCE = 5
    follower_compaction.compact(NAME)


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
    assert list(follower_lists.every(NAME, limit=10)) == sorted(expected)


def _assert_settled(expected: set[str]) -> None:
    """Check that compaction in a different process leaves no marks or unused segments."""
    for _ in range(2):
        assert follower_compaction.compact(NAME)
    _assert_read(expected)
    at = follower_lists.pointer(NAME)
    assert at.directory.count == len(expected)
    query = reads.Query("FollowerMark", keys_only=True)
    assert list(reads.fetch(query)) == []
    query = reads.Query("FollowerSegment", keys_only=True)
    stored = {message.key.path[-1].name for message in reads.fetch(query)}
    assert stored == set(follower_lists.keys(NAME, at.directory))


def _change(expected: set[str], turn: int) -> None:
    """Let some ids join and some ids leave."""
    for number in range(8):
        follower = f"{(turn * 5 + number * 3) % 40:02d}"
        follower_lists.mark(NAME, follower, follows=number % 3 > 0)
        (expected.add if number % 3 else expected.discard)(follower)


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
    found = set(follower_lists.every(NAME, limit=50)) - {"everybody's"}
    assert found == {follower for follower, follows in wanted.items() if follows}
    _assert_settled(set(follower_lists.every(NAME, limit=50)))


def _mark_many(ids: list[str], *, follows: bool) -> None:
    """Write the marks that joining or leaving one by one would write, but in less time."""
    at = follower_lists.pointer(NAME)
    entry = follower_rows.follower_mark_entry(NAME, at.generation, follows=follows)
    for first in range(0, len(ids), 500):
        rows = tuple(
            follower_rows.FollowerMarkRow(
                key=follower_rows.follower_mark_key(NAME, at.generation, each), entry=entry
            )
            for each in ids[first : first + 500]
        )
        writes = ownership.Writes("follower_lists", put=rows)
        transactions.transaction(lambda writes=writes: transactions.apply(writes))  # type: ignore[misc]


def test_200_000_ids_follow_one_thread_and_no_step_holds_them_all(store: connection.Store) -> None:
    names = [f"{(number * 7919) % LARGE:026d}" for number in range(LARGE)]
    follower_compaction.load(NAME, iter(names))
    left, joined = sorted(names)[::100], [f"new {number}" for number in range(2_000)]
    _mark_many(left, follows=False)
    _mark_many(joined, follows=True)
    expected = sorted({*names, *joined} - set(left))
    del names
    whole = LARGE * sys.getsizeof(expected[0])
    segments = len(follower_lists.pointer(NAME).directory.lines)
    assert segments > 20
    tracemalloc.start()
    try:
        assert follower_compaction.compact(NAME)
        pairs = itertools.zip_longest(follower_lists.every(NAME, limit=5_000), expected)
        assert all(one == other for one, other in pairs)
        assert tracemalloc.get_traced_memory()[1] < whole / 2
    finally:
        tracemalloc.stop()
    assert follower_lists.count(NAME) == len(expected)
    for follower in (expected[0], expected[77_777], expected[-1]):
        assert follower_lists.contains(NAME, follower)
    assert not follower_lists.contains(NAME, left[500])
