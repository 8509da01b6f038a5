"""The review queue lists the right comments in the right order, page after page."""

import random
from collections.abc import Iterator
from datetime import timedelta

import pytest

from comments import errors
from comments.domain import records
from comments.domain.records import Status, Verb
from comments.moderation import decisions, review_queue, thread_list
from comments.sites import site_settings
from comments.store import connection, reads
from comments.store.models import conversion
from tests.support import datastores
from tests.support.threads import sample_threads

ADA = records.Actor("cli", "Ada")
LATER = sample_threads.START + timedelta(seconds=4)
SECRET = sample_threads.SETTINGS.secret
VERBS = {
    Status.PENDING: Verb.HOLD, Status.SPAM: Verb.SPAM, Status.REJECTED: Verb.REJECT,
    Status.HIDDEN: Verb.HIDE,
}  # fmt: skip


@pytest.fixture(scope="module")
def full(
    shared_datastore: datastores.Datastore,
) -> tuple[connection.Store, dict[str, records.Case]]:
    """Make sixty comments of all statuses by four authors in two threads, many with equal times."""
    store = shared_datastore.connect()
    with store.context():
        site = site_settings.add(
            "demo", [], scheme=sample_threads.SETTINGS.scheme, now=sample_threads.START
        )
        return store, _fill(site)


@pytest.fixture
def filled(
    full: tuple[connection.Store, dict[str, records.Case]],
) -> Iterator[dict[str, records.Case]]:
    with full[0].context():
        yield full[1]


