"""Reports agree with the stored comments, and each report page needs one bounded read."""

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest

from comments import errors
from comments.domain import records
from comments.domain.ids import sorthash
from comments.events import dispatcher
from comments.posting import own_comment
from comments.store import connection, reads
from comments.store.models import conversion
from comments.tree.bulk import recategorize
from comments.tree.counters import statistics
from comments.upkeep import wiring
from datastore_emulator import inprocess, testing
from tests.support import prepared_stores
from tests.support.histories import counter_oracle
from tests.support.store_interceptors import Calls
from tests.support.threads import sample_threads

NOW = sample_threads.START + timedelta(days=9)
FIRST = date(2026, 1, 2)
THREAD = records.ThreadName("demo", "a")


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> prepared_stores.Beginning:
    """Comments from three days in three threads, plus a second site with the same name prefix."""
    return prepared_stores.grown(tmp_path_factory, _tell)


@pytest.fixture
def reported_site(store: connection.Store, begun: prepared_stores.Beginning) -> records.Site:
    return begun.found


def _tell(site: records.Site) -> records.Site:
    site = sample_threads.filing(site, "news", "newsletter", "sport")
    beside = sample_threads.filing(records.Site("demo-2", (), sorthash.DEFAULT_DIGITS, 2), "news")
    for day, who, thread, names in [
        (0, "ann", "a", ("news", "sport")),
        (0, "bob", "a", ()),
        (0, "ann", "b", ("newsletter",)),
        (1, "ann", "a", ()),
        (1, "ann", "a", ()),
        (2, "cid", "plain", ()),
    ]:
        sample_threads.post(
            site, f"{day} {who}", author=sample_threads.author(who), thread=thread,
            categories=names, now=sample_threads.START + timedelta(days=day),
        )  # fmt: skip
    sample_threads.post(
        beside, "elsewhere", author=sample_threads.author("ann"), categories=("news",)
    )
    _deliver()
    return site


def _deliver() -> None:
    dispatcher.deliver(counter_oracle.events(), now=NOW, handlers=wiring.HANDLERS)


def _short(lines: Any) -> list[tuple[str, int, int, int]]:
    return [
        (line.category, (line.day - FIRST).days if line.day else -1, line.comments, line.commenters)
        for line in lines
    ]


def test_the_numbers_of_a_site(reported_site: records.Site) -> None:
    assert _short([statistics.site("demo")]) == [("", -1, 6, 3)]
    assert _short([statistics.site("nobody")]) == [("", -1, 0, 0)]


def test_the_numbers_of_categories(reported_site: records.Site) -> None:
    expected = [("news", -1, 4, 2), ("newsletter", -1, 1, 1), ("sport", -1, 4, 2)]
    assert _short(statistics.by_category("demo").lines) == expected
    assert statistics.by_category("nobody") == statistics.ReportPage((), None)


def test_the_numbers_of_days_by_site_and_category(reported_site: records.Site) -> None:
    assert _short(statistics.by_day("demo").lines) == [("", 0, 3, 2), ("", 1, 2, 1), ("", 2, 1, 1)]
    assert _short(statistics.by_day("demo", " News ").lines) == [
        ("news", 0, 2, 2),
        ("news", 1, 2, 1),
    ]
    assert _short(statistics.by_day_and_category("demo").lines) == [
        ("", 0, 3, 2), ("news", 0, 2, 2), ("newsletter", 0, 1, 1), ("sport", 0, 2, 2),
        ("", 1, 2, 1), ("news", 1, 2, 1), ("sport", 1, 2, 1),
        ("", 2, 1, 1),
    ]  # fmt: skip


@pytest.mark.parametrize("since", [None, *range(-1, 4)])
@pytest.mark.parametrize("until", [None, *range(-1, 4)])
def test_a_range_includes_its_first_and_last_day(
    reported_site: records.Site, since: int | None, until: int | None
) -> None:
    first, last = (None if n is None else FIRST + timedelta(days=n) for n in (since, until))
    if since is not None and until is not None and since > until:
        with pytest.raises(errors.BadInput) as refused:
            statistics.by_day("demo", since=first, until=last)
        assert refused.value.field == "since"
        return
    reads: list[Callable[..., statistics.ReportPage[statistics.StatisticsEntry]]] = [
        statistics.by_day,
        statistics.by_day_and_category,
        lambda *a, **o: statistics.by_day(*a, "news", **o),  # type: ignore[arg-type, call-arg]
    ]  # fmt: skip
    for read in reads:
        inside = [
            line
            for line in read("demo").lines
            if line.day and (first or line.day) <= line.day <= (last or line.day)
        ]
        assert list(read("demo", since=first, until=last).lines) == inside


REPORTS: list[Callable[[str, int], statistics.ReportPage[Any]]] = [
    lambda after, limit: statistics.by_category("demo", after=after, limit=limit),
    lambda after, limit: statistics.by_day("demo", since=FIRST, after=after, limit=limit),
    lambda after, limit: statistics.by_day("demo", "news", after=after, limit=limit),
    lambda after, limit: statistics.by_day_and_category("demo", after=after, limit=limit),
    lambda after, limit: statistics.commenters(THREAD, after=after, limit=limit),
    lambda after, limit: statistics.commenters_of_category(
        "demo", "news", after=after, limit=limit
    ),
    lambda after, limit: statistics.categories_of("demo", "g:ann", after=after, limit=limit),
    lambda after, limit: statistics.threads_of("demo", "g:ann", after=after, limit=limit),
]  # fmt: skip


