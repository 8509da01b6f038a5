"""Pages of a long thread stay within their cost limits, whatever its length.

The engine's meter counts the operations that Datastore would bill, for JSON and HTML. Under the
strict interpretation of the price, a probe without results costs one more read (`empty`). The
benchmarks' shortcut loads the thread; a different test compares the shortcut with an import. The
tests share the thread, so a test that posts also compacts its posts. `COSTS_COMMENTS` sets its
length.
"""

import dataclasses
import os
from collections.abc import Callable, Iterator

import flask.testing
import pytest

from benchmarks.threads import conversations, loading
from comments import app as apps
from comments.domain import records
from comments.reading.materialized import directories, view_cache
from comments.reading.thread_pages import ListingOrder
from comments.sites import site_settings
from comments.store import connection
from comments.threads import thread_cache
from comments.tree.lists import listed_comments, ordered_query
from comments.web.http import responses
from datastore_emulator import inprocess, testing
from tests.conftest import ROOT
from tests.support.threads import compaction, large_thread, sample_threads

pytestmark = [pytest.mark.slow, pytest.mark.embedded]

API = "/api/v1/sites/{site}/comments"
FORMS = {"json": API, "html": "/embed/{site}", "fragment": "/embed/{site}/fragment"}
NAME = loading.NAME
COMMENTS = int(os.environ.get("COSTS_COMMENTS", "4000"))
# A first page reads only the directory, which contains the page; other rows also need one bucket.
FIRST, COLD = 1, 2


@dataclasses.dataclass(frozen=True)
class LargeThread:
    """A store with one large, compacted and cleared thread."""

    engine: inprocess.Engine
    store: connection.Store
    client: flask.testing.FlaskClient
    site: records.Site
    ids: list[str]

    def forget(self) -> None:
        """Empty all caches except the site's copy, as after a restart."""
        for each in (view_cache.HOLDINGS, responses.PAGES, thread_cache.COPIES):
            each.forget(self.store)

    def url(self, form: str, query: str = "") -> str:
        path = FORMS[form].format(site=NAME.site)
        return f"{path}?thread={NAME.id}{query}"

    def cost(self, url: str) -> testing.Reading:
        """Return a request's billed reads; check that the request writes nothing."""
        with testing.meter(self.engine) as cost:
            response = self.client.get(url)
        assert response.status_code == 200, response.text
        assert (cost.writes, cost.deletes) == (0, 0)
        return cost

    def cold(self, url: str) -> int:
        """Return a request's billed reads in a cold process; its single probe may find no rows.

        Rows from the ordered query need a second probe, which proves that the rows match the
        counters.
        """
        self.forget()
        cost = self.cost(url)
        is_flat = any(each in url for each in ("order=oldest", "order=newest", "parent="))
        assert cost.empty <= 1 + is_flat
        return cost.reads

    def settle(self) -> None:
        with self.store.context():
            compaction.whole(NAME)
        self.forget()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LargeThread]:
    path = large_thread.copied(tmp_path_factory, COMMENTS)
    with inprocess.open_engine(path, indexes=ROOT / "index.yaml", durability="fast") as engine:
        store = connection.Store(inprocess.Channel(engine), project=loading.PROJECT)
        with store.context():
            site = site_settings.get(NAME.site)
        # The service runs without a worker, because a worker would compact rows that tests leave
        # uncompacted.
        client = apps.create_app(sample_threads.SETTINGS, store).test_client()
        ids = conversations.ids(COMMENTS)
        made = LargeThread(engine, store, client, site, ids)
        made.client.get(made.url("json"))  # Caches the site
        yield made


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("query", "least", "most"),
    [("", FIRST, FIRST), ("&limit=51", COLD, COLD), ("&order=recent", COLD, COLD + 1)],
)
def test_a_first_page_of_a_settled_thread_costs_two_reads_cold_and_none_warm(
    large: LargeThread, form: str, query: str, least: int, most: int
) -> None:
    """A page in the directory costs one read; `newest` may begin in the second-to-last bucket."""
    url = large.url(form, query)
    assert least <= large.cold(url) <= most
    warm = large.cost(url)
    assert (warm.reads, warm.empty, warm.small) == (0, 1, 0)


@pytest.mark.parametrize("form", FORMS)
def test_a_first_page_of_best_costs_at_most_three_reads_cold_and_none_warm(
    large: LargeThread, form: str
) -> None:
    """A ranking of more than 1,000 discussions is not in the directory and costs one read."""
    url = large.url(form, "&order=best")
    assert 2 <= large.cold(url) <= 3
    warm = large.cost(url)
    assert (warm.reads, warm.empty) == (0, 1)
    with large.store.context():
        assert directories.load_directory(NAME).content.best is not None


