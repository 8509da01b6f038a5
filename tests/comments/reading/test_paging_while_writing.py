"""While 50 threads write, paging shows each comment that stays listed exactly once.

Readers repeatedly page through every listing while writers add, edit and retract comments and a
compactor compacts. These tests also check that every listing refuses foreign cursors and parents.
"""

import dataclasses
import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import flask.testing
import pytest
from werkzeug import test

from comments.domain import presentation, records
from comments.posting import own_comment
from comments.reading import listings, thread_pages
from comments.reading.compaction import compactor
from comments.reading.materialized import ranking
from comments.reading.thread_pages import ListingOrder
from comments.store import connection
from comments.store.models import comment_rows
from comments.tree.lists import ordered_query
from tests.support.threads import compaction, sample_threads

SECRET = sample_threads.SETTINGS.secret
SCHEME = sample_threads.SETTINGS.scheme
WRITERS = 50
FOLDINGS = 8
REST = 3  # A reader's pause between passes, in durations of a pass
TREE = {f"{n}": {f"{n}.1": {f"{n}.1.1": {}}, f"{n}.2": {}} for n in range(1, 5)}
Read = Callable[[thread_pages.PageRequest], presentation.ThreadPage]


@dataclasses.dataclass(frozen=True)
class Listing:
    """A listing and the comments that stay in it during the whole test."""

    name: str
    read: Read
    stays: frozenset[str]


@pytest.fixture
def ranked_rows(store: connection.Store, site: records.Site) -> dict[str, records.Comment]:
    """A compacted thread with votes and therefore with a ranking."""
    rows = sample_threads.grow(site, TREE)
    for n in range(1, 5):
        _vote(site, f"voted {n}", n)
    folded = compactor.compact(SCHEME, sample_threads.name_of(site))
    assert folded is not None
    return rows


def _vote(site: records.Site, text: str, up: int) -> None:
    """Import a discussion with the given upvotes."""
    node = records.ImportedComment(
        id=comment_rows.comment_id(hashlib.sha256(text.encode()).digest()),
        reply_to=None,
        author=records.Author("Ann"),
        body=text,
        html=text,
        renderer="test",
        status=records.Status.APPROVED,
        created=sample_threads.START,
        source=f"test:{text}",
        up=up,
    )
    sample_threads.store_imported(sample_threads.name_of(site), node)


def _listings(site: records.Site, rows: dict[str, records.Comment]) -> Iterator[Listing]:
    name = sample_threads.name_of(site)
    whole = ordered_query.thread(name)

    def of(order: ListingOrder, parent: str | None = None) -> Read:
        return lambda asked: listings.page(SCHEME, name, asked, order=order, parent=parent)

    everything = frozenset(row.id for row in whole)
    for order in ListingOrder:
        yield Listing(order, of(order), everything)
    roots = frozenset(row.id for row in whole if row.level == 0)
    yield Listing("roots", of(ListingOrder.THREAD, ordered_query.ROOTS), roots)
    children = frozenset(row.id for row in whole if row.parent == rows["1"].id)
    yield Listing("children", of(ListingOrder.THREAD, rows["1"].id), children)
    below = frozenset({rows[text].id for text in ("1.1", "1.1.1", "1.2")})
    yield Listing("replies", lambda asked: listings.replies(rows["1"].id, asked), below)
    target = rows["2.1.1"]

    def around(asked: thread_pages.PageRequest) -> presentation.ThreadPage:
        if asked.cursor is None:
            return listings.around(SCHEME, name, target.id, asked)
        return listings.page(SCHEME, name, asked)

    behind = (row.id for row in whole if row.sort_hash >= target.sort_hash)
    yield Listing("around", around, frozenset(behind))


def _ids(page: presentation.ThreadPage) -> list[str]:
    return [json.loads(fragment)["id"] for fragment in page.comments]


def _walk(listing: Listing) -> list[str]:
    """Return all ids in a listing by paging through it."""
    page = listing.read(thread_pages.PageRequest(3, None, SECRET))
    found = _ids(page)
    while page.cursor is not None:
        page = listing.read(thread_pages.PageRequest(3, page.cursor, SECRET))
        found += _ids(page)
        assert len(found) < 500, "paging does not end"
    return found


class Race:
    """Writers, a compactor and a reader for each listing, which all start at the same time."""

    def __init__(
        self, store: connection.Store, site: records.Site, rows: dict[str, records.Comment]
    ) -> None:
        self.store, self.site, self.rows = store, site, rows
        self.listings = list(_listings(site, rows))
        self.began = threading.Barrier(WRITERS + len(self.listings) + 1)
        self.written = threading.Event()

    def write(self, number: int) -> None:
        with self.store.context():
            self.began.wait(60)
            parents = [None, self.rows["1"].id, self.rows[f"{number % 4 + 1}.1"].id]
            mine = sample_threads.post(self.site, f"w{number}", parents[number % 3])
            _edit(self.rows[f"{number % 4 + 1}.2"], number)
            if number % 2:
                own_comment.retract(
                    mine.id, author_id=mine.author.id, revision=None, now=sample_threads.START
                )

    def compact(self) -> None:
        with self.store.context():
            self.began.wait(60)
            for number in range(FOLDINGS):
                _vote(self.site, f"later {'abcdefgh'[number]}", number)
                compactor.compact(SCHEME, sample_threads.name_of(self.site))

    def read(self, listing: Listing) -> list[list[str]]:
        """Page through a listing until everything is written, and then once more."""
        walks: list[list[str]] = []
        took = 0.0
        with self.store.context():
            self.began.wait(60)
            is_last = False
            while not is_last:
                # Readers that never wait would leave the other threads no interpreter time.
                is_last = self.written.wait(max(0.02, REST * took))
                began = time.monotonic()
                walks.append(_walk(listing))
                took = time.monotonic() - began
        return walks

    def run(self) -> Iterator[tuple[Listing, list[str]]]:
        """Yield each listing with each of its passes."""
        with ThreadPoolExecutor(WRITERS + len(self.listings) + 1) as pool:
            readers = [pool.submit(self.read, listing) for listing in self.listings]
            writers = [pool.submit(self.write, number) for number in range(WRITERS)]
            writers.append(pool.submit(self.compact))
            try:
                for each in writers:
                    each.result()
            finally:
                self.written.set()
            for listing, reader in zip(self.listings, readers, strict=True):
                yield from ((listing, walk) for walk in reader.result())