@pytest.mark.parametrize("report", range(len(REPORTS)))
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_pages_of_any_length_contain_each_line_once(
    reported_site: records.Site, report: int, limit: int
) -> None:
    read = REPORTS[report]
    pages = list(statistics.whole(lambda after: read(after, limit)))
    assert pages == list(read("", statistics.MOST).lines)
    assert pages


@pytest.mark.parametrize("report", range(len(REPORTS)))
def test_a_page_is_one_bounded_read_without_writes(
    reported_site: records.Site, engine: inprocess.Engine, calls: Calls, report: int
) -> None:
    """The report on an author's threads needs one more lookup."""
    is_of_threads = report == len(REPORTS) - 1
    calls.names.clear()
    with testing.meter(engine) as cost:
        REPORTS[report]("", 2)
    assert calls.names == ["RunQuery", *(["Lookup"] if is_of_threads else [])]
    assert cost.reads <= 2 * (2 if is_of_threads else 1) + 1
    assert (cost.writes, cost.deletes) == (0, 0)


def test_lines_that_appear_or_vanish_between_pages_move_no_other(
    reported_site: records.Site,
) -> None:
    page = statistics.by_day("demo", limit=2)
    for row in _rows("plain"):
        own_comment.retract(row.id, author_id=row.author.id, revision=None, now=NOW)
    early = sample_threads.START - timedelta(days=1)
    sample_threads.post(
        reported_site, "early", author=sample_threads.author("ann"), thread="plain", now=early
    )
    sample_threads.post(
        reported_site, "late", author=sample_threads.author("ann"), thread="plain", now=NOW
    )
    _deliver()
    rest = statistics.by_day("demo", limit=2, after=page.after or "")
    assert _short([*page.lines, *rest.lines]) == [
        ("", 0, 3, 2), ("", 1, 2, 1), ("", 2, 0, 0), ("", 9, 1, 1)
    ]  # fmt: skip
    assert statistics.by_day("demo").lines[3].retracted == 1


def _rows(thread: str) -> list[records.Comment]:
    rows = (conversion.comment_from_message(row) for row in reads.fetch(reads.Query("Comment")))
    return [row for row in rows if row.thread == thread]


def test_the_authors_of_a_thread_and_the_threads_of_an_author(reported_site: records.Site) -> None:
    people = statistics.commenters(THREAD).lines
    assert people == (statistics.AuthorCount("g:ann", 3), statistics.AuthorCount("g:bob", 1))
    assert statistics.threads_of("demo", "g:ann").lines == (
        statistics.ThreadCount("a", "", 3), statistics.ThreadCount("b", "", 1)
    )  # fmt: skip
    assert statistics.threads_of("demo-2", "g:ann").lines == (
        statistics.ThreadCount("page", "", 1),
    )
    assert statistics.threads_of("demo", "g:nobody").lines == ()


def test_a_thread_with_a_long_id_is_found_by_its_author(reported_site: records.Site) -> None:
    name = "x" * 600
    sample_threads.post(
        reported_site, "text", author=sample_threads.author("dan"), thread=name, title="Long"
    )
    sample_threads.post(reported_site, "text", author=sample_threads.author("dan"), thread="short")
    pages = list(
        statistics.whole(lambda after: statistics.threads_of("demo", "g:dan", after=after, limit=1))
    )
    assert sorted(place.thread for place in pages) == ["short", name]


def test_the_authors_of_a_category_and_the_categories_of_an_author(
    reported_site: records.Site,
) -> None:
    people = statistics.commenters_of_category("demo", "News").lines
    assert people == (statistics.AuthorCount("g:ann", 3), statistics.AuthorCount("g:bob", 1))
    assert statistics.categories_of("demo", "g:ann").lines == (
        statistics.CategoryCount("news", 3),
        statistics.CategoryCount("newsletter", 1),
        statistics.CategoryCount("sport", 3),
    )
    assert statistics.categories_of("demo", "g:cid").lines == ()
    recategorize.change(THREAD, ["travel"], now=NOW)
    _deliver()
    assert [each.category for each in statistics.categories_of("demo", "g:ann").lines] == [
        "newsletter", "travel"
    ]  # fmt: skip
    assert statistics.commenters_of_category("demo", "news").lines == ()


@pytest.fixture
def nested_site(reported_site: records.Site) -> records.Site:
    """Categories with similar names, some of which are nested."""
    recategorize.change(THREAD, ["sport/football/women", "sport/rugby", "sport news"], now=NOW)
    recategorize.change(records.ThreadName("demo", "b"), ["sport/football", "sports"], now=NOW)
    recategorize.change(records.ThreadName("demo", "plain"), ["sport", "sport-x"], now=NOW)
    _deliver()
    return reported_site


