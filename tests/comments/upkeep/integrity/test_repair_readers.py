"""After a repair, every process immediately shows the repaired thread.

While comments get new hashes, two processes with warm caches read at every stage of a compaction.
Each answer is immediately compared with the ordered query.
"""

from collections.abc import Callable

import pytest

from comments.domain import records
from comments.posting import own_comment
from comments.reading.compaction import compactor, leftovers
from comments.reading.materialized import thread_view, view_cache
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows
from comments.upkeep.integrity import repair
from tests.support import datastores, prepared_stores
from tests.support.threads import compaction, reader_processes, sample_threads

SCHEME = sample_threads.SETTINGS.scheme
NAME = records.ThreadName("demo", "page")
Grown = dict[str, records.Comment]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    compaction.small_buckets(monkeypatch, 3)


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> prepared_stores.Beginning:
    """A data file that contains a thread with rows in buckets, tail and delta."""
    with pytest.MonkeyPatch.context() as patch:
        compaction.small_buckets(patch, 3)
        return prepared_stores.grown(tmp_path_factory, _grow)


@pytest.fixture
def repaired_rows(store: connection.Store, begun: prepared_stores.Beginning) -> Grown:
    return dict(begun.found)


def _grow(site: records.Site) -> Grown:
    rows = sample_threads.grow(site, sample_threads.TREE)
    compaction.whole(NAME)
    for text in ("4", "4.1", "5"):
        parent = rows["4"].id if text == "4.1" else None
        rows[text] = sample_threads.post(site, text, parent)
        if text != "5":
            compaction.whole(NAME)
    return rows


@pytest.fixture
def processes(
    datastore: datastores.Datastore, repaired_rows: Grown
) -> list[reader_processes.Reader]:
    """Two processes that have read the whole thread."""
    return reader_processes.warm_pair(datastore, NAME)


def _damage(row: records.Comment, **values: object) -> None:
    def body() -> None:
        stored = reads.get(comment_rows.comment_key(row.id))
        stored.populate(**values)
        transactions.apply(ownership.Writes("tree", put=(stored,)))

    transactions.transaction(body)


def _lose_a_parent(repaired_rows: Grown) -> None:
    """Make a reply a root, so that it and all comments below it get new hashes."""
    _damage(repaired_rows["1.1"], parent=None, reply_to=None)


def _run_in_a_circle(repaired_rows: Grown) -> None:
    _damage(repaired_rows["1"], parent=repaired_rows["1.1.2"].id)


def _share_a_number(repaired_rows: Grown) -> None:
    """Give two siblings the same place; the repair moves one of them."""
    _damage(repaired_rows["1.2"], number=1, sort_hash=repaired_rows["1.1"].sort_hash)


def _swap_hashes(repaired_rows: Grown) -> None:
    """Swap two comments' hashes in the store but not in the buckets."""
    _damage(repaired_rows["2"], sort_hash=repaired_rows["3"].sort_hash)
    _damage(repaired_rows["3"], sort_hash=repaired_rows["2"].sort_hash)


def _spoil_hashes(repaired_rows: Grown) -> None:
    for text in ("1.1", "2.1", "5"):
        _damage(repaired_rows[text], sort_hash="xx", level=9)


DAMAGES = [_lose_a_parent, _run_in_a_circle, _share_a_number, _swap_hashes, _spoil_hashes]


