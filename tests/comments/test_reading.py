"""Claims about listings: folded or not, every page is the floor's, and costs what it shows."""

from collections.abc import Callable

import pytest

from comments import datastore, errors, floor, folding, materialized, public, reading, records
from emulator import inprocess, testing
from tests import trees

SECRET = trees.SETTINGS.secret
SCHEME = trees.SETTINGS.scheme
TREE = {
    f"{root}": {f"{root}.{n}": {f"{root}.{n}.1": {}} for n in range(1, 4)} for root in range(1, 6)
}


@pytest.fixture(autouse=True)
def _entered(store: datastore.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test here runs inside the store, with buckets small enough for a short thread."""
    monkeypatch.setattr(folding, "BUCKET_ROWS", 4)
    monkeypatch.setattr(folding, "TAIL_ROWS", 2)


@pytest.fixture(params=["never folded", "folded", "folded and cleared", "changed since"])
def grown(request: pytest.FixtureRequest, site: records.Site) -> records.ThreadName:
    """A thread of 35 comments in each state that a thread can be in."""
    rows = trees.grow(site, TREE)
    name = trees.name_of(site)
    if request.param == "never folded":
        return name
    folded = folding.fold(SCHEME, name)
    assert folded is not None
    if request.param != "folded":
        folding.clear(folded)
    if request.param == "changed since":
        trees.post(site, "new root")
        trees.post(site, "new reply", rows["2.1"].id)
    return name


def _pages(read: Callable[[str | None], public.Page]) -> list[public.Page]:
    pages = [read(None)]
    while pages[-1].cursor is not None:
        pages.append(read(pages[-1].cursor))
    return pages


@pytest.mark.parametrize("limit", [1, 3, 7, 50])
@pytest.mark.parametrize("order", list(floor.Order))
def test_every_page_is_the_floors(
    grown: records.ThreadName, order: floor.Order, limit: int
) -> None:
    cursor = None
    while True:
        asked = reading.Asked(limit, cursor, SECRET)
        found = reading.page(SCHEME, grown, asked, order=reading.Order(order))
        expected = floor.page(
            grown, order=order, parent=None, limit=limit, cursor=cursor, secret=SECRET
        )
        assert found == public.page(expected)
        cursor = found.cursor
        if cursor is None:
            break


@pytest.mark.parametrize("limit", [1, 4, 50])
def test_recent_discussions_come_first_and_whole(grown: records.ThreadName, limit: int) -> None:
    pages = _pages(
        lambda cursor: reading.page(
            SCHEME, grown, reading.Asked(limit, cursor, SECRET), order=reading.Order.RECENT
        )
    )
    rows = floor.thread(grown)
    roots = [row.sort_hash for row in rows if row.level == 0]
    expected = [
        public.fragment(row)
        for root in reversed(roots)
        for row in rows
        if row.sort_hash.startswith(root)
    ]
    assert [each for page in pages for each in page.comments] == expected


def test_replies_and_surroundings_are_the_floors(grown: records.ThreadName) -> None:
    for row in floor.thread(grown):
        for limit in (2, 50):
            asked = reading.Asked(limit, None, SECRET)
            below = floor.replies(row.id, limit=limit, cursor=None, secret=SECRET)
            assert reading.replies(row.id, asked) == public.page(below)
            near = floor.around(grown, row.id, limit=limit, secret=SECRET)
            assert reading.around(SCHEME, grown, row.id, asked) == public.page(near)


def test_a_cursor_of_another_order_is_refused(grown: records.ThreadName) -> None:
    first = reading.page(SCHEME, grown, reading.Asked(2, None, SECRET))
    with pytest.raises(errors.BadCursor):
        reading.page(
            SCHEME,
            grown,
            reading.Asked(2, first.cursor, SECRET),
            order=reading.Order.RECENT,
        )


class TestCost:
    """What a page costs is counted by the engine's meter, as the service would bill it."""

    @pytest.fixture
    def name(self, site: records.Site, monkeypatch: pytest.MonkeyPatch) -> records.ThreadName:
        monkeypatch.setattr(folding, "BUCKET_ROWS", 60)
        name = trees.name_of(site)
        for number in range(150):
            trees.post(site, f"c{number}")
        folded = folding.fold(SCHEME, name)
        assert folded is not None
        folding.clear(folded)
        return name

    def first_page(self, name: records.ThreadName) -> public.Page:
        return reading.page(SCHEME, name, reading.Asked(50, None, SECRET))

    def forget(self) -> None:
        """Be a process that has just started."""
        kept = datastore.kept(materialized.HOLDINGS, materialized.Holdings)
        kept.cache = materialized.Holdings().cache

    def test_a_settled_first_page_costs_two_reads_cold_and_nothing_warm(
        self, name: records.ThreadName, engine: inprocess.Engine
    ) -> None:
        self.forget()
        with testing.meter(engine) as cost:
            self.first_page(name)
        assert (cost.reads, cost.writes) == (2, 0)
        with testing.meter(engine) as cost:
            self.first_page(name)
        assert (cost.reads, cost.writes, cost.small) == (0, 0, 0)

    def test_a_change_costs_its_probe_and_its_row_once(
        self, name: records.ThreadName, engine: inprocess.Engine, site: records.Site
    ) -> None:
        self.first_page(name)
        trees.post(site, "new")
        with testing.meter(engine) as cost:
            self.first_page(name)
        assert cost.reads == 2
        with testing.meter(engine) as cost:
            self.first_page(name)
        assert cost.reads == 1

    def test_the_whole_thread_costs_its_directory_and_buckets(
        self, name: records.ThreadName, engine: inprocess.Engine
    ) -> None:
        self.forget()
        with testing.meter(engine) as cost:
            materialized.using(name, lambda view: list(view.rows()))
        directory = materialized.load_directory(name)
        assert cost.reads == 1 + len(directory.lines)
