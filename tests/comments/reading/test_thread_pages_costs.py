"""Each page has the expected cost by the engine's meter, which counts as Datastore bills."""

import random

import pytest

from comments.domain import presentation, records
from comments.reading import listings, thread_pages
from comments.reading.compaction import compactor
from comments.reading.materialized import directories
from comments.store import connection
from comments.tree.lists import ordered_query
from datastore_emulator import inprocess, testing
from tests.support import prepared_stores
from tests.support.threads import compaction, sample_threads

SECRET = sample_threads.SETTINGS.secret
SCHEME = sample_threads.SETTINGS.scheme


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> prepared_stores.Beginning:
    """A thread with 150 comments, compacted into three buckets and cleared."""

    def grow(site: records.Site) -> None:
        for number in range(150):
            sample_threads.post(site, f"c{number}")
        compaction.whole(sample_threads.name_of(site))

    with pytest.MonkeyPatch.context() as patch:
        compaction.small_buckets(patch, 60)
        return prepared_stores.grown(tmp_path_factory, grow)


@pytest.fixture
def name(
    store: connection.Store, site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> records.ThreadName:
    """Enter the store; return the thread's name."""
    compaction.small_buckets(monkeypatch, 60)
    return sample_threads.name_of(site)


def _first_page(name: records.ThreadName) -> presentation.ThreadPage:
    return listings.page(SCHEME, name, thread_pages.PageRequest(50, None, SECRET))


def test_a_settled_first_page_costs_one_read_cold_and_only_the_probe_warm(
    name: records.ThreadName, engine: inprocess.Engine
) -> None:
    compaction.forget()
    with testing.meter(engine) as cost:
        _first_page(name)
    assert (cost.reads, cost.empty, cost.writes) == (1, 1, 0)
    with testing.meter(engine) as cost:
        _first_page(name)
    assert (cost.reads, cost.empty, cost.writes, cost.small) == (0, 1, 0, 0)


def test_a_change_costs_one_probe_and_one_read(
    name: records.ThreadName, engine: inprocess.Engine, site: records.Site
) -> None:
    _first_page(name)
    listings.page(SCHEME, name, thread_pages.PageRequest(51, None, SECRET))  # Caches the buckets
    sample_threads.post(site, "new")
    with testing.meter(engine) as cost:
        _first_page(name)
    assert (cost.reads, cost.empty) == (2, 0)
    with testing.meter(engine) as cost:
        _first_page(name)
    assert (cost.reads, cost.empty) == (1, 0)


def test_a_level_costs_only_its_rows(
    name: records.ThreadName, engine: inprocess.Engine, site: records.Site
) -> None:
    rows = ordered_query.thread(name)
    for row in rows[:20]:
        sample_threads.post(site, f"reply to {row.id}", row.id)
    compaction.whole(name)
    compaction.forget()
    with testing.meter(engine) as cost:
        asked = thread_pages.PageRequest(20, None, SECRET)
        page = listings.page(SCHEME, name, asked, parent=ordered_query.ROOTS)
    assert page.replies == (1,) * 20
    assert cost.reads == 21 + 1


def test_the_page_around_a_comment_costs_three_reads_cold(
    name: records.ThreadName, engine: inprocess.Engine, site: records.Site
) -> None:
    parent = ordered_query.thread(name)[70].id
    for number in range(70):
        answered = sample_threads.post(site, f"deeper {number}", parent)
        parent = answered.id if number < 8 else parent
    compaction.whole(name)
    rows = ordered_query.thread(name)
    assert max(row.level for row in rows) == SCHEME.levels - 1
    for row in rows[::7]:
        compaction.forget()
        with testing.meter(engine) as cost:
            listings.around(SCHEME, name, row.id, thread_pages.PageRequest(50, None, SECRET))
        assert cost.reads <= 3
        assert cost.empty == 1


@pytest.mark.slow
@pytest.mark.parametrize(("order", "most"), [("thread", 3), ("recent", 3), ("best", 3)])
def test_any_page_by_offset_costs_few_reads_cold(
    name: records.ThreadName,
    engine: inprocess.Engine,
    monkeypatch: pytest.MonkeyPatch,
    order: str,
    most: int,
) -> None:
    """Read 50 comments at many offsets of a tree with 600 comments in buckets of the usual size."""
    monkeypatch.setattr(compactor, "BUCKET_ROWS", 128)
    chance, name = random.Random(1), records.ThreadName(name.site, "tree")
    nodes: list[records.ImportedComment] = []
    for number in range(600):
        above = chance.choice(nodes).body if nodes and chance.random() < 0.8 else None
        votes = int(above is None and chance.random() < 0.1)
        nodes.append(sample_threads.node(f"c{number}", above, up=votes))
    for start in range(0, len(nodes), 100):
        sample_threads.store_imported(name, *nodes[start : start + 100])
    compaction.whole(name)
    assert len(directories.load_directory(name).lines) == 5
    found = []
    for offset in range(0, 600, 23):
        compaction.forget()
        asked = thread_pages.PageRequest(50, None, SECRET, offset)
        with testing.meter(engine) as cost:
            page = listings.page(SCHEME, name, asked, order=thread_pages.ListingOrder(order))
        assert (page.first, page.total) == (offset + 1, 600)
        assert (cost.empty, cost.writes) == (1, 0)
        found.append(cost.reads)
    assert max(found) <= most, found


def test_a_flat_page_by_offset_costs_its_rows_the_skip_and_the_directory(
    name: records.ThreadName, engine: inprocess.Engine
) -> None:
    compaction.forget()
    asked = thread_pages.PageRequest(20, None, SECRET, 100)
    with testing.meter(engine) as cost:
        page = listings.page(SCHEME, name, asked, order=thread_pages.ListingOrder.OLDEST)
    assert (page.first, page.last) == (101, 120)
    assert (cost.reads, cost.empty) == (21 + 1 + 1, 2)  # One row more tells that a page follows


def test_the_whole_thread_costs_its_directory_and_buckets(
    name: records.ThreadName, engine: inprocess.Engine
) -> None:
    compaction.forget()
    with testing.meter(engine) as cost:
        compaction.with_view(name, lambda view: list(view.rows()))
    directory = directories.load_directory(name)
    assert (cost.reads, cost.empty) == (1 + len(directory.lines), 1)
