"""A site's freshness setting decides how long a process may show a page without a new probe.

Two processes serve one store: `quick` has the response cache, `plain` calls Flask for every
request. The tests advance both clocks.
"""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comments import app as apps
from comments import config
from comments.domain import records
from comments.reading.compaction import compactor
from comments.reading.materialized import view_cache
from comments.sites import site_settings
from comments.store import connection
from datastore_emulator import inprocess, testing
from tests.conftest import ROOT
from tests.support import datastores
from tests.support.people import api_requests
from tests.support.threads import cache_twins, compaction, sample_threads
from tests.support.threads.cache_twins import PAGE, SITE

N = 5
ALL = f"{PAGE}&limit=all"
EMBED = "/embed/demo?thread=page"
PAGES = [PAGE, ALL, EMBED]
RELOAD = {"Cache-Control": "max-age=0"}


@pytest.fixture(params=["quick", "plain"])
def reader(request: pytest.FixtureRequest, fresh: None) -> cache_twins.Process:
    """The process that serves readers."""
    found: cache_twins.Process = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def writer(
    datastore: datastores.Datastore, settings: config.Settings, fresh: None
) -> cache_twins.Process:
    """A second process, which handles other people's writes."""
    return cache_twins.Process(datastore, settings)


@pytest.fixture
def fresh(several: cache_twins.Rows, open_store: connection.Store) -> None:
    """Let the site accept pages that are up to N seconds old."""
    with open_store.context():
        site_settings.change("demo", freshness=N)


def post(process: cache_twins.Process, text: str, thread: str = "page") -> dict[str, Any]:
    return api_requests.answer(
        process.client.post(f"{SITE}?thread={thread}", json={"name": "Ann", "body": text})
    )


def page(process: cache_twins.Process, url: str = PAGE, **headers: str) -> str:
    response = process.client.get(url, headers=headers)
    assert response.status_code == 200
    return response.text


@pytest.mark.parametrize("url", [*PAGES, f"{PAGE}&order=best", f"{PAGE}&order=recent&limit=3"])
@pytest.mark.parametrize("uncompacted", [0, 2])
def test_within_the_freshness_a_process_makes_no_store_calls(
    engine: inprocess.Engine, reader: cache_twins.Process, url: str, uncompacted: int
) -> None:
    for number in range(uncompacted):
        post(reader, f"not compacted {number}")
    tag = [reader.client.get(url).headers["ETag"] for _ in range(2)][-1]

    def cost() -> tuple[int, int, int]:
        with testing.meter(engine) as met:
            for headers in ({}, {"If-None-Match": tag}):
                assert reader.client.get(url, headers=headers).headers["ETag"] == tag
        return met.reads, met.empty, met.bytes_in

    reader.now += N - 1
    assert cost() == (0, 0, 0)
    reader.now += 1
    found = 1 if uncompacted else 0
    assert cost()[:2] == (found, 1 - found)  # Only the first of two requests probes


@pytest.mark.parametrize("url", PAGES)
def test_a_change_by_another_process_is_visible_after_the_freshness(
    reader: cache_twins.Process, writer: cache_twins.Process, url: str
) -> None:
    before = page(reader, url)
    reader.now += 1
    post(writer, "by another")
    reader.now += N - 2
    assert page(reader, url) == before
    reader.now += 1
    assert page(reader, f"{ALL}").count("by another") == 1
    assert page(reader, url) != before


@pytest.mark.parametrize("url", PAGES)
def test_a_process_shows_its_own_changes_at_once(reader: cache_twins.Process, url: str) -> None:
    before = page(reader, url)
    posted = post(reader, "first words")
    after = page(reader, url)
    assert after != before
    one, mine = api_requests.ONE + posted["comment"]["id"], api_requests.bearer(posted)
    assert reader.client.patch(one, json={"body": "second words"}, headers=mine).status_code == 200
    assert "first words" not in page(reader, url)
    assert page(reader, ALL).count("second words") == 1
    assert reader.client.delete(one, headers=mine).status_code == 200
    assert "second words" not in page(reader, url)
    assert page(reader, ALL).count("second words") == 0


def test_a_change_in_one_thread_does_not_affect_others(
    engine: inprocess.Engine, reader: cache_twins.Process
) -> None:
    page(reader)
    post(reader, "elsewhere", thread="other")
    with testing.meter(engine) as cost:
        page(reader)
    assert cost.bytes_in == 0


@pytest.mark.parametrize("said", ["max-age=0", "no-cache", "No-Cache, x=1", "private,max-age = 0"])
def test_a_reload_shows_every_change_and_later_readers_get_no_older_page(
    reader: cache_twins.Process, writer: cache_twins.Process, said: str
) -> None:
    before = page(reader)
    post(writer, "by another")
    for other in ("max-age=60", "max-age=01", "x-no-cache=1"):
        assert page(reader, **{"Cache-Control": other}) == before
    assert "by another" in page(reader, **{"Cache-Control": said})
    assert "by another" in page(reader)