def _fill(site: records.Site) -> dict[str, records.Case]:
    chance = random.Random(7)
    for number in range(60):
        row = sample_threads.post(
            site, f"text {number}", thread=f"t{number % 2}",
            now=sample_threads.START + timedelta(seconds=number // 7),
            author=records.Author(f"Name {number % 4}", id=f"g:{number % 4}"),
        )  # fmt: skip
        status = chance.choice([Status.APPROVED, *VERBS])
        if status is not Status.APPROVED:
            decisions.decide("demo", row.id, VERBS[status], ADA, now=sample_threads.START)
    elsewhere = site_settings.add(
        "blog", [], scheme=sample_threads.SETTINGS.scheme, now=sample_threads.START
    )
    row = sample_threads.post(
        elsewhere, "text elsewhere", author=records.Author("Name 1", id="g:1")
    )
    decisions.decide("blog", row.id, Verb.HOLD, ADA, now=sample_threads.START)
    query = reads.Query("Comment")
    found = [conversion.case_from_message(message) for message in reads.fetch(query)]
    return {each.comment.id: each for each in found if each.comment.site == "demo"}


def walk(wanted: review_queue.QueueFilter, limit: int) -> list[records.Case]:
    """Return the cases on all pages."""
    found: list[records.Case] = []
    cursor = None
    for _ in range(200):
        page = review_queue.page(wanted, limit=limit, cursor=cursor, secret=SECRET)
        assert len(page.cases) <= limit
        found += page.cases
        if page.cursor is None:
            return found
        cursor = page.cursor
    raise AssertionError("the pages have no end")


@pytest.mark.parametrize("limit", [1, 3, 25, 100])
@pytest.mark.parametrize(
    "wanted",
    [
        review_queue.QueueFilter("demo"),
        review_queue.QueueFilter("demo", review_queue.STATUSES),
        review_queue.QueueFilter("demo", (Status.SPAM, Status.APPROVED)),
        review_queue.QueueFilter("demo", review_queue.STATUSES, author="g:1"),
        review_queue.QueueFilter("demo", author="g:2"),
        review_queue.QueueFilter("demo", review_queue.STATUSES, text="TEXT 1"),
        review_queue.QueueFilter("demo", review_queue.STATUSES, text="name 3"),
        review_queue.QueueFilter("demo", review_queue.STATUSES, author="g:1", text="5"),
        review_queue.QueueFilter("demo", review_queue.STATUSES, text="nobody said this"),
        review_queue.QueueFilter("demo", review_queue.STATUSES, threads=("t1", "no such thread")),
        review_queue.QueueFilter("demo", review_queue.STATUSES, rule="moderator"),
        review_queue.QueueFilter("demo", rule="moderator", threads=("t0",), text="text"),
        review_queue.QueueFilter("demo", review_queue.STATUSES, rule="policy", text="nobody"),
        review_queue.QueueFilter("demo", review_queue.STATUSES, since=LATER),
        review_queue.QueueFilter("demo", review_queue.STATUSES, before=LATER, author="g:1"),
        review_queue.QueueFilter(
            "demo", (Status.SPAM, Status.HIDDEN), since=LATER, before=LATER + timedelta(seconds=2)
        ),
    ],
    ids=str,
)
def test_all_pages_together_list_each_wanted_comment_once_newest_first(
    filled: dict[str, records.Case], wanted: review_queue.QueueFilter, limit: int
) -> None:
    def is_wanted(case: records.Case) -> bool:
        said, text = case.comment, wanted.text.lower()
        return (
            said.status in wanted.statuses
            and wanted.author in {"", said.author.id}
            and (text in said.body or text in said.author.name.lower())
            and (not wanted.threads or said.thread in wanted.threads)
            and wanted.rule in {"", case.rule}
            and (wanted.since is None or said.created >= wanted.since)
            and (wanted.before is None or said.created < wanted.before)
        )

    expected = sorted(
        (case for case in filled.values() if is_wanted(case)),
        key=lambda case: (case.comment.revision, case.comment.id),
    )
    expected.sort(key=lambda case: case.comment.created, reverse=True)
    assert walk(wanted, limit) == expected
    if not wanted.is_search:
        assert review_queue.count(wanted, 1_000) == len(expected)
    assert bool(expected) == ("nobody" not in wanted.text)


def test_a_text_search_is_bounded_and_continues_on_the_next_page(
    filled: dict[str, records.Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(review_queue, "LOOKED_THROUGH", 10)
    wanted = review_queue.QueueFilter("demo", review_queue.STATUSES, text="text 0")
    page = review_queue.page(wanted, limit=5, secret=SECRET)
    assert page.cases == ()
    assert page.cursor
    assert page.examined == 10
    assert page.back_to == sample_threads.START + timedelta(seconds=7)
    assert [case.comment.body for case in walk(wanted, 5)] == ["text 0"]


def test_a_case_read_in_bulk_equals_the_case_read_alone(filled: dict[str, records.Case]) -> None:
    assert len(filled) == 60
    for name, case in filled.items():
        assert decisions.case("demo", name) == case
    assert review_queue.cases([*filled, "a" * 26, *filled]) == filled


def test_a_thread_lists_all_its_comments_in_reading_order(
    store: connection.Store, site: records.Site
) -> None:
    grown = sample_threads.grow(site, sample_threads.TREE)
    for name in ("1.1", "3"):
        decisions.decide("demo", grown[name].id, Verb.SPAM, ADA, now=sample_threads.START)
    found: list[str] = []
    cursor = None
    while True:
        run = thread_list.thread(
            sample_threads.name_of(site), limit=3, cursor=cursor, secret=SECRET
        )
        found += [case.comment.body for case in run.cases]
        cursor = run.cursor
        if cursor is None:
            break
    assert found == sample_threads.ORDER
    above = review_queue.ancestors(grown["1.1.2"], 20)
    assert [each.body for each in above] == ["1", "1.1"]
    assert [each.body for each in review_queue.ancestors(grown["1.1.2"], 1)] == ["1.1"]
    assert review_queue.ancestors(grown["1"], 20) == []


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_the_threads_of_a_site_are_listed_newest_first(
    store: connection.Store, site: records.Site, limit: int
) -> None:
    for number in range(6):
        sample_threads.post(
            site,
            "x",
            thread=f"t{number}",
            now=sample_threads.START + timedelta(seconds=number // 3),
        )
    found: list[str] = []
    cursor = None
    while True:
        page = thread_list.threads("demo", limit=limit, cursor=cursor, secret=SECRET)
        found += [each.name.id for each in page.threads]
        cursor = page.cursor
        if cursor is None:
            break
    assert found == ["t3", "t4", "t5", "t0", "t1", "t2"]


@pytest.mark.parametrize("limit", [1, 2, 5])
@pytest.mark.parametrize("text", ["", "odd", "HTTPS://demo.example/T", "http://t1"])
def test_threads_are_found_by_title_and_address_with_the_newest_comments_first(
    store: connection.Store,
    site: records.Site,
    monkeypatch: pytest.MonkeyPatch,
    limit: int,
    text: str,
) -> None:
    monkeypatch.setattr(thread_list, "LOOKED_THROUGH", 3)
    for number in range(8):
        sample_threads.post(
            site, "x", thread=f"t{number}", now=sample_threads.START + timedelta(hours=number // 3),
            title="An odd one" if number % 2 else "Even", url=f"http://demo.example/t{number}",
        )  # fmt: skip
    wanted = thread_list.ThreadFilter("demo", text)
    found: list[str] = []
    cursor, pages = None, 0
    while pages == 0 or cursor:
        page = thread_list.active_threads(wanted, limit=limit, cursor=cursor, secret=SECRET)
        found += [each.name.id for each in page.threads]
        assert len(page.threads) <= limit
        cursor, pages = page.cursor, pages + 1
    newest_first = ["t6", "t7", "t3", "t4", "t5", "t0", "t1", "t2"]
    numbers = {"odd": "1357", "http://t1": "1"}.get(text, "01234567")
    assert found == [each for each in newest_first if each[1] in numbers]


def test_a_cursor_is_valid_only_for_its_listing(filled: dict[str, records.Case]) -> None:
    cursor = review_queue.page(review_queue.QueueFilter("demo"), limit=1, secret=SECRET).cursor
    for other in (
        review_queue.QueueFilter("blog"),
        review_queue.QueueFilter("demo", (Status.SPAM,)),
        review_queue.QueueFilter("demo", author="g:1"),
        review_queue.QueueFilter("demo", text="x"),
    ):
        with pytest.raises(errors.BadCursor):
            review_queue.page(other, cursor=cursor, secret=SECRET)
    with pytest.raises(errors.BadCursor):
        thread_list.threads("demo", cursor=cursor, secret=SECRET)
    for text in ("", "x"):
        with pytest.raises(errors.BadCursor):
            thread_list.active_threads(
                thread_list.ThreadFilter("demo", text), cursor=cursor, secret=SECRET
            )
    with pytest.raises(errors.BadInput, match="q: too-long"):
        thread_list.ThreadFilter("demo", "x" * 101)
    with pytest.raises(errors.BadCursor):
        thread_list.thread(records.ThreadName("demo", "t0"), cursor=cursor, secret=SECRET)
    for limit in (0, 101):
        with pytest.raises(errors.BadInput):
            review_queue.page(review_queue.QueueFilter("demo"), limit=limit, secret=SECRET)
    with pytest.raises(errors.BadInput, match="q: too-long"):
        review_queue.QueueFilter("demo", text="x" * 101)


# This test must run last, because it changes data that the other tests share.
def test_a_moderator_who_decides_while_paging_misses_nothing(
    filled: dict[str, records.Case],
) -> None:
    wanted, met, cursor = review_queue.QueueFilter("demo"), set(), None
    waiting = {name for name, case in filled.items() if case.comment.status is Status.PENDING}
    while True:
        page = review_queue.page(wanted, limit=2, cursor=cursor, secret=SECRET)
        for case in page.cases:
            met.add(case.comment.id)
            decisions.decide("demo", case.comment.id, Verb.APPROVE, ADA, now=sample_threads.START)
        cursor = page.cursor
        if cursor is None:
            break
    assert met == waiting