def test_the_numbers_of_a_category_include_its_subcategories(nested_site: records.Site) -> None:
    subtree = [
        ("sport", -1, 6, 3), ("sport/football", -1, 5, 2), ("sport/football/women", -1, 4, 2),
        ("sport/rugby", -1, 4, 2),
    ]  # fmt: skip
    beside = [("sport news", -1, 4, 2), ("sport-x", -1, 1, 1), ("sports", -1, 1, 1)]
    assert _short(statistics.by_category("demo").lines) == [*subtree, *beside]
    assert _short(statistics.by_category("demo", under=" Sport ").lines) == subtree
    assert _short(statistics.by_category("demo", under="sport/football").lines) == subtree[1:3]
    assert statistics.by_category("demo", under="travel").lines == ()
    assert _short(statistics.by_day("demo", "sport/football").lines) == [
        ("sport/football", 0, 3, 2), ("sport/football", 1, 2, 1)
    ]  # fmt: skip
    (*_, last) = statistics.by_day_and_category("demo", since=FIRST + timedelta(days=2)).lines
    assert _short([last]) == [("sport-x", 2, 1, 1)]


def test_the_authors_of_a_category_include_those_of_its_subcategories_once(
    nested_site: records.Site,
) -> None:
    assert statistics.commenters_of_category("demo", "sport").lines == (
        statistics.AuthorCount("g:ann", 4),
        statistics.AuthorCount("g:bob", 1),
        statistics.AuthorCount("g:cid", 1),
    )
    assert statistics.commenters_of_category("demo", "sport/rugby").lines == (
        statistics.AuthorCount("g:ann", 3), statistics.AuthorCount("g:bob", 1)
    )  # fmt: skip
    assert {
        each.category: each.comments for each in statistics.categories_of("demo", "g:ann").lines
    } == {
        "sport": 4, "sport/football": 4, "sport/football/women": 3, "sport/rugby": 3,
        "sport news": 3, "sports": 1,
    }  # fmt: skip


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_pages_of_nested_categories_contain_each_line_once(
    nested_site: records.Site, limit: int
) -> None:
    reports: list[Callable[[str, int], statistics.ReportPage[Any]]] = [
        lambda after, limit: statistics.by_category("demo", after=after, limit=limit),
        lambda after, limit: statistics.by_category(
            "demo", under="sport", after=after, limit=limit
        ),
        lambda after, limit: statistics.by_day_and_category("demo", after=after, limit=limit),
        lambda after, limit: statistics.categories_of("demo", "g:ann", after=after, limit=limit),
    ]  # fmt: skip
    for report in reports:
        pages = list(statistics.whole(lambda after, read=report: read(after, limit)))  # type: ignore[misc]
        assert pages == list(report("", statistics.MOST).lines)
        assert len(pages) > 3


def test_an_author_who_retracted_everything_is_in_no_list(reported_site: records.Site) -> None:
    (row,) = (row for row in _rows("a") if row.author.id == "g:bob")
    own_comment.retract(row.id, author_id="g:bob", revision=None, now=NOW)
    _deliver()
    assert statistics.commenters(THREAD).lines == (statistics.AuthorCount("g:ann", 3),)
    assert statistics.commenters_of_category("demo", "sport").lines == (
        statistics.AuthorCount("g:ann", 3),
    )
    assert statistics.threads_of("demo", "g:bob").lines == ()


def test_an_author_with_only_held_comments_is_in_no_list(store: connection.Store) -> None:
    site = records.Site("new", (), sorthash.DEFAULT_DIGITS, 2)
    name = sample_threads.name_of(site)
    node = records.ImportedComment(
        id="a" * 26, reply_to=None, author=sample_threads.author("eve"), body="", html="",
        renderer="", status=records.Status.PENDING, created=sample_threads.START, source="test",
    )  # fmt: skip
    sample_threads.store_imported(name, node)
    _deliver()
    assert statistics.commenters(name, limit=1).lines == ()
    assert statistics.threads_of("new", "g:eve").lines == ()
    (day,) = statistics.by_day("new").lines
    assert (day.comments, day.pending, day.commenters) == (0, 1, 0)
    sample_threads.post(site, "text", author=sample_threads.author("zoe"))
    people = statistics.whole(lambda after: statistics.commenters(name, after=after, limit=1))
    assert list(people) == [statistics.AuthorCount("g:zoe", 1)]


@pytest.mark.parametrize("limit", [0, -1, statistics.MOST + 1])
def test_an_invalid_page_is_refused(store: connection.Store, limit: int) -> None:
    for report in REPORTS:
        with pytest.raises(errors.BadInput) as refused:
            report("", limit)
        assert refused.value.field == "limit"


def test_an_invalid_category_is_refused(store: connection.Store) -> None:
    for read in (statistics.by_day, statistics.commenters_of_category):
        with pytest.raises(errors.BadInput) as refused:
            read("demo", "a//b")
        assert refused.value.field == "categories"
    with pytest.raises(errors.BadInput, match="category-too-deep"):
        statistics.by_category("demo", under="a/b/c/d")