@pytest.mark.parametrize("damage", DAMAGES)
def test_after_a_repair_warm_processes_equal_the_ordered_query_at_once(
    repaired_rows: Grown, processes: list[reader_processes.Reader], damage: Callable[[Grown], None]
) -> None:
    damage(repaired_rows)
    assert repair.fix(SCHEME, NAME)
    reader_processes.assert_all_current(processes, NAME)
    folded = compactor.compact(SCHEME, NAME)
    assert folded is not None
    reader_processes.assert_all_current(processes, NAME)
    # One process sees the new directory, the other process the previous one.
    processes[0].now += view_cache.CACHE_MAX_AGE
    reader_processes.assert_all_current(processes, NAME)
    for process in processes:
        process.now += compactor.GRACE
    compactor.clear(folded)
    reader_processes.assert_all_current(processes, NAME)
    total = processes[0].do(lambda: thread_view.view(NAME).total)
    assert total == processes[0].expected(NAME)[2]
    assert leftovers.orphans(NAME) == []


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("stops", ["before the switch", "before the clearing"])
def test_a_compaction_interrupted_by_a_repair_misleads_no_reader(
    repaired_rows: Grown,
    processes: list[reader_processes.Reader],
    damage: Callable[[Grown], None],
    stops: str,
) -> None:
    prepared = compactor.prepare(SCHEME, NAME)
    assert prepared is not None
    folded = compactor.switch(prepared) if stops == "before the clearing" else None
    damage(repaired_rows)
    repair.fix(SCHEME, NAME)
    reader_processes.assert_all_current(processes, NAME)
    folded = folded or compactor.switch(prepared)
    reader_processes.assert_all_current(processes, NAME)
    for process in processes:
        process.now += compactor.GRACE
    assert folded is not None
    compactor.clear(folded)
    reader_processes.assert_all_current(processes, NAME)
    compaction.whole(NAME)
    for process in processes:
        process.now += compactor.GRACE
    reader_processes.assert_all_current(processes, NAME)


@pytest.mark.parametrize("query", range(1, 7))
def test_a_row_whose_flag_is_cleared_during_a_new_compaction_is_not_lost(
    datastore: datastores.Datastore,
    repaired_rows: Grown,
    processes: list[reader_processes.Reader],
    query: int,
) -> None:
    """A slow compaction clears just before one of the next compaction's queries."""
    slow = compactor.compact(SCHEME, NAME)
    assert slow is not None
    _lose_a_parent(repaired_rows)
    repair.fix(SCHEME, NAME)
    for process in processes:
        process.now += compactor.GRACE
    queries = 0

    def clear_meanwhile(method: str, _request: object) -> None:
        nonlocal queries
        queries += method.endswith("RunQuery")
        if method.endswith("RunQuery") and queries == query:
            processes[0].do(lambda: compactor.clear(slow))

    folder = reader_processes.Reader(datastore, seen=clear_meanwhile)
    anew = folder.do(lambda: compactor.compact(SCHEME, NAME))
    assert anew is not None
    assert queries > 1
    for process in processes:
        process.now += compactor.GRACE
    reader_processes.assert_all_current(processes, NAME)


def test_a_later_change_of_a_moved_comment_is_visible_at_once(
    repaired_rows: Grown, processes: list[reader_processes.Reader]
) -> None:
    _lose_a_parent(repaired_rows)
    repair.fix(SCHEME, NAME)
    folded = compactor.compact(SCHEME, NAME)
    assert folded is not None
    moved = repaired_rows["1.1"]
    own_comment.retract(
        moved.id, author_id=moved.author.id, revision=None, now=sample_threads.START
    )
    reader_processes.assert_all_current(processes, NAME)
    _clear_after_the_grace(folded, processes)
    reader_processes.assert_all_current(processes, NAME)
    folded = compactor.compact(SCHEME, NAME)
    assert folded is not None
    reader_processes.assert_all_current(processes, NAME)
    _clear_after_the_grace(folded, processes)
    reader_processes.assert_all_current(processes, NAME)


def _clear_after_the_grace(
    folded: compactor.CompactionResult, processes: list[reader_processes.Reader]
) -> None:
    """Clear as soon as no process may use the previous directory."""
    for process in processes:
        process.now += compactor.GRACE
    compactor.clear(folded)


def test_only_a_thread_with_moved_comments_needs_the_ordered_query(
    site: records.Site, repaired_rows: Grown, processes: list[reader_processes.Reader]
) -> None:
    _damage(repaired_rows["1.1"], slug="damaged")
    repair.fix(SCHEME, NAME)
    reader = processes[0]
    reader.do(lambda: thread_view.view(NAME))
    _damage(repaired_rows["1.1"], sort_hash="xx")
    repair.fix(SCHEME, NAME)
    with pytest.raises(view_cache.NotMaterialized):
        reader.do(lambda: thread_view.view(NAME))
    compaction.whole(NAME)
    reader.now += view_cache.CACHE_MAX_AGE
    reader.do(lambda: thread_view.view(NAME))
    sample_threads.post(site, "later", repaired_rows["1.1"].id)
    own_comment.retract(
        repaired_rows["1.1"].id,
        author_id=repaired_rows["1.1"].author.id,
        revision=None,
        now=sample_threads.START,
    )
    reader.do(lambda: thread_view.view(NAME))
