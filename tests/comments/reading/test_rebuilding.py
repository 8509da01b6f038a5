"""After the request for a rebuild, every process shows the comments as they are stored."""

import contextlib
import itertools
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from comments import errors
from comments.domain import records
from comments.reading.compaction import compactor, leftovers, rebuilding
from comments.reading.materialized import directories, thread_view
from comments.store import connection, reads
from comments.store.models import bucket_rows, comment_rows
from comments.upkeep import scheduler
from tests.support import datastores, prepared_stores
from tests.support.threads import compaction, raw_changes, reader_processes, sample_threads

SCHEME = sample_threads.SETTINGS.scheme
NAME = records.ThreadName("demo", "page")
Grown = dict[str, records.Comment]


class Killed(BaseException):
    """An error that simulates the end of a process in the middle of a call."""


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    compaction.small_buckets(monkeypatch, 3)
    monkeypatch.setattr(leftovers, "AT_ONCE", 3)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> prepared_stores.Beginning:
    """A data file that contains a thread whose comments are all in buckets."""
    with pytest.MonkeyPatch.context() as patch:
        compaction.small_buckets(patch, 3)
        return prepared_stores.grown(tmp_path_factory, _grow)


def _grow(site: records.Site) -> Grown:
    rows = sample_threads.grow(site, sample_threads.TREE)
    compaction.whole(NAME)
    return rows


@pytest.fixture
def rows(store: connection.Store, begun: prepared_stores.Beginning) -> Grown:
    return dict(begun.found)


@pytest.fixture
def processes(datastore: datastores.Datastore, rows: Grown) -> list[reader_processes.Reader]:
    """Two processes that have read the whole thread."""
    del rows
    return reader_processes.warm_pair(datastore, NAME)


def _texts(rows: Grown) -> None:
    raw_changes.comment(rows["1.1"].id, body="other", html="<p>other</p>\n")


def _status(rows: Grown) -> None:
    raw_changes.comment(rows["3"].id, status="rejected", listed=False)


def _deletion(rows: Grown) -> None:
    raw_changes.delete_comments(rows["1.2"].id, rows["3"].id)


def _insertion(rows: Grown) -> None:
    place = {"number": 9, "sort_hash": "AJ", "slug": "10", "body": "10", "child_count": 0}
    raw_changes.insert_copy(rows["3"].id, "a" * 26, **place, shelved=False)


def _no_bucket(_rows: Grown) -> None:
    line = directories.load_directory(NAME).lines[1]
    raw_changes.delete(bucket_rows.bucket_key(NAME, line.key))


def _spoiled_directory(_rows: Grown) -> None:
    raw_changes.spoil_directory(NAME)


READABLE = [_texts, _status, _deletion, _insertion]
CHANGES = [*READABLE, _no_bucket, _spoiled_directory]


@pytest.mark.parametrize("change", READABLE)
def test_the_request_alone_makes_every_process_show_the_stored_comments(
    rows: Grown, processes: list[reader_processes.Reader], change: Callable[[Grown], None]
) -> None:
    change(rows)
    with pytest.raises(AssertionError):
        reader_processes.assert_all_current(processes, NAME)  # The change has reached nobody
    rebuilding.request(NAME)
    reader_processes.assert_all_current(processes, NAME)


@pytest.mark.parametrize("change", CHANGES)
def test_a_rebuilt_thread_equals_the_ordered_query_and_is_materialized_again(
    rows: Grown, processes: list[reader_processes.Reader], change: Callable[[Grown], None]
) -> None:
    change(rows)
    folded = compaction.rebuild(SCHEME, NAME)
    _pass_grace(processes)
    reader_processes.assert_all_current(processes, NAME)
    compactor.clear(folded, leftovers.orphans(NAME))
    reader_processes.assert_all_current(processes, NAME)
    total = processes[0].do(lambda: thread_view.view(NAME).total)
    assert total == processes[0].expected(NAME)[2]
    assert leftovers.orphans(NAME) == []
    sample_threads.post(records.Site("demo", (), SCHEME.digits, SCHEME.width), "later")
    reader_processes.assert_all_current(processes, NAME)


