"""Claims about listings: folded or not, every page is the floor's, and costs what it shows."""

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

import pytest

from comments import (
    datastore,
    errors,
    floor,
    folding,
    materialized,
    models,
    posting,
    public,
    reading,
    records,
)
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


def _forget() -> None:
    """Be a process that has just started."""
    kept = datastore.kept(materialized.HOLDINGS, materialized.Holdings)
    kept.cache = materialized.Holdings().cache


def _pages(read: Callable[[str | None], public.Page]) -> list[public.Page]:
    pages = [read(None)]
    while pages[-1].cursor is not None:
        pages.append(read(pages[-1].cursor))
    return pages


@pytest.mark.parametrize("limit", [3, 7, 50])
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
        assert found.json() == public.page(expected).json()
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


def test_replies_are_the_floors(grown: records.ThreadName) -> None:
    for row in floor.thread(grown):
        for limit in (2, 50):
            asked = reading.Asked(limit, None, SECRET)
            below = floor.replies(row.id, limit=limit, cursor=None, secret=SECRET)
            found = reading.replies(row.id, asked)
            assert found.json() == public.page(below).json()


@pytest.mark.parametrize("limit", [2, 50])
def test_one_level_is_the_floors(grown: records.ThreadName, limit: int) -> None:
    for parent in (floor.ROOTS, *(row.id for row in floor.thread(grown)[:3])):
        cursor = None
        while True:
            asked = reading.Asked(limit, cursor, SECRET)
            found = reading.page(SCHEME, grown, asked, parent=parent)
            expected = floor.page(
                grown,
                order=floor.Order.THREAD,
                parent=parent,
                limit=limit,
                cursor=cursor,
                secret=SECRET,
            )
            assert found.json() == public.page(expected).json()
            cursor = found.cursor
            if cursor is None:
                break


@pytest.mark.parametrize("limit", [3, 50])
def test_the_page_around_a_comment_holds_it_in_a_run_that_goes_on(
    grown: records.ThreadName, limit: int
) -> None:
    rows = floor.thread(grown)
    whole = [public.fragment(row) for row in rows]
    below = [sum(other.sort_hash.startswith(row.sort_hash) for other in rows) - 1 for row in rows]
    for row in rows:
        page = reading.around(SCHEME, grown, row.id, reading.Asked(limit, None, SECRET))
        assert public.fragment(row) in page.comments
        start = whole.index(page.comments[0])
        assert list(page.comments) == whole[start : start + len(page.comments)]
        assert len(page.comments) <= limit
        assert list(page.replies) == below[start : start + len(page.comments)]
        rest = whole[start + len(page.comments) :]
        assert (page.cursor is None) == (not rest)
        if page.cursor is not None:
            asked = reading.Asked(200, page.cursor, SECRET)
            assert list(reading.page(SCHEME, grown, asked).comments) == rest


def test_the_newest_change_is_told_also_when_it_took_its_comment_away(
    site: records.Site,
) -> None:
    rows = trees.grow(site, TREE)
    name = trees.name_of(site)
    newest = max(row.created for row in rows.values())
    last = newest + timedelta(days=1)
    for moment in (newest, last):
        assert _changed(name) == {moment}
        _fold(name)
        assert _changed(name) == {moment}
        if moment is newest:
            posting.retract(rows["1.1.1"].id, author_id="g:1.1.1", revision=None, now=last)
    _lose_the_directory(name)
    assert _changed(name) == {last}
    _fold(name)
    assert _changed(name) == {last}


def _lose_the_directory(name: records.ThreadName) -> None:
    gone = datastore.Writes("folding", delete=(models.directory_key(name),))
    datastore.transaction(lambda: datastore.apply(gone))
    held = datastore.kept(materialized.HOLDINGS, materialized.Holdings)
    held.cache.drop(("directory", name))


@pytest.mark.parametrize("is_folded", [False, True])
def test_what_readers_never_saw_is_no_change(site: records.Site, *, is_folded: bool) -> None:
    trees.post(site, "seen")
    name = trees.name_of(site)
    _hold(name)
    if is_folded:
        _fold(name)
    posting.retract(HELD, author_id="g:held", revision=None, now=trees.START + timedelta(days=9))
    assert _changed(name) == {trees.START}
    assert _changed(trees.name_of(site, "nobody")) == {None}


def test_what_waits_for_a_moderator_changes_no_page(grown: records.ThreadName) -> None:
    def pages() -> list[bytes]:
        _forget()
        asked = reading.Asked(5, None, SECRET)
        found = [reading.page(SCHEME, grown, asked, order=order) for order in reading.Order]
        found += [reading.page(SCHEME, grown, asked, parent=floor.ROOTS)]
        return [page.json() for page in found]

    before = pages()
    _hold(grown)
    assert pages() == before


