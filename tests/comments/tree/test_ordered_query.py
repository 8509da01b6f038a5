"""A listing's pages join seamlessly, counts are exact, and each cursor is valid for one listing."""

from collections.abc import Callable
from typing import Any

import pytest

from comments import errors
from comments.domain import records
from comments.posting import own_comment
from comments.store import connection
from comments.tree.lists import listed_comments, ordered_query
from comments.tree.lists.ordered_query import QueryOrder
from tests.support import prepared_stores
from tests.support.threads import sample_threads

SECRET = sample_threads.SETTINGS.secret
TREE = {
    "1": {"1.1": {"1.1.1": {}, "1.1.2": {}}, "1.2": {}},
    "2": {"2.1": {"2.1.1": {"2.1.1.1": {}}}},
    "3": {},
}
ORDER = ["1", "1.1", "1.1.1", "1.1.2", "1.2", "2", "2.1", "2.1.1", "2.1.1.1", "3"]
BELOW = {"1": 4, "1.1": 2, "2": 3, "2.1": 2, "2.1.1": 1}


@pytest.fixture(autouse=True)
def _entered(store: connection.Store) -> None:
    """Run all these tests inside the store."""


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> prepared_stores.Beginning:
    """A store that contains the tree, posted in reading order."""
    return prepared_stores.grown(tmp_path_factory, lambda site: sample_threads.grow(site, TREE))


@pytest.fixture
def posted_rows(begun: prepared_stores.Beginning) -> dict[str, records.Comment]:
    """The posted comments by text."""
    return begun.found


def test_a_thread_without_comments_is_an_empty_page(site: records.Site) -> None:
    page = _page(site, thread="nobody")
    assert (page.comments, page.cursor, page.total) == ((), None, 0)


@pytest.mark.parametrize("limit", range(1, 12))
@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (QueryOrder.THREAD, ORDER),
        (QueryOrder.OLDEST, ORDER),  # The tree was posted in reading order
        (QueryOrder.NEWEST, ORDER[::-1]),
    ],
)
def test_pages_of_any_size_join_to_the_whole_thread(
    site: records.Site,
    posted_rows: dict[str, records.Comment],
    limit: int,
    order: QueryOrder,
    expected: list[str],
) -> None:
    pages = _pages(lambda cursor: _page(site, order=order, limit=limit, cursor=cursor))
    assert [text for page in pages for text in sample_threads.texts(page.comments)] == expected
    assert all(len(page.comments) == limit for page in pages[:-1])
    counts = [n for page in pages for n in page.replies]
    assert counts == [BELOW.get(text, 0) for text in expected]
    assert {page.total for page in pages} == {len(ORDER)}


def test_comments_posted_at_the_same_time_are_paged_by_hash(site: records.Site) -> None:
    for text in "abcdef":
        sample_threads.post(site, text, thread="at once")
    asked = {"thread": "at once", "limit": 2}
    for order, expected in ((QueryOrder.OLDEST, "abcdef"), (QueryOrder.NEWEST, "fedcba")):
        pages = _pages(lambda cursor, order=order: _page(site, order=order, cursor=cursor, **asked))  # type: ignore[arg-type, misc]
        assert [t for page in pages for t in sample_threads.texts(page.comments)] == list(expected)


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_one_level_is_paged_by_parent(
    site: records.Site, posted_rows: dict[str, records.Comment], limit: int
) -> None:
    def read(parent: str) -> list[str]:
        pages = _pages(lambda cursor: _page(site, parent=parent, limit=limit, cursor=cursor))
        counts = [n for page in pages for n in page.replies]
        found = [text for page in pages for text in sample_threads.texts(page.comments)]
        assert counts == [BELOW.get(text, 0) for text in found]
        return found

    assert read(ordered_query.ROOTS) == ["1", "2", "3"]
    assert read(posted_rows["1"].id) == ["1.1", "1.2"]
    assert read(posted_rows["3"].id) == []


@pytest.mark.parametrize("limit", [1, 3, 200])
def test_replies_are_all_comments_below_one_comment(
    site: records.Site, posted_rows: dict[str, records.Comment], limit: int
) -> None:
    def read(cursor: str | None) -> records.OrderedPage:
        return ordered_query.replies(posted_rows["1"].id, limit=limit, cursor=cursor, secret=SECRET)

    found = [text for page in _pages(read) for text in sample_threads.texts(page.comments)]
    assert found == ["1.1", "1.1.1", "1.1.2", "1.2"]


def test_a_comment_is_returned_with_its_ancestors(
    site: records.Site, posted_rows: dict[str, records.Comment]
) -> None:
    row, above = listed_comments.with_ancestors(posted_rows["2.1.1.1"].id)
    assert row.body == "2.1.1.1"
    assert sample_threads.texts(above) == ["2", "2.1", "2.1.1"]


