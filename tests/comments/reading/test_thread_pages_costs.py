"""Each page has the expected cost by the engine's meter, which counts as Datastore bills."""

import pytest

from comments.domain import presentation, records
from comments.reading import listings, thread_pages
from comments.reading.materialized import directories, thread_view
from comments.store import connection
from comments.tree import ordered_query
from emulator import inprocess, testing
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
    listings.page(SCHEME, name, thread_pages.PageRequest(51, None, SECRET))  # caches the buckets
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


def test_the_whole_thread_costs_its_directory_and_buckets(
    name: records.ThreadName, engine: inprocess.Engine
) -> None:
    compaction.forget()
    with testing.meter(engine) as cost:
        thread_view.using(name, lambda view: list(view.rows()))
    directory = directories.load_directory(name)
    assert (cost.reads, cost.empty) == (1 + len(directory.lines), 1)
