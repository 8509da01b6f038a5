"""Compaction in real processes never misleads readers, despite kills, stops and races."""

import itertools
import signal
from collections.abc import Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import pytest

from comments.domain import presentation, records
from comments.posting import own_comment
from comments.reading.compaction import compactor, leftovers
from comments.reading.materialized import directories, merged_view, thread_view, view_cache
from comments.sites import site_settings
from comments.store import connection
from comments.tree.lists import ordered_query
from comments.upkeep import scheduler
from comments.upkeep.integrity import repair
from datastore_emulator import inprocess
from tests.support import dying_programs, forked_programs, programs
from tests.support.threads import compaction, sample_threads, sample_votes

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

SCHEME = sample_threads.SETTINGS.scheme
NAME = records.ThreadName("demo", "page")
INDEXES = dying_programs.INDEXES

# This program compacts until told to stop. It prints a line when it starts, and one after its first
# switch that succeeds.
RACING = """
import sys
import threading
from comments.store import connection
from comments.reading.compaction import compactor
from datastore_emulator import inprocess
from tests.comments.reading import test_compactor_processes

compactor.BUCKET_ROWS, compactor.TAIL_ROWS = 4, 2
told = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), told.set()), daemon=True).start()
with inprocess.open_engine(sys.argv[1], indexes=test_compactor_processes.INDEXES) as engine:
    store = connection.Store(inprocess.Channel(engine), project="test")
    print("opened", flush=True)
    has_switched = False
    with store.context():
        while not told.is_set():
            name = test_compactor_processes.NAME
            folded = compactor.compact(test_compactor_processes.SCHEME, name)
            if folded is None:
                continue
            if not has_switched:
                print("switched", flush=True)
                has_switched = True
            compactor.clear(folded)  # nobody reads with an old directory here
"""

# This program caches a directory, stops itself before a probe within the directory's age limit, and
# continues to read when woken.
STOPPED = """
import os
import signal
import sys
from comments.store import connection
from comments.tree.lists import ordered_query
from tests.support.threads import compaction
from comments.reading.materialized import view_cache
from comments.domain import presentation
from datastore_emulator import inprocess
from tests.comments.reading import test_compactor_processes

view_cache.CACHE_MAX_AGE = test_compactor_processes.AGE
with inprocess.open_engine(sys.argv[1], indexes=test_compactor_processes.INDEXES) as engine:
    stops = []
    def stopping(method, request, proceed):
        is_probe = method.endswith("RunQuery") and len(request.query.projection) == 1
        if stops and is_probe:
            stops.clear()
            print("stopping", flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)
        return proceed()
    store = connection.Store(inprocess.Channel(engine, stopping), project="test")
    def read():
        name = test_compactor_processes.NAME
        return compaction.with_view(name, lambda view: [row.json for row in view.rows()])
    with store.context():
        read()
        view_cache.HOLDINGS.of(store).cache.drop(
            ("directory", test_compactor_processes.NAME)
        )
        stops.append(True)
        found = read()
        rows = ordered_query.thread(test_compactor_processes.NAME)
        expected = [presentation.fragment(row) for row in rows]
        print(found == expected, flush=True)
"""
# This program compacts and clears, stops itself before a commit that puts a given kind, and
# continues when woken.
STOPPED_COMPACTOR = """
import os
import signal
import sys
from comments.store import connection
from comments.reading.compaction import compactor
from comments.reading.materialized import merged_view
from datastore_emulator import inprocess
from tests.comments.reading import test_compactor_processes

compactor.BUCKET_ROWS, compactor.TAIL_ROWS = 4, 2
with inprocess.open_engine(sys.argv[1], indexes=test_compactor_processes.INDEXES) as engine:
    left = [sys.argv[2]]
    def stopping(method, request, proceed):
        is_commit = left and method.endswith("Commit")
        kinds = test_compactor_processes.kinds_put(request) if is_commit else set()
        if left and left[0] in kinds:
            left.clear()
            print("stopping", flush=True)
            os.kill(os.getpid(), signal.SIGSTOP)
        return proceed()
    store = connection.Store(inprocess.Channel(engine, stopping), project="test")
    with store.context():
        folded = compactor.compact(test_compactor_processes.SCHEME, test_compactor_processes.NAME)
        if folded is not None:
            compactor.clear(folded)
    print("refused" if folded is None else "folded", flush=True)
"""
AGE = 1.5  # Seconds: longer than a read takes, short enough for a test


def compact_and_clear() -> None:
    """Compact and clear in a process of its own."""
    compactor.BUCKET_ROWS, compactor.TAIL_ROWS = 4, 2
    folded = compactor.compact(SCHEME, NAME)
    assert folded is not None
    compactor.clear(folded)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def store(path: Path) -> Iterator[connection.Store]:
    """Open a store in a file that other processes share, and enter its context."""
    with inprocess.open_engine(path, indexes=INDEXES) as engine:
        opened = connection.Store(inprocess.Channel(engine), project="test")
        with opened.context():
            yield opened


@pytest.fixture
def changed_thread(store: connection.Store) -> records.Site:
    """A thread with rows in buckets, tail and delta."""
    site = site_settings.add("demo", ["https://a.example"], scheme=SCHEME, now=sample_threads.START)
    for round_ in range(3):
        sample_threads.grow(site, {f"{round_}.{n}": {f"{round_}.{n}.1": {}} for n in range(4)})
        if round_ < 2:
            compaction.whole(NAME)
    return site


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    compaction.small_buckets(monkeypatch)