def _pass_grace(processes: list[reader_processes.Reader]) -> None:
    for process in processes:
        process.now += compactor.GRACE


def test_the_newest_change_of_a_deleted_comment_is_not_the_threads_newest_change(
    rows: Grown, processes: list[reader_processes.Reader]
) -> None:
    newest = max(rows.values(), key=lambda row: row.created)
    raw_changes.delete_comments(newest.id)
    compactor.clear(compaction.rebuild(SCHEME, NAME))
    _pass_grace(processes)
    changed = processes[0].do(lambda: thread_view.view(NAME).changed)
    left = [row.created for row in rows.values() if row.id != newest.id]
    assert changed == max(left)


def test_a_thread_without_comments_has_no_directory_after_a_rebuild(
    rows: Grown, processes: list[reader_processes.Reader]
) -> None:
    raw_changes.delete_comments(*(row.id for row in rows.values()))
    compaction.rebuild(SCHEME, NAME)
    _pass_grace(processes)
    reader_processes.assert_all_current(processes, NAME)
    assert reads.get(bucket_rows.directory_key(NAME)) is None
    for kind in ("Bucket", "Ranking"):
        query = reads.Query(kind, ancestor=comment_rows.thread_key(NAME), keys_only=True)
        assert list(reads.fetch(query)) == []


def test_a_rebuild_keeps_the_revision_of_the_text(rows: Grown) -> None:
    compaction.rebuild(SCHEME, NAME)
    for row in rows.values():
        stored = reads.get(comment_rows.comment_key(row.id))
        assert (stored.text_revision or stored.revision) == 1


def test_a_rebuild_that_always_loses_the_race_says_so(
    rows: Grown, monkeypatch: pytest.MonkeyPatch
) -> None:
    del rows
    monkeypatch.setattr(compactor, "compact", lambda *_a, **_b: None)
    with pytest.raises(errors.Overloaded, match="another process is compacting demo page"):
        compaction.rebuild(SCHEME, NAME)


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.parametrize("change", CHANGES)
def test_a_rebuild_that_dies_before_any_commit_is_finished_by_the_next_compaction(
    begun: prepared_stores.Beginning, change: Callable[[Grown], None], tmp_path: Path
) -> None:
    for commit in itertools.count(1):
        copy = Path(shutil.copy(begun.path, tmp_path / f"{commit}"))
        # The dead process is not a real one, so a pessimistic engine would keep its locks.
        with prepared_stores.opened(copy, "optimistic") as engine:
            if not _died_at(datastores.Embedded(engine), commit, begun.found, change):
                assert commit > 5
                return


def _died_at(
    datastore: datastores.Datastore, commit: int, rows: Grown, change: Callable[[Grown], None]
) -> bool:
    """Rebuild in a process that dies before this commit, then let another process finish."""
    commits = 0

    def die(method: str, _request: object) -> None:
        nonlocal commits
        commits += method.endswith("Commit")
        if commits == commit:
            raise Killed

    reader = reader_processes.Reader(datastore)
    if change in READABLE:
        reader.assert_current(NAME)
    reader.do(lambda: change(rows))
    with contextlib.suppress(Killed):
        dying = reader_processes.Reader(datastore, seen=die)
        folded = dying.do(lambda: compaction.rebuild(SCHEME, NAME))
        reader.now += compactor.GRACE
        dying.do(lambda: compactor.clear(folded, leftovers.orphans(NAME)))
    if commit == 1:
        reader.do(lambda: rebuilding.request(NAME))  # It died before its request was stored
    if change in READABLE:
        reader.assert_current(NAME)
    for _ in range(2):
        reader.do(lambda: _finish(reader))
    reader.assert_current(NAME)
    assert reader.do(scheduler.find_due_work) == []
    assert reader.do(lambda: leftovers.orphans(NAME)) == []
    return commits >= commit


def _finish(reader: reader_processes.Reader) -> None:
    for name in scheduler.find_due_work():
        assert isinstance(name, records.ThreadName)
        folded = compactor.compact(SCHEME, name)
        assert folded is not None
        orphans = leftovers.orphans(name)
        reader.now += compactor.GRACE
        compactor.clear(folded, orphans)
