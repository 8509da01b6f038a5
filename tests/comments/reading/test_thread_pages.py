"""Every page of a compacted or uncompacted thread equals the ordered query."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from comments import errors
from comments.domain import presentation, records
from comments.reading import listings, thread_pages
from comments.reading.compaction import compactor
from comments.store import connection
from comments.tree.lists import ordered_query
from tests.support import prepared_stores
from tests.support.threads import compaction, sample_threads

SECRET = sample_threads.SETTINGS.secret
SCHEME = sample_threads.SETTINGS.scheme
TREE = {
    f"{root}": {f"{root}.{n}": {f"{root}.{n}.1": {}} for n in range(1, 4)} for root in range(1, 6)
}


@pytest.fixture(
    scope="module", params=["never folded", "folded", "folded and cleared", "changed since"]
)
def begun(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> prepared_stores.Beginning:
    """A thread with 35 comments and small buckets, in each state that a thread can have."""

    def grow(site: records.Site) -> None:
        rows = sample_threads.grow(site, TREE)
        name = sample_threads.name_of(site)
        if request.param == "folded":
            assert compactor.compact(SCHEME, name) is not None
        elif request.param != "never folded":
            compaction.whole(name)
        if request.param == "changed since":
            sample_threads.post(site, "new root")
            sample_threads.post(site, "new reply", rows["2.1"].id)

    with pytest.MonkeyPatch.context() as patch:
        compaction.small_buckets(patch)
        return prepared_stores.grown(tmp_path_factory, grow)


@pytest.fixture
def thread_name(
    store: connection.Store, site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> records.ThreadName:
    """Enter the store; return the thread's name."""
    compaction.small_buckets(monkeypatch)
    return sample_threads.name_of(site)


def _pages(read: Callable[[str | None], presentation.ThreadPage]) -> list[presentation.ThreadPage]:
    pages = [read(None)]
    while pages[-1].cursor is not None:
        pages.append(read(pages[-1].cursor))
    return pages


@pytest.mark.parametrize("limit", [3, 50])
@pytest.mark.parametrize("order", list(ordered_query.QueryOrder))
def test_every_page_equals_the_ordered_query(
    thread_name: records.ThreadName, order: ordered_query.QueryOrder, limit: int
) -> None:
    cursor = None
    while True:
        asked = thread_pages.PageRequest(limit, cursor, SECRET)
        found = listings.page(SCHEME, thread_name, asked, order=thread_pages.ListingOrder(order))
        expected = ordered_query.page(
            thread_name, order=order, parent=None, limit=limit, cursor=cursor, secret=SECRET
        )
        pinned = None if cursor else records.PinnedComments()
        assert found.json() == presentation.page(expected, pinned).json()
        cursor = found.cursor
        if cursor is None:
            break


@pytest.mark.parametrize("limit", [1, 4, 50])
def test_recent_discussions_come_first_and_complete(
    thread_name: records.ThreadName, limit: int
) -> None:
    pages = _pages(
        lambda cursor: listings.page(
            SCHEME,
            thread_name,
            thread_pages.PageRequest(limit, cursor, SECRET),
            order=thread_pages.ListingOrder.RECENT,
        )
    )
    rows = ordered_query.thread(thread_name)
    roots = [row.sort_hash for row in rows if row.level == 0]
    expected = [
        presentation.fragment(row)
        for root in reversed(roots)
        for row in rows
        if row.sort_hash.startswith(root)
    ]
    assert [each for page in pages for each in page.comments] == expected


def test_replies_equal_the_ordered_query(thread_name: records.ThreadName) -> None:
    for row in ordered_query.thread(thread_name):
        for limit in (2, 50):
            asked = thread_pages.PageRequest(limit, None, SECRET)
            below = ordered_query.replies(row.id, limit=limit, cursor=None, secret=SECRET)
            found = listings.replies(row.id, asked)
            assert found.json() == presentation.page(below).json()


@pytest.mark.parametrize("limit", [2, 50])
def test_one_level_equals_the_ordered_query(thread_name: records.ThreadName, limit: int) -> None:
    for parent in (ordered_query.ROOTS, *(row.id for row in ordered_query.thread(thread_name)[:3])):
        cursor = None
        while True:
            asked = thread_pages.PageRequest(limit, cursor, SECRET)
            found = listings.page(SCHEME, thread_name, asked, parent=parent)
            expected = ordered_query.page(
                thread_name,
                order=ordered_query.QueryOrder.THREAD,
                parent=parent,
                limit=limit,
                cursor=cursor,
                secret=SECRET,
            )
            assert found.json() == presentation.page(expected).json()
            cursor = found.cursor
            if cursor is None:
                break


@pytest.mark.parametrize("limit", [3, 50])
def test_the_page_around_a_comment_contains_it_and_is_contiguous(
    thread_name: records.ThreadName, limit: int
) -> None:
    rows = ordered_query.thread(thread_name)
    whole = [presentation.fragment(row) for row in rows]
    below = [sum(other.sort_hash.startswith(row.sort_hash) for other in rows) - 1 for row in rows]
    for row in rows:
        page = listings.around(
            SCHEME, thread_name, row.id, thread_pages.PageRequest(limit, None, SECRET)
        )
        assert presentation.fragment(row) in page.comments
        start = whole.index(page.comments[0])
        assert list(page.comments) == whole[start : start + len(page.comments)]
        assert len(page.comments) <= limit
        assert list(page.replies) == below[start : start + len(page.comments)]
        rest = whole[start + len(page.comments) :]
        assert (page.cursor is None) == (not rest)
        if page.cursor is not None:
            asked = thread_pages.PageRequest(200, page.cursor, SECRET)
            assert list(listings.page(SCHEME, thread_name, asked).comments) == rest


def test_a_held_comment_changes_no_page(thread_name: records.ThreadName) -> None:
    def pages() -> list[bytes]:
        compaction.forget()
        asked = thread_pages.PageRequest(5, None, SECRET)
        found = [
            listings.page(SCHEME, thread_name, asked, order=order)
            for order in thread_pages.ListingOrder
        ]
        found += [listings.page(SCHEME, thread_name, asked, parent=ordered_query.ROOTS)]
        return [page.json() for page in found]

    before = pages()
    late = sample_threads.START + timedelta(days=8)
    sample_threads.store_imported(
        thread_name, sample_threads.node("held", status=records.Status.PENDING, created=late)
    )
    assert pages() == before


def test_a_cursor_of_another_order_is_refused(thread_name: records.ThreadName) -> None:
    first = listings.page(SCHEME, thread_name, thread_pages.PageRequest(2, None, SECRET))
    with pytest.raises(errors.BadCursor):
        listings.page(
            SCHEME,
            thread_name,
            thread_pages.PageRequest(2, first.cursor, SECRET),
            order=thread_pages.ListingOrder.RECENT,
        )