@pytest.mark.slow
def test_while_50_threads_write_each_staying_comment_is_shown_once_in_every_listing(
    open_store: connection.Store,
    site: records.Site,
    ranked_rows: dict[str, records.Comment],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compaction.small_buckets(monkeypatch, 4, 4)
    monkeypatch.setattr(ranking, "TOP_ROWS", 5)
    # This test does not limit the wait of the slowest of the 50 writers.
    open_store.deadline = 300.0
    walked = set()
    for listing, walk in Race(open_store, site, ranked_rows).run():
        counts = Counter(walk)
        assert [each for each in counts if counts[each] > 1] == [], listing.name
        assert listing.stays <= counts.keys(), listing.name
        walked.add(listing.name)
    assert walked == {*ListingOrder, "roots", "children", "replies", "around"}


def _edit(row: records.Comment, number: int) -> None:
    own_comment.edit(
        row.id,
        author_id=row.author.id,
        body=f"edited {number}",
        revision=None,
        settings=sample_threads.SETTINGS,
        now=sample_threads.START,
    )


@pytest.mark.slow
def test_a_cursor_of_any_other_listing_is_refused(
    site: records.Site, ranked_rows: dict[str, records.Comment], client: flask.testing.FlaskClient
) -> None:
    sample_threads.post(site, "elsewhere", thread="other")
    sample_threads.post(site, "elsewhere too", thread="other")
    thread = "/api/v1/sites/demo/comments?limit=1&thread="
    urls = [f"{thread}page&order={order}" for order in ListingOrder]
    urls += [f"{thread}page&parent=root", f"{thread}page&parent={ranked_rows['1'].id}"]
    urls += [f"/api/v1/comments/{ranked_rows[text].id}/replies?limit=1" for text in ("1", "2")]
    urls += [f"{thread}other&order={order}" for order in ListingOrder]
    held = {url: client.get(url).get_json()["cursor"] for url in urls}
    assert all(held.values())
    for url in urls:
        for other, cursor in held.items():
            if other != url:
                _assert_refused(client.get(f"{url}&cursor={cursor}"), 400, "cursor")
        for garbage in ("x", "x.y", held[url][:-1], held[url][1:], "%C3%A9"):
            _assert_refused(client.get(f"{url}&cursor={garbage}"), 400, "cursor")


def test_invalid_limits_orders_and_parents_are_refused_by_name(
    site: records.Site, ranked_rows: dict[str, records.Comment], client: flask.testing.FlaskClient
) -> None:
    foreign = sample_threads.post(site, "elsewhere", thread="other").id
    own, thread = ranked_rows["1"].id, "/api/v1/sites/demo/comments?thread=page"
    for order in ListingOrder:
        for limit in ("0", "201", "-1", "x", ""):
            _assert_refused(client.get(f"{thread}&order={order}&limit={limit}"), 400, "limit")
        if order is not ListingOrder.THREAD:
            for parent in ("root", own, foreign):
                _assert_refused(
                    client.get(f"{thread}&order={order}&parent={parent}"), 400, "parent"
                )
            _assert_refused(client.get(f"{thread}&order={order}&around={own}"), 400, "order")
    _assert_refused(client.get(f"{thread}&order=worst"), 400, "order")
    _assert_refused(client.get(f"{thread}&parent=x"), 400, "parent")
    _assert_refused(client.get(f"{thread}&around={own}&cursor=x"), 400, "cursor")
    _assert_refused(client.get(f"{thread}&around={own}&parent=root"), 400, "parent")
    for name in ("parent", "around"):
        _assert_refused(client.get(f"{thread}&{name}={foreign}"), 400, name)
        assert client.get(f"{thread}&{name}={'a' * 26}").status_code == 404


def _assert_refused(answer: test.TestResponse, status: int, field: str) -> None:
    assert (answer.status_code, answer.get_json()["field"]) == (status, field)


def test_every_comment_with_replies_can_be_continued_below(
    site: records.Site, ranked_rows: dict[str, records.Comment], client: flask.testing.FlaskClient
) -> None:
    thread = "/api/v1/sites/demo/comments?thread=page"
    for shown in client.get(thread).get_json()["comments"]:
        below = client.get(f"/api/v1/comments/{shown['id']}/replies").get_json()["comments"]
        assert len(below) == shown["replies"]
        children = client.get(f"{thread}&parent={shown['id']}").get_json()["comments"]
        assert sum(1 + child["replies"] for child in children) == shown["replies"]
