"""Concurrent posts to one place get distinct numbers, both in threads and in processes."""

import json
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from comments import errors
from comments.domain import records
from comments.sites import site_settings
from comments.store import connection, reads
from comments.store.models import comment_rows
from comments.tree.lists import ordered_query
from comments.upkeep.integrity import repair
from datastore_emulator import inprocess
from tests.conftest import ROOT
from tests.support import forked_programs, stored_state
from tests.support.threads import sample_threads

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

WRITER = """
import sys, json, threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from comments.store import connection
from comments.tree.lists import ordered_query
from comments.domain import records
from comments.domain.ids import sorthash
from datastore_emulator import inprocess
from tests.support.threads import sample_threads
from tests.support import forked_programs, stored_state

path, parent, label, count = sys.argv[1], sys.argv[2] or None, sys.argv[3], int(sys.argv[4])
engine = inprocess.open_engine(path, indexes=sys.argv[5], concurrency="pessimistic")
store = connection.Store(inprocess.Channel(engine), project="test", deadline=300.0)
site = records.Site("demo", (), sorthash.DEFAULT_DIGITS, 2)
barrier = threading.Barrier(count)

def write(n):
    with store.context():
        barrier.wait(60)
        row = sample_threads.post(site, f"{label}-{n}", parent)
        # In one piece: the line and its end, printed apart, are mixed with those of others.
        sys.stdout.write(json.dumps([row.id, row.sort_hash, row.number]) + "\\n")
        sys.stdout.flush()

print("ready", flush=True)
sys.stdin.readline()
with ThreadPoolExecutor(count) as pool:
    list(pool.map(write, range(count)))
"""


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[inprocess.Engine]:
    """An engine on a file that other processes also open."""
    with inprocess.open_engine(
        tmp_path / "store.db", indexes=ROOT / "index.yaml", concurrency="pessimistic"
    ) as engine:
        yield engine


def _writer(tmp_path: Path, parent: str | None, label: str, count: int) -> forked_programs.Program:
    arguments = (tmp_path / "store.db", parent or "", label, count)
    process = forked_programs.start(WRITER, *arguments, ROOT / "index.yaml")
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("below", ["a comment", "the thread"])
def test_64_threads_of_two_processes_post_to_one_parent(
    open_store: connection.Store, site: records.Site, tmp_path: Path, below: str
) -> None:
    with open_store.context():
        parent = sample_threads.post(site, "parent").id if below == "a comment" else None
    writers = [_writer(tmp_path, parent, label, 32) for label in ("left", "right")]
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    posted = [line for writer in writers for line in writer.output(300).split("\n")]
    assert [writer.returncode for writer in writers] == [0, 0]
    rows = [json.loads(line) for line in posted if line]
    assert len({row[0] for row in rows}) == len({row[1] for row in rows}) == 64
    with open_store.context():
        name = sample_threads.name_of(site)
        assert repair.find_problems(sample_threads.SETTINGS.scheme, name) == []
        thread = reads.get(comment_rows.thread_key(name))
        counter = ordered_query.thread(name)[0].child_count if parent else thread.child_count
        assert counter == 64
        assert sorted(row[2] for row in rows) == list(range(1, 65) if parent else range(64))


@pytest.mark.parametrize("below", ["a comment", "the thread"])
def test_200_concurrent_posts_are_200_comments(
    open_store: connection.Store, site: records.Site, below: str
) -> None:
    open_store.deadline = 300.0
    with open_store.context():
        parent = sample_threads.post(site, "parent").id if below == "a comment" else None
    barrier = threading.Barrier(200)

    def write(n: int) -> str:
        with open_store.context():
            barrier.wait(60)
            return sample_threads.post(site, f"{n}", parent).id

    with ThreadPoolExecutor(200) as pool:
        posted = set(pool.map(write, range(200)))
    with open_store.context():
        assert posted <= {row.id for row in ordered_query.thread(sample_threads.name_of(site))}
        assert len(posted) == 200
        stored_state.assert_sums(is_delivered=False)
        assert (
            repair.find_problems(sample_threads.SETTINGS.scheme, sample_threads.name_of(site)) == []
        )