@pytest.mark.parametrize("limit", range(1, 12))
@pytest.mark.parametrize("text", ORDER)
def test_the_page_around_a_comment_contains_it_and_continues(
    site: records.Site, posted_rows: dict[str, records.Comment], limit: int, text: str
) -> None:
    name = sample_threads.name_of(site)
    page = ordered_query.around(name, posted_rows[text].id, limit=limit, secret=SECRET)
    shown = sample_threads.texts(page.comments)
    assert text in shown
    start = ORDER.index(shown[0])
    assert shown == ORDER[start : start + limit]
    if page.cursor:
        rest = _pages(lambda cursor: _page(site, limit=3, cursor=cursor or page.cursor))
        assert [t for p in rest for t in sample_threads.texts(p.comments)] == ORDER[start + limit :]


def test_changes_while_paging_move_no_other_comment(
    site: records.Site, posted_rows: dict[str, records.Comment]
) -> None:
    first = _page(site, limit=4)
    sample_threads.post(site, "1.0 late", posted_rows["1.1"].id)
    gone = posted_rows["1.1.2"]
    own_comment.retract(gone.id, author_id=gone.author.id, revision=None, now=sample_threads.START)
    rest = _pages(lambda cursor: _page(site, limit=3, cursor=cursor or first.cursor))
    shown = [
        *sample_threads.texts(first.comments),
        *(t for p in rest for t in sample_threads.texts(p.comments)),
    ]
    assert shown == ["1", "1.1", "1.1.1", "1.1.2", "1.0 late", *ORDER[4:]]


@pytest.mark.parametrize("limit", [0, -1, 201, 10**9])
def test_a_limit_out_of_range_is_refused(site: records.Site, limit: int) -> None:
    with pytest.raises(errors.BadInput, match="limit"):
        _page(site, limit=limit)
    with pytest.raises(errors.BadInput, match="limit"):
        ordered_query.around(sample_threads.name_of(site), "a" * 26, limit=limit, secret=SECRET)


def test_a_cursor_of_another_listing_is_refused(
    site: records.Site, posted_rows: dict[str, records.Comment]
) -> None:
    cursor = _page(site, limit=1).cursor
    assert cursor
    for damaged in ("", "x", cursor[:-1], "WyJBQiJd." + cursor.split(".")[1], "é", "\x00"):
        with pytest.raises(errors.BadCursor):
            _page(site, limit=1, cursor=damaged)
    with pytest.raises(errors.BadCursor):
        _page(site, limit=1, cursor=cursor, order=QueryOrder.NEWEST)
    with pytest.raises(errors.BadCursor):
        _page(site, limit=1, cursor=cursor, parent=ordered_query.ROOTS)
    with pytest.raises(errors.BadCursor):
        _page(site, limit=1, cursor=cursor, thread="other")
    with pytest.raises(errors.BadCursor):
        ordered_query.replies(posted_rows["1"].id, limit=1, cursor=cursor, secret=SECRET)


def test_a_parent_of_another_thread_is_refused(site: records.Site) -> None:
    foreign = sample_threads.post(site, "elsewhere", thread="other")
    with pytest.raises(errors.BadInput, match="parent: other-thread"):
        _page(site, parent=foreign.id)
    with pytest.raises(errors.BadInput, match="around: other-thread"):
        ordered_query.around(sample_threads.name_of(site), foreign.id, limit=5, secret=SECRET)


def test_a_parent_is_accepted_only_in_thread_order(
    site: records.Site, posted_rows: dict[str, records.Comment]
) -> None:
    with pytest.raises(errors.BadInput, match="parent"):
        _page(site, parent=posted_rows["1"].id, order=QueryOrder.NEWEST)


def test_an_unlisted_comment_is_not_found(site: records.Site) -> None:
    row = sample_threads.post(site, "gone")
    own_comment.retract(row.id, author_id=row.author.id, revision=None, now=sample_threads.START)
    for ask in (
        lambda: listed_comments.with_ancestors(row.id),
        lambda: ordered_query.replies(row.id, limit=1, cursor=None, secret=SECRET),
        lambda: listed_comments.with_ancestors(""),
    ):
        with pytest.raises(errors.NotFound):
            ask()


def test_totals_count_what_readers_see(
    site: records.Site, posted_rows: dict[str, records.Comment]
) -> None:
    own_comment.retract(
        posted_rows["3"].id, author_id="g:3", revision=None, now=sample_threads.START
    )
    assert ordered_query.totals(site.id, ["page", "nobody was here"]) == [len(ORDER) - 1, 0]


def test_threads_of_one_site_do_not_mix(
    site: records.Site, posted_rows: dict[str, records.Comment]
) -> None:
    sample_threads.post(site, "elsewhere", thread="page2")
    assert sample_threads.listed(site) == ORDER
    assert sample_threads.listed(site, "page2") == ["elsewhere"]


def _page(site: records.Site, *, thread: str = "page", **asked: Any) -> records.OrderedPage:
    values = {
        "order": QueryOrder.THREAD,
        "parent": None,
        "limit": 50,
        "cursor": None,
        "secret": SECRET,
    }
    return ordered_query.page(sample_threads.name_of(site, thread), **{**values, **asked})


def _pages(read: Callable[[str | None], records.OrderedPage]) -> list[records.OrderedPage]:
    pages = [read(None)]
    while pages[-1].cursor:
        assert len(pages) < 100, "paging does not end"
        pages.append(read(pages[-1].cursor))
    return pages