HELD = "h" * 26


def _hold(name: records.ThreadName) -> None:
    """Store a comment that waits for a moderator, newer than all others."""
    held = records.ImportedComment(
        id=HELD,
        reply_to=None,
        author=records.Author("Held", id="g:held"),
        body="held",
        html="<p>held</p>",
        renderer="test",
        status=records.Status.PENDING,
        created=trees.START + timedelta(days=8),
        source="test:held",
    )
    trees.store_imported(name, held)


def _fold(name: records.ThreadName) -> None:
    folded = folding.fold(SCHEME, name)
    assert folded is not None
    folding.clear(folded)
    _forget()


def _changed(name: records.ThreadName) -> set[object]:
    """What pages of all orders say."""
    asked = reading.Asked(1, None, SECRET)
    pages = [reading.page(SCHEME, name, asked, order=order) for order in reading.Order]
    pages += [reading.page(SCHEME, name, asked, parent=floor.ROOTS)]
    return {page.changed for page in pages}


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

    def test_a_settled_first_page_costs_one_read_cold_and_nothing_warm(
        self, name: records.ThreadName, engine: inprocess.Engine
    ) -> None:
        _forget()
        with testing.meter(engine) as cost:
            self.first_page(name)
        assert (cost.reads, cost.writes) == (1, 0)
        with testing.meter(engine) as cost:
            self.first_page(name)
        assert (cost.reads, cost.writes, cost.small) == (0, 0, 0)

    def test_a_change_costs_its_probe_and_its_row_once(
        self, name: records.ThreadName, engine: inprocess.Engine, site: records.Site
    ) -> None:
        self.first_page(name)
        reading.page(SCHEME, name, reading.Asked(51, None, SECRET))  # its buckets are known
        trees.post(site, "new")
        with testing.meter(engine) as cost:
            self.first_page(name)
        assert cost.reads == 2
        with testing.meter(engine) as cost:
            self.first_page(name)
        assert cost.reads == 1

    def test_a_level_costs_its_rows_and_no_count(
        self, name: records.ThreadName, engine: inprocess.Engine, site: records.Site
    ) -> None:
        rows = floor.thread(name)
        for row in rows[:20]:
            trees.post(site, f"reply to {row.id}", row.id)
        folded = folding.fold(SCHEME, name)
        assert folded is not None
        folding.clear(folded)
        _forget()
        with testing.meter(engine) as cost:
            asked = reading.Asked(20, None, SECRET)
            page = reading.page(SCHEME, name, asked, parent=floor.ROOTS)
        assert page.replies == (1,) * 20
        assert cost.reads == 21 + 1

    def test_the_page_around_a_comment_costs_three_reads_cold(
        self, name: records.ThreadName, engine: inprocess.Engine, site: records.Site
    ) -> None:
        parent = floor.thread(name)[70].id
        for number in range(70):
            answered = trees.post(site, f"deeper {number}", parent)
            parent = answered.id if number < 8 else parent
        folded = folding.fold(SCHEME, name)
        assert folded is not None
        folding.clear(folded)
        rows = floor.thread(name)
        assert max(row.level for row in rows) == SCHEME.levels - 1
        for row in rows[::7]:
            _forget()
            with testing.meter(engine) as cost:
                reading.around(SCHEME, name, row.id, reading.Asked(50, None, SECRET))
            assert cost.reads <= 3

    def test_the_whole_thread_costs_its_directory_and_buckets(
        self, name: records.ThreadName, engine: inprocess.Engine
    ) -> None:
        _forget()
        with testing.meter(engine) as cost:
            materialized.using(name, lambda view: list(view.rows()))
        directory = materialized.load_directory(name)
        assert cost.reads == 1 + len(directory.lines)


def test_a_row_that_changes_while_it_is_read_comes_with_all_that_changed_before_it(
    site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = trees.name_of(site)
    trees.post(site, "first")
    assert folding.fold(SCHEME, name) is not None
    target = trees.post(site, "second")
    real, waiting = datastore.lookup, ["a change meanwhile"]

    def late(kind: str, names: Sequence[str]) -> Iterable[object]:
        if waiting:
            waiting.clear()
            trees.post(site, "third")
            posting.retract(target.id, author_id=target.author.id, revision=None, now=trees.START)
        return real(kind, names)

    monkeypatch.setattr(datastore, "lookup", late)
    found = reading.page(SCHEME, name, reading.Asked(50, None, SECRET))
    assert found.comments == tuple(map(public.fragment, floor.thread(name)))