def test_a_writer_killed_at_any_moment_leaves_an_intact_thread(
    open_store: connection.Store, site: records.Site, tmp_path: Path
) -> None:
    acknowledged: set[str] = set()
    for round_ in range(5):
        writer = _writer(tmp_path, None, f"round{round_}", 64)
        writer.stdin.write("go\n")
        writer.stdin.flush()
        # Kill the writer after some answers, while other posts are in progress.
        acknowledged.update(json.loads(writer.stdout.readline())[0] for _ in range(1 + round_))
        writer.send_signal(signal.SIGKILL)
        for line in writer.output().splitlines(keepends=True):
            if line.endswith("\n"):
                acknowledged.add(json.loads(line)[0])
    with open_store.context():
        name = sample_threads.name_of(site)
        assert repair.find_problems(sample_threads.SETTINGS.scheme, name) == []
        assert acknowledged <= {row.id for row in ordered_query.thread(name)}


def test_concurrent_retractions_of_the_last_two_replies_unlist_the_tombstone(
    open_store: connection.Store, site: records.Site
) -> None:
    for attempt in range(8):
        thread = f"page{attempt}"
        with open_store.context():
            grown = sample_threads.grow(site, {"1": {"1.1": {}, "1.2": {}}}, thread=thread)
            sample_threads.retract(grown["1"])
        barrier = threading.Barrier(2)

        def work(row: records.Comment, barrier: threading.Barrier = barrier) -> None:
            with open_store.context():
                barrier.wait(60)
                sample_threads.retract(row)

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(work, [grown["1.1"], grown["1.2"]]))
        with open_store.context():
            assert sample_threads.listed(site, thread) == []
            name = sample_threads.name_of(site, thread)
            assert repair.find_problems(sample_threads.SETTINGS.scheme, name) == []


def test_a_reply_races_with_the_retraction_of_its_parent(
    open_store: connection.Store, site: records.Site
) -> None:
    for attempt in range(8):
        thread = f"page{attempt}"
        with open_store.context():
            root = sample_threads.post(site, "1", thread=thread)
        barrier = threading.Barrier(2)

        def reply(
            root: records.Comment = root,
            thread: str = thread,
            barrier: threading.Barrier = barrier,
        ) -> bool:
            with open_store.context():
                barrier.wait(60)
                try:
                    sample_threads.post(site, "1.1", root.id, thread=thread)
                except errors.Conflict:
                    return False
                return True

        def retract(root: records.Comment = root, barrier: threading.Barrier = barrier) -> None:
            with open_store.context():
                barrier.wait(60)
                sample_threads.retract(root)

        with ThreadPoolExecutor(2) as pool:
            replied, _ = pool.submit(reply), pool.submit(retract).result()
        with open_store.context():
            expected = ["-", "1.1"] if replied.result() else []
            assert sample_threads.listed(site, thread) == expected


def test_readers_page_without_skips_or_repeats_while_writers_add(
    open_store: connection.Store, site: records.Site
) -> None:
    with open_store.context():
        first = [sample_threads.post(site, f"root {n}").id for n in range(30)]
    stop = threading.Event()

    def write(label: int) -> None:
        n = 0
        with open_store.context():
            while not stop.is_set():
                sample_threads.post(site, f"late {label} {n}", first[(7 * n + label) % len(first)])
                n += 1

    with ThreadPoolExecutor(4) as pool:
        writers = [pool.submit(write, label) for label in range(4)]
        try:
            with open_store.context():
                for _ in range(5):
                    _assert_pages_hold(site, first)
        finally:
            stop.set()
        for writer in writers:
            writer.result(60)


def _assert_pages_hold(site: records.Site, expected: list[str]) -> None:
    seen: list[records.Comment] = []
    cursor = None
    while True:
        page = ordered_query.page(
            sample_threads.name_of(site),
            order=ordered_query.QueryOrder.THREAD,
            parent=None,
            limit=7,
            cursor=cursor,
            secret=sample_threads.SETTINGS.secret,
        )
        seen += page.comments
        cursor = page.cursor
        if cursor is None:
            break
    ids = [row.id for row in seen]
    assert len(ids) == len(set(ids))
    assert [id_ for id_ in ids if id_ in set(expected)] == expected
    assert [row.sort_hash for row in seen] == sorted(row.sort_hash for row in seen)


def test_concurrent_additions_of_one_site_create_it_once(open_store: connection.Store) -> None:
    barrier = threading.Barrier(4)

    def add(_: int) -> bool:
        with open_store.context():
            barrier.wait(60)
            try:
                site_settings.add(
                    "one",
                    ["https://one.example"],
                    scheme=sample_threads.SETTINGS.scheme,
                    now=sample_threads.START,
                )
            except errors.Conflict:
                return False
            return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(add, range(4))) == 1
