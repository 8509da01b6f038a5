"""A repair finds every raw change that pages do not show, and brings it to every reader at once."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from comments.domain import records
from comments.reading.compaction import compactor, leftovers
from comments.reading.materialized import directories, thread_view
from comments.store import connection, reads
from comments.store.models import bucket_rows, comment_rows
from comments.upkeep import scheduler
from comments.upkeep.integrity import repair
from tests.support import datastores, prepared_stores
from tests.support.threads import (
    compaction,
    raw_changes,
    reader_processes,
    sample_threads,
    sample_votes,
)

SCHEME = sample_threads.SETTINGS.scheme
NAME = records.ThreadName("demo", "page")
Grown = dict[str, records.Comment]
NEW = "a" * 26


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> prepared_stores.Beginning:
    """A data file with a thread in several buckets, a ranking and a first page."""
    with pytest.MonkeyPatch.context() as patch:
        compaction.small_buckets(patch, 3)
        return prepared_stores.grown(tmp_path_factory, _grow)


def _grow(site: records.Site) -> Grown:
    rows = sample_threads.grow(site, sample_threads.TREE)
    compaction.whole(NAME)  # So that the last directory does not list all rows as being cleared
    for voter, row, value in (("a", "2", 1), ("b", "2", 1), ("a", "3", 1), ("b", "3", -1)):
        sample_votes.vote(rows[row], voter, value)
    sample_votes.count_waiting()
    compaction.whole(NAME)
    return rows


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    compaction.small_buckets(monkeypatch, 3)


@pytest.fixture
def rows(store: connection.Store, begun: prepared_stores.Beginning) -> Grown:
    return dict(begun.found)


@pytest.fixture
def processes(datastore: datastores.Datastore, rows: Grown) -> list[reader_processes.Reader]:
    """Two processes that have read the whole thread."""
    del rows
    return reader_processes.warm_pair(datastore, NAME)


def _line() -> Any:
    return directories.load_directory(NAME).lines[1]


def _change_ranking(**values: Any) -> None:
    best = directories.load_directory(NAME).content.best
    assert best is not None
    raw_changes.change(bucket_rows.ranking_key(NAME, best.ranking), **values)


def _swap_buckets() -> None:
    """Store the content of a bucket under the key of another one."""
    lines = directories.load_directory(NAME).lines
    first = reads.get(bucket_rows.bucket_key(NAME, lines[0].key))
    raw_changes.change(bucket_rows.bucket_key(NAME, lines[1].key), content=first.content)


TEXT = {"body": "other", "html": "<p>other</p>\n"}
GONE = {"status": "rejected", "listed": False}
PLACE = {"number": 9, "sort_hash": "AJ", "slug": "10", "child_count": 0, "shelved": False}
# Each raw change, and the fields of which a check must report some.
CHANGES: dict[str, tuple[Callable[[Grown], object], set[str]]] = {
    "text": (lambda rows: raw_changes.comment(rows["1.1"].id, **TEXT), {"page html"}),
    "body": (lambda rows: raw_changes.comment(rows["1.1"].id, body="other"), {"html"}),
    "html": (lambda rows: raw_changes.comment(rows["1.1"].id, html="<p>x</p>"), {"page html"}),
    "name": (lambda rows: raw_changes.comment(rows["2"].id, author_name="X"), {"page author"}),
    "status": (lambda rows: raw_changes.comment(rows["3"].id, status="spam"), {"listed"}),
    "tombstone": (lambda rows: raw_changes.comment(rows["1"].id, status="spam"), {"page status"}),
    "hidden": (lambda rows: raw_changes.comment(rows["3"].id, **GONE), {"page"}),
    "hash": (lambda rows: raw_changes.comment(rows["1.1"].id, sort_hash="ABAA"), {"sort_hash"}),
    "level": (lambda rows: raw_changes.comment(rows["1.1"].id, level=5), {"level", "page level"}),
    "number": (lambda rows: raw_changes.comment(rows["2"].id, number=7), {"sort_hash"}),
    "score": (lambda rows: raw_changes.comment(rows["3"].id, score=9), {"score", "page score"}),
    "votes": (lambda rows: raw_changes.comment(rows["3"].id, up=9), {"score", "ranking"}),
    "deletion": (lambda rows: raw_changes.delete_comments(rows["3"].id), {"page", "total"}),
    "parent": (lambda rows: raw_changes.delete_comments(rows["1.1"].id), {"parent", "page"}),
    "insertion": (lambda rows: raw_changes.insert_copy(rows["3"].id, NEW, **PLACE), {"page"}),
    "flag": (lambda rows: raw_changes.comment(rows["1"].id, shelved=False), {"shelved"}),
    "newest": (
        lambda rows: raw_changes.comment(
            rows["3"].id, changed=sample_threads.START + timedelta(days=9)
        ),
        {"changed"},
    ),
    "pin": (lambda rows: raw_changes.comment(rows["2"].id, pinned=True), {"pinned", "pins"}),
    "title": (
        lambda _rows: raw_changes.change(comment_rows.thread_key(NAME), title="Other"),
        {"heading"},
    ),
    "lock": (
        lambda _rows: raw_changes.change(comment_rows.thread_key(NAME), state="closed"),
        {"terms"},
    ),
    "bucket": (
        lambda _rows: raw_changes.delete(bucket_rows.bucket_key(NAME, _line().key)),
        {"bucket"},
    ),
    "content": (
        lambda _rows: raw_changes.change(bucket_rows.bucket_key(NAME, _line().key), content=b"x"),
        {"bucket"},
    ),
    "swap": (lambda _rows: _swap_buckets(), {"directory"}),
    "ranking": (lambda _rows: _change_ranking(content=b"x"), {"ranking"}),
    "directory": (lambda _rows: raw_changes.spoil_directory(NAME), {"directory"}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_raw_change_is_found_brought_to_readers_at_once_and_not_found_again(
    datastore: datastores.Datastore,
    rows: Grown,
    processes: list[reader_processes.Reader],
    change: str,
) -> None:
    make, fields = CHANGES[change]
    make(rows)
    found = repair.find_problems(SCHEME, NAME)
    assert fields <= {problem.field for problem in found}
    assert {problem.field for problem in repair.fix(SCHEME, NAME)} >= fields
    assert repair.find_problems(SCHEME, NAME) == []
    reader_processes.assert_all_current(processes, NAME)
    scheduler.compact_whole([NAME], wait=lambda seconds: _pass_time(processes, seconds))
    reader_processes.assert_all_current([*processes, reader_processes.Reader(datastore)], NAME)
    assert repair.find_problems(SCHEME, NAME) == []
    total = processes[0].do(lambda: thread_view.view(NAME).total)
    assert total == processes[0].expected(NAME)[2]
    assert leftovers.orphans(NAME) == []


def _pass_time(processes: list[reader_processes.Reader], seconds: float) -> None:
    for process in processes:
        process.now += seconds


def test_an_unchanged_thread_has_no_problems_at_any_step_of_a_compaction(
    rows: Grown, site: records.Site
) -> None:
    def assert_clean() -> None:
        assert repair.find_problems(SCHEME, NAME) == []

    assert_clean()
    sample_threads.post(site, "1.3", rows["1"].id)
    sample_threads.retract(rows["3"])
    sample_votes.vote(rows["1"], "c")
    sample_votes.count_waiting()
    assert_clean()
    prepared = compactor.prepare(SCHEME, NAME)
    assert prepared is not None
    assert_clean()
    sample_threads.post(site, "4")
    folded = compactor.switch(prepared)
    assert folded is not None
    assert_clean()
    sample_threads.retract(rows["1.2"])
    compactor.clear(folded)
    assert_clean()


def test_a_raw_change_of_a_comment_in_the_delta_reaches_readers_with_a_repair(
    site: records.Site, rows: Grown, processes: list[reader_processes.Reader]
) -> None:
    pending = sample_threads.post(site, "1.3", rows["1"].id)
    reader_processes.assert_all_current(processes, NAME)  # So each one has the pending row
    raw_changes.comment(pending.id, **TEXT)
    with pytest.raises(AssertionError):
        reader_processes.assert_all_current(processes, NAME)
    assert repair.fix(SCHEME, NAME) == []  # No field contradicts another one
    reader_processes.assert_all_current(processes, NAME)
    stored = reads.get(comment_rows.comment_key(pending.id))
    assert stored.text_revision == pending.revision