@pytest.mark.parametrize("order", ["thread", "recent"])
def test_a_page_by_number_costs_three_reads_wherever_it_is(large: LargeThread, order: str) -> None:
    pages = len(large.ids) // 50
    for number in (2, pages // 3, pages // 2, pages - 1):
        assert 2 <= large.cold(large.url("json", f"&order={order}&page={number}")) <= 3


@pytest.mark.parametrize("newest_first", [False, True])
def test_a_page_by_time_at_any_offset_equals_a_plain_sort_and_costs_three_reads(
    large: LargeThread, *, newest_first: bool
) -> None:
    """The directory, at most two probes, a skip within one chunk; and each comment with its bucket.

    The limit of 1 leaves two comments to read: the page's, and the next one for the cursor.
    """
    with large.store.context():
        rows = ordered_query.thread(NAME)
    plain = sorted(rows, key=lambda row: (row.created, row.sort_hash), reverse=newest_first)
    order = "newest" if newest_first else "oldest"
    for offset in (0, 999, 1_000, len(rows) // 2, len(rows) - 1):
        url = large.url("json", f"&order={order}&offset={offset}&limit=1")
        comments, bucket = min(2, len(rows) - offset), 1
        cost = large.cold(url)
        assert cost <= 3 + comments + bucket
        (shown,) = large.client.get(url).get_json()["comments"]
        assert (shown["id"], shown["position"]) == (plain[offset].id, offset + 1)


def test_a_cursor_deep_in_an_order_by_time_keeps_its_position(large: LargeThread) -> None:
    for order in ("oldest", "newest"):
        url = large.url("json", f"&order={order}&limit=2")
        page = large.client.get(f"{url}&offset={len(large.ids) // 2}").get_json()
        assert large.cold(f"{url}&cursor={page['cursor']}") <= 10
        following = large.client.get(f"{url}&cursor={page['cursor']}").get_json()
        assert following["first"] == page["last"] + 1


@pytest.mark.parametrize("form", FORMS)
def test_the_page_around_any_comment_costs_three_reads(large: LargeThread, form: str) -> None:
    for place in (0, len(large.ids) // 3, len(large.ids) // 2, len(large.ids) - 1):
        assert 2 <= large.cold(large.url(form, f"&around={large.ids[place]}")) <= 3


@pytest.mark.parametrize("form", FORMS)
def test_uncompacted_rows_cost_one_probe_and_one_read_each(large: LargeThread, form: str) -> None:
    url = large.url(form)
    try:
        for number in range(5):
            with large.store.context():
                sample_threads.post(
                    large.site, f"{form} {number}", large.ids[number], thread=NAME.id
                )
        assert large.cold(url) == COLD + 1 + 5
        warm = large.cost(url)
        assert (warm.reads, warm.empty) == (1, 0)
        for number in range(3):
            with large.store.context():
                sample_threads.post(
                    large.site, f"{form} more {number}", large.ids[0], thread=NAME.id
                )
            assert large.cost(url).reads == 1 + 1
            assert large.cost(url).reads == 1
    finally:
        large.settle()


def test_a_page_after_any_cursor_costs_at_most_three_reads(large: LargeThread) -> None:
    """A request reads the directory and the two buckets that can contain the page's rows."""
    url = large.url("json")
    with large.store.context():
        middle = listed_comments.by_id(large.ids[len(large.ids) // 2])
    cursor = large.client.get(large.url("json", f"&around={middle.id}")).get_json()["cursor"]
    for _ in range(3):
        assert large.cold(f"{url}&cursor={cursor}") <= 3
        cursor = large.client.get(f"{url}&cursor={cursor}").get_json()["cursor"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("order", list(ListingOrder))
def test_no_order_writes(large: LargeThread, form: str, order: str) -> None:
    large.cold(large.url(form, f"&order={order}&limit=5"))  # `cost` fails if the request writes


READS: list[Callable[[LargeThread], str]] = [
    lambda large: large.url("json", "&parent=root&limit=20"),
    lambda large: large.url("json", f"&parent={large.ids[0]}&limit=20"),
    lambda large: f"/api/v1/comments/{large.ids[0]}/replies",
    lambda large: f"/api/v1/comments/{large.ids[-1]}",
    lambda large: large.url("html", f"&below={large.ids[0]}"),
]


@pytest.mark.parametrize("read", range(len(READS)))
def test_no_other_listing_writes(large: LargeThread, read: int) -> None:
    large.cold(READS[read](large))
