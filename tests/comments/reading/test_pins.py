"""Pinned comments are on every first page, in any state of the thread, and few."""

from collections.abc import Iterator
from typing import Any

import pytest

from comments import errors
from comments.domain import presentation, records
from comments.domain.records import Verb
from comments.moderation import decisions
from comments.posting import own_comment
from comments.reading import full_thread, listings, thread_pages
from comments.reading.compaction import compactor
from comments.reading.materialized import buckets, directories, first_page, thread_view, view_cache
from comments.store import connection, reads
from comments.store.models import comment_rows
from comments.tree import status_changes
from comments.tree.lists import ordered_query
from datastore_emulator import inprocess, testing
from tests.support import datastores
from tests.support.html import html_reader
from tests.support.people import api_requests
from tests.support.threads import cache_twins, compaction, sample_threads, sample_votes

GOLDEN = "789c9b3901080e1c383061e2a4458e4ebb92710200b16312ba"
ADA = records.Actor("cli", "Ada")
SCHEME, SETTINGS = sample_threads.SETTINGS.scheme, sample_threads.SETTINGS
NAME = records.ThreadName("demo", "page")
PAGE = "/api/v1/sites/demo/comments?thread=page"
Rows = dict[str, records.Comment]


@pytest.fixture(params=["never compacted", "compacted", "head", "changed since"])
def rows(
    request: pytest.FixtureRequest,
    open_store: connection.Store,
    site: records.Site,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Rows]:
    """The rows of a thread in one state, with pins on "3", "1.1.2" and "1"."""
    compaction.small_buckets(monkeypatch, 3)
    if request.param != "head":
        monkeypatch.setattr(first_page, "of", lambda _view: None)
    with open_store.context():
        grown = sample_threads.grow(site, sample_threads.TREE)
        if request.param == "changed since":
            _compact()
        for text in ("3", "1.1.2", "1"):
            pin(grown[text])
        if request.param in {"compacted", "head"}:
            _compact()
        if request.param == "head":
            assert thread_view.current_first_page(NAME, 5) is not None
        yield grown


def _compact() -> None:
    folded = compactor.compact(SCHEME, NAME)
    assert folded is not None
    compactor.clear(folded)
    view_cache.HOLDINGS.get().forget(NAME)  # As if the grace period were over


def pin(row: records.Comment, verb: Verb = Verb.PIN) -> None:
    decisions.decide("demo", row.id, verb, ADA, now=sample_threads.START)


def oracle() -> list[tuple[str, int]]:
    """Return the pinned comments in reading order, with their numbers of replies."""
    listed = ordered_query.thread(NAME)
    return [
        (row.id, sum(each.sort_hash.startswith(row.sort_hash) for each in listed) - 1)
        for row in listed
        if row.pinned and not row.is_tombstone
    ]


def shown(page: presentation.ThreadPage) -> list[tuple[str, int]]:
    assert page.pinned is not None
    made = map(presentation.read, page.pinned.comments, page.pinned.replies)
    found = [(each.id, each.replies) for each in made if each.pinned]
    assert len(found) == len(page.pinned.comments)
    return found  # type: ignore[return-value]


def _first(order: str, limit: int = 2) -> presentation.ThreadPage:
    asked = thread_pages.PageRequest(limit, None, SETTINGS.secret)
    return listings.page(SCHEME, NAME, asked, order=thread_pages.ListingOrder(order))


ORDERS = list(thread_pages.ListingOrder)


@pytest.mark.parametrize("order", ORDERS)
def test_every_first_page_has_the_pinned_comments(rows: Rows, order: str) -> None:
    wanted = [(rows["1"].id, 4), (rows["1.1.2"].id, 0), (rows["3"].id, 0)]
    assert oracle() == wanted
    first = _first(order)
    assert shown(first) == wanted
    rest = thread_pages.PageRequest(2, first.cursor, SETTINGS.secret)
    second = listings.page(SCHEME, NAME, rest, order=thread_pages.ListingOrder(order))
    assert second.pinned is None


def test_a_whole_thread_has_them_too(rows: Rows) -> None:
    whole = full_thread.WholeThread(NAME, SETTINGS.secret).page()
    assert shown(whole.about) == oracle()
    below = full_thread.below(rows["1"].id, SETTINGS.secret).page()
    assert below.about.pinned is None


def test_other_pages_do_not_have_them(rows: Rows) -> None:
    asked = thread_pages.PageRequest(2, None, SETTINGS.secret)
    assert listings.around(SCHEME, NAME, rows["2"].id, asked).pinned is None
    assert listings.replies(rows["1"].id, asked).pinned is None
    assert listings.page(SCHEME, NAME, asked, parent="root").pinned is None


@pytest.mark.parametrize("order", ["thread", "newest"])
def test_a_change_of_a_pinned_comment_shows_at_once(rows: Rows, order: str) -> None:
    pin(rows["3"], Verb.HIDE)
    assert shown(_first(order)) == oracle() == [(rows["1"].id, 4), (rows["1.1.2"].id, 0)]
    pin(rows["3"], Verb.RESTORE)
    own_comment.edit(
        rows["1.1.2"].id, author_id="g:1.1.2", body="edited", revision=None, settings=SETTINGS,
        now=sample_threads.START,
    )  # fmt: skip
    assert b"edited" in _first(order).json()
    assert len(shown(_first(order))) == 3
    pin(rows["1"], Verb.UNPIN)
    sample_threads.retract(rows["1.1.2"])
    assert shown(_first(order)) == oracle() == [(rows["3"].id, 0)]
    _compact()
    assert shown(_first(order)) == oracle()
    sample_votes.vote(rows["3"], "voter")
    sample_votes.count_waiting()
    assert shown(_first(order)) == oracle() == [(rows["3"].id, 0)]