def kinds_put(commit: Any) -> set[str]:
    """Return the kinds of entities that a commit puts."""
    return {
        mutation.upsert.key.path[-1].kind
        for mutation in commit.mutations
        if mutation.WhichOneof("operation") == "upsert"
    }


def _assert_reader_right() -> None:
    """Check that a new process reads the same rows and total as the ordered query."""
    view_cache.HOLDINGS.get().cache = view_cache.Holdings().cache
    rows = ordered_query.thread(NAME)
    found = compaction.with_view(NAME, lambda view: [row.json for row in view.rows()])
    assert found == [presentation.fragment(row) for row in rows]
    assert thread_view.view(NAME).total == len(rows)


def _assert_settled() -> None:
    """Check that compaction in a different process leaves nothing to do and no orphans."""
    orphans = leftovers.orphans(NAME)
    compaction.whole(NAME)
    leftovers.delete_orphans(NAME, orphans)
    _assert_reader_right()
    sample_votes.count_waiting()
    assert scheduler.find_due_work() == []
    assert leftovers.orphans(NAME) == []
    directory = directories.load_directory(NAME)
    rows = sum(line.count for line in directory.lines)
    assert rows + sum(map(merged_view.weight_of, directory.content.tail)) == len(
        ordered_query.thread(NAME)
    )


def test_the_next_compactor_finishes_for_one_killed_at_any_commit(
    path: Path, changed_thread: records.Site
) -> None:
    status, commits = dying_programs.run(path, [], compact_and_clear)
    assert status == 0
    _assert_settled()
    assert int(commits) > 3  # Buckets, switch, flags, deletion.
    # A kill after one commit has the same effect as a kill before the next.
    for call in range(1, int(commits) + 1):
        sample_threads.grow(changed_thread, {f"{call}.{n}": {} for n in range(7)})
        when = "after" if call == int(commits) else "before"
        rule = {"rpc": "Commit", "call": call, "when": when, "kill": True}
        status, said = dying_programs.run(path, [rule], compact_and_clear)
        # Later histories may need fewer commits than the first.
        assert (status, said) == (-signal.SIGKILL, "") or int(said) < call
        _assert_reader_right()
        _assert_settled()
    assert repair.find_problems(SCHEME, NAME) == []


def test_three_processes_that_compact_one_thread_concurrently_lose_nothing(
    path: Path, changed_thread: records.Site
) -> None:
    numbers = itertools.count()
    with (
        futures.ThreadPoolExecutor(3) as pool,
        forked_programs.start(RACING, path) as one,
        forked_programs.start(RACING, path) as two,
        forked_programs.start(RACING, path) as three,
    ):
        children = (one, two, three)
        for child in children:
            assert child.stdout.readline() == "opened\n"
        lines = [pool.submit(child.stdout.readline) for child in children]

        def have_all_switched() -> bool:
            number = next(numbers)
            sample_threads.post(changed_thread, f"while they fold {number}")
            return number >= 40 and all(line.done() for line in lines)

        programs.wait_until(have_all_switched)  # A busy system may not run a process for some time.
        assert [line.result() for line in lines] == ["switched\n"] * 3
        assert [child.output() for child in children] == [""] * 3
    assert [child.returncode for child in children] == [0, 0, 0]
    _assert_settled()


def test_a_process_stopped_past_its_directorys_age_answers_from_a_new_one(
    path: Path, changed_thread: records.Site
) -> None:
    with forked_programs.start(STOPPED, path) as reader:
        assert reader.stdout.readline() == "stopping\n"
        programs.wait_until(lambda: forked_programs.is_stopped(reader.pid))
        sample_threads.post(changed_thread, "while it stood still")
        compaction.whole(NAME)
        _let_age_pass()
        reader.send_signal(signal.SIGCONT)
        assert reader.stdout.readline() == "True\n"
    assert reader.returncode == 0


@pytest.mark.parametrize(
    ("kind", "outcome"),
    [("Bucket", "refused"), ("BucketDirectory", "refused"), ("Comment", "folded")],
)
def test_a_compactor_stopped_before_any_commit_misleads_no_reader(
    path: Path, changed_thread: records.Site, kind: str, outcome: str
) -> None:
    rows = sample_threads.grow(changed_thread, {f"late {n}": {} for n in range(6)})
    with forked_programs.start(STOPPED_COMPACTOR, path, kind) as child:
        assert child.stdout.readline() == "stopping\n"
        programs.wait_until(lambda: forked_programs.is_stopped(child.pid))
        for text in ("late 1", "late 4"):
            own_comment.retract(
                rows[text].id, author_id=f"g:{text}", revision=None, now=sample_threads.START
            )
        _assert_reader_right()
        compaction.whole(NAME)
        # This row changes after the compactor read it, so the compactor must not clear its flag on
        # waking.
        own_comment.retract(
            rows["late 2"].id, author_id="g:late 2", revision=None, now=sample_threads.START
        )
        sample_threads.post(changed_thread, "after all")
        _assert_reader_right()
        child.send_signal(signal.SIGCONT)
        assert child.stdout.readline() == f"{outcome}\n"
    assert child.returncode == 0
    _assert_reader_right()
    sample_votes.count_waiting()
    assert scheduler.find_due_work() == [NAME]
    _assert_settled()


def _let_age_pass() -> None:
    """Wait until no process may still use a directory that it read before this call."""
    since = view_cache.seconds()
    programs.wait_until(lambda: view_cache.seconds() - since > AGE)