def test_an_old_probe_is_never_combined_with_a_newer_directory(
    reader: cache_twins.Process, writer: cache_twins.Process
) -> None:
    page(reader)
    reader.now += view_cache.CACHE_MAX_AGE - 1  # One second before the directory is read again
    gone = post(reader, "is taken back")
    assert "is taken back" in page(reader)
    one, mine = api_requests.ONE + gone["comment"]["id"], api_requests.bearer(gone)
    assert writer.client.delete(one, headers=mine).status_code == 200
    post(writer, "comes after that")
    cache_twins.compact(writer)
    reader.now += 2
    assert ("is taken back" in page(reader)) != ("comes after that" in page(reader))


def test_without_freshness_every_page_makes_its_own_probe(
    engine: inprocess.Engine, reader: cache_twins.Process, writer: cache_twins.Process
) -> None:
    with reader.store.context():
        site_settings.change("demo", freshness=0)
    page(reader)
    with testing.meter(engine, testing.Pricing.STRICT) as cost:
        page(reader)
    assert cost.reads == 1
    post(writer, "by another")
    assert "by another" in page(reader)


def test_the_page_around_a_comment_of_another_process_shows_it(
    reader: cache_twins.Process, writer: cache_twins.Process
) -> None:
    page(reader)
    posted = post(writer, "by another")
    url = f"{PAGE}&around={posted['comment']['id']}"
    assert "by another" in page(reader, url)


def test_a_probe_in_progress_during_a_commit_of_this_process_is_not_reused(
    datastore: datastores.Datastore, settings: config.Settings, fresh: None
) -> None:
    reached, committed = threading.Event(), threading.Event()
    held: list[str] = []

    def interceptor(method: str, _: Any, proceed: Callable[[], Any]) -> Any:
        answer = proceed()
        if method == "RunQuery" and held == ["armed"]:
            held.append("used")
            reached.set()
            assert committed.wait(60)
        return answer

    store = datastore.connect(interceptor)
    app = apps.create_app(settings, store)
    assert app.test_client().get(PAGE).status_code == 200
    with store.context():
        compaction.forget()  # Makes the next page probe
    held.append("armed")
    slow = threading.Thread(target=lambda: app.test_client().get(PAGE))
    slow.start()
    assert reached.wait(60)
    sent = {"name": "Ann", "body": "while it was probed"}
    assert app.test_client().post(PAGE, json=sent).status_code == 201
    committed.set()
    slow.join()
    assert "while it was probed" in app.test_client().get(PAGE).text


class TwoProcesses:
    """Two processes with one clock, and the oldest state that each process may show."""

    name = records.ThreadName("demo", "page")

    def __init__(self, datastore: datastores.Datastore) -> None:
        self.both = [cache_twins.Process(datastore, sample_threads.SETTINGS) for _ in range(2)]
        self.now = 0.0
        self.written = [(-N, 1)]  # Time of a write, new number of comments.
        self.least = [1, 1]  # Number of comments that each process wrote or showed.
        self.folded: list[compactor.CompactionResult] = []
        with self.both[0].store.context():
            site = site_settings.add(
                "demo", [], scheme=sample_threads.SETTINGS.scheme, now=sample_threads.START
            )
            sample_threads.post(site, "first")
            compaction.whole(self.name)
            site_settings.change("demo", freshness=N)

    def wait(self, seconds: float) -> None:
        self.now += seconds
        for each in self.both:
            each.now = self.now

    def post(self, which: int) -> None:
        post(self.both[which], f"words {len(self.written)}")
        self.written.append((self.now, self.written[-1][1] + 1))  # type: ignore[arg-type]
        self.least[which] = self.written[-1][1]

    def compact(self, which: int) -> None:
        with self.both[which].store.context():
            self.folded += filter(
                None, [compactor.compact(sample_threads.SETTINGS.scheme, self.name)]
            )

    def clear(self, which: int) -> None:
        self.wait(compactor.GRACE)
        with self.both[which].store.context():
            for each in self.folded:
                compactor.clear(each)
        self.folded.clear()

    def read(self, which: int, headers: dict[str, str]) -> None:
        shown = api_requests.answer(
            self.both[which].client.get(f"{PAGE}&limit=200", headers=headers)
        )
        old = max(count for at, count in self.written if at <= self.now - N)
        newest = self.written[-1][1]
        expected = newest if headers else max(old, self.least[which])
        assert expected <= shown["total"] == len(shown["comments"]) <= newest
        self.least[which] = shown["total"]


STEP = st.sampled_from(["post", "read", "read", "read", "reload", "wait", "compact", "clear"])


@pytest.mark.embedded
@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(steps=st.lists(st.tuples(STEP, st.integers(0, 1), st.integers(1, 4)), min_size=5))
def test_no_page_is_older_than_allowed_or_than_what_its_process_wrote_or_showed(
    steps: list[tuple[str, int, int]],
) -> None:
    with inprocess.open_engine(None, indexes=ROOT / "index.yaml") as engine:
        processes = TwoProcesses(datastores.Embedded(engine))
        for step, which, seconds in steps:
            match step:
                case "wait":
                    processes.wait(seconds)
                case "read" | "reload":
                    processes.read(which, RELOAD if step == "reload" else {})
                case _:
                    getattr(processes, step)(which)