def test_a_compaction_keeps_the_pins_of_unchanged_comments(rows: Rows) -> None:
    for text in ("2", "2.1"):
        sample_threads.retract(rows[text])
        _compact()
    content = directories.load_directory(NAME).content
    assert [comment_id for _, comment_id in content.pinned] == [each for each, _ in oracle()]
    assert shown(_first("thread")) == oracle()


# --- The limit --------------------


def _pins() -> list[str]:
    return list(reads.get(comment_rows.thread_key(NAME)).pins)


def test_a_thread_has_at_most_three_pins(rows: Rows, site: records.Site) -> None:
    with pytest.raises(errors.Conflict) as refused:
        pin(rows["2"])
    assert (refused.value.code, refused.value.params) == ("too-many-pins", {"limit": 3})
    assert status_changes.MOST_PINS == 3
    pin(rows["3"])  # Is pinned already
    other = sample_threads.post(site, "elsewhere", thread="other")
    pin(other)
    pin(rows["1"], Verb.UNPIN)
    pin(rows["2"])
    assert [each for each, _ in oracle()] == [rows["1.1.2"].id, rows["2"].id, rows["3"].id]
    assert sorted(_pins()) == sorted(each for each, _ in oracle())


def test_comments_that_readers_do_not_see_lose_their_pins_to_others(rows: Rows) -> None:
    pin(rows["3"], Verb.HIDE)
    sample_threads.retract(rows["1.1.2"])
    pin(rows["2"])
    pin(rows["2.1"])
    pin(rows["3"], Verb.RESTORE)
    assert [each for each, _ in oracle()] == [rows["1"].id, rows["2"].id, rows["2.1"].id]
    assert sorted(_pins()) == sorted(each for each, _ in oracle())
    with pytest.raises(errors.Conflict):
        pin(rows["3"])


# --- Answers --------------------


def test_every_comment_of_an_answer_says_whether_it_is_pinned(
    app: Any, client: Any, rows: Rows
) -> None:
    for path in (PAGE, f"{PAGE}&limit=2", f"{PAGE}&limit=all", f"{PAGE}&order=newest"):
        page = api_requests.answer(client.get(path))
        ids = [each["id"] for each in page["pinned"]]
        assert ids == [rows[text].id for text in ("1", "1.1.2", "3")]
        assert {each["id"]: each["pinned"] for each in page["comments"]} == {
            each["id"]: each["id"] in ids for each in page["comments"]
        }
    page = api_requests.answer(client.get(f"{PAGE}&limit=2"))
    more = api_requests.answer(client.get(f"{PAGE}&limit=2&cursor={page['cursor']}"))
    assert "pinned" not in more
    one = api_requests.answer(client.get(f"{api_requests.ONE}{rows['1.1.1'].id}"))
    assert [one["comment"]["pinned"], *(each["pinned"] for each in one["ancestors"])] == [
        False, True, False,
    ]  # fmt: skip


def test_the_page_without_javascript_shows_them_first(client: Any, rows: Rows) -> None:
    text = client.get("/embed/demo?thread=page").text
    first, _, tree = text.partition('class="ft-list"')
    assert [f"#comment-{rows[each].id}" in first for each in ("1", "1.1.2", "3", "2")] == [
        True, True, True, False,
    ]  # fmt: skip
    assert tree.count('class="ft-badge ft-pinned"') == 3
    assert html_reader.Document(text).ids.count(rows["1"].id) == 1


def test_pins_of_a_head_cost_nothing(
    open_store: connection.Store, engine: inprocess.Engine, site: records.Site
) -> None:
    with open_store.context():
        grown = sample_threads.grow(site, sample_threads.TREE)
        pin(grown["2"])
        _compact()
    process = cache_twins.Process(datastores.Embedded(engine), SETTINGS)
    with process.store.context(), testing.meter(engine) as cost:
        assert shown(_first("thread")) == [(grown["2"].id, 1)]
    assert (cost.reads, cost.empty) == (1, 1)


def test_an_unpinned_comment_is_stored_without_a_mark() -> None:
    made = b'{"id":"a"}'
    sent = presentation.with_replies(made, 7)
    assert sent == b'{"id":"a","pinned":false,"replies":7}'
    assert presentation.JoinedRows(sent).comments == (made,)
    pinned = b'{"id":"a","pinned":true}'
    assert presentation.with_replies(pinned, 0) == b'{"id":"a","pinned":true,"replies":0}'
    assert presentation.JoinedRows(presentation.with_replies(pinned, 0)).comments == (pinned,)


def test_the_stored_form_of_pins_is_stable() -> None:
    content = buckets.DirectoryContent(pinned=(("AB", "c" * 26),))
    assert buckets.decode_content(buckets.encode_content(content)) == content
    stored = bytes.fromhex(GOLDEN)
    assert buckets.decode_content(stored) == content
