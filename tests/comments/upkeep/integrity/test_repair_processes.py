"""Repairs in real processes and threads: killed at any commit, and while people read and write."""

import itertools
import random
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from comments import errors
from comments.domain import records
from comments.reading.materialized import view_cache
from comments.sites import site_settings
from comments.upkeep import scheduler
from comments.upkeep.integrity import repair
from datastore_emulator import inprocess
from tests.support import datastores, dying_programs
from tests.support.threads import compaction, raw_changes, reader_processes, sample_threads

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

SCHEME = sample_threads.SETTINGS.scheme
NAME = records.ThreadName("demo", "page")
Grown = dict[str, records.Comment]


def named(thread: str) -> records.ThreadName:
    return records.ThreadName("demo", thread)


def repair_and_compact(thread: str) -> None:
    """Repair and compact a thread in a process of its own."""
    compaction.small_buckets(pytest.MonkeyPatch(), 3)
    repair.fix(SCHEME, named(thread))
    scheduler.compact_whole([named(thread)], wait=lambda _seconds: None)


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    compaction.small_buckets(monkeypatch, 3)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


@pytest.fixture
def engine(path: Path) -> Iterator[inprocess.Engine]:
    """An engine on a file that other processes share."""
    with inprocess.open_engine(path, indexes=dying_programs.INDEXES) as engine:
        yield engine


@pytest.fixture
def site(datastore: datastores.Datastore) -> Iterator[records.Site]:
    """A site in the store of this process, inside the store's context."""
    with datastore.connect().context():
        yield site_settings.add(
            "demo", ["https://a.example"], scheme=SCHEME, now=sample_threads.START
        )


def _spoil(rows: Grown) -> None:
    raw_changes.comment(rows["1.1"].id, level=5, body="other")
    raw_changes.comment(rows["3"].id, status="rejected")
    raw_changes.comment(rows["1.1.2"].id, sort_hash=rows["2"].sort_hash)
    raw_changes.delete_comments(rows["2.1"].id)


def test_the_next_repair_finishes_for_one_killed_at_any_commit(
    path: Path, datastore: datastores.Datastore, site: records.Site
) -> None:
    for call in itertools.count(1):
        name = named(f"page {call}")
        rows = sample_threads.grow(site, sample_threads.TREE, thread=name.id)
        compaction.whole(name)
        _spoil(rows)
        rule = {"rpc": "Commit", "call": call, "when": "before", "kill": True}
        status, commits = dying_programs.run(path, [rule], repair_and_compact, name.id)
        repair.fix(SCHEME, name)
        assert repair.find_problems(SCHEME, name) == []
        reader = reader_processes.Reader(datastore)
        reader.assert_current(name)
        scheduler.compact_whole([name], wait=lambda _seconds: None)
        reader.now += view_cache.CACHE_MAX_AGE
        reader.assert_current(name)
        if status == 0:
            assert int(commits) < call
            assert call > 5
            return
        assert (status, commits) == (-signal.SIGKILL, "")


def test_a_repair_while_people_read_and_write_leaves_pages_equal_to_the_ordered_query(
    engine: inprocess.Engine, site: records.Site
) -> None:
    rows = sample_threads.grow(site, sample_threads.TREE)
    compaction.whole(NAME)
    ended, failed = threading.Event(), list[BaseException]()
    people = [
        threading.Thread(
            target=_live, args=(datastores.Embedded(engine), site, rows, seed, ended, failed)
        )
        for seed in range(3)
    ]
    for person in people:
        person.start()
    try:
        _spoil(rows)
        for _ in range(4):
            _repaired()
            raw_changes.comment(rows["1.2"].id, html="<p>x</p>")
            raw_changes.comment(rows["2"].id, level=7)
        _repaired()
    finally:
        ended.set()
        for person in people:
            person.join()
    assert failed == []
    repair.fix(SCHEME, NAME)  # A reply to a comment with a wrong place has a wrong place too
    assert repair.find_problems(SCHEME, NAME) == []
    reader_processes.Reader(datastores.Embedded(engine)).assert_current(NAME)


def _repaired() -> None:
    """Repair as the command does; writers may be faster for a while."""
    while True:
        try:
            repair.fix(SCHEME, NAME)
            scheduler.compact_whole([NAME], wait=None)
        except errors.Overloaded:
            continue
        return


def _live(
    datastore: datastores.Datastore,
    site: records.Site,
    rows: Grown,
    seed: int,
    ended: threading.Event,
    failed: list[BaseException],
) -> None:
    """Post and read as one person in a process of their own."""
    chance, person = random.Random(seed), reader_processes.Reader(datastore)
    number = 0

    def post() -> None:
        parent = chance.choice([None, rows["1"].id, rows["1.2"].id])
        sample_threads.post(site, f"person {seed} says {number}", parent)

    try:
        while not ended.is_set() and number < 40:
            number += 1
            try:
                person.do(post)
                person.shown(NAME)
            except errors.Overloaded:
                continue
    except BaseException as error:  # noqa: BLE001 - the test shows it
        failed.append(error)
