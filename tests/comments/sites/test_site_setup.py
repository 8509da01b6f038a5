"""Test what is stored about the pages that ask for a site's comments."""

from datetime import UTC, datetime, timedelta

import flask
import pytest

from comments import errors
from comments.domain import records
from comments.sites import site_settings, site_setup
from comments.store import connection
from comments.store.memory import per_process
from datastore_emulator import inprocess, testing
from tests.support.threads import sample_threads

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)
OWN = "https://blog.example"
pytestmark = pytest.mark.usefixtures("store")


@pytest.fixture
def blog(store: connection.Store) -> records.Site:
    return site_settings.add("blog", [OWN], scheme=sample_threads.SETTINGS.scheme, now=NOW)


def test_the_first_view_of_a_new_site_is_noted(blog: records.Site) -> None:
    site_setup.begin("blog")
    site_setup.note(blog, OWN, now=NOW)
    assert site_setup.get("blog") == site_setup.SiteSetup(origin=OWN, first=NOW, last=NOW)
    site_setup.finish("blog")
    site_setup.begin("blog")
    assert site_setup.get("blog").is_done


def test_a_site_from_before_this_kind_has_a_finished_setup(blog: records.Site) -> None:
    assert site_setup.get("blog").is_done
    site_setup.note(blog, OWN, now=NOW)
    assert site_setup.get("blog").is_done


@pytest.mark.embedded
def test_views_are_written_once_a_day_and_process(
    blog: records.Site, store: connection.Store, engine: inprocess.Engine
) -> None:
    def written(now: datetime) -> int:
        with testing.meter(engine) as cost:
            site_setup.note(blog, OWN, now=now)
        return cost.writes

    assert [written(NOW) for _ in range(3)] == [1, 0, 0]
    per_process.fresh_process(store)
    assert written(NOW + DAY / 2) == 0
    per_process.fresh_process(store)
    assert written(NOW + DAY) == 1
    assert site_setup.get("blog").first == NOW


def test_origins_that_are_not_listed_are_bounded(
    blog: records.Site, store: connection.Store
) -> None:
    sent = [f"https://{number}.example" for number in range(9)]
    for origin in sent:
        site_setup.note(blog, origin, now=NOW)
    wrong = [each.origin for each in site_setup.get("blog").wrong]
    assert wrong == sent[4::-1]
    per_process.fresh_process(store)
    site_setup.note(blog, sent[8], now=NOW)
    wrong = [each.origin for each in site_setup.get("blog").wrong]
    assert wrong == [sent[8], *sent[4:0:-1]]


@pytest.mark.parametrize(
    "origin", ["<script>", "https://a b", "https://Blog.Example", "x" * 301, "", "https://b.c/d"]
)
def test_what_no_browser_sends_is_not_stored(blog: records.Site, origin: str) -> None:
    site_setup.note(blog, origin, now=NOW)
    assert site_setup.of(["blog"]) == {}


def test_an_origin_is_shown_for_a_week_or_until_it_is_listed(blog: records.Site) -> None:
    for origin in ("null", "https://new.example"):
        site_setup.note(blog, origin, now=NOW)
    setup = site_setup.get("blog")

    def shown(site: records.Site, now: datetime) -> list[str]:
        return [each.origin for each in setup.wrong_of(site, now=now)]

    assert shown(blog, NOW) == ["https://new.example", "null"]
    assert shown(blog, NOW + 7 * DAY) == []
    listed = site_settings.change("blog", added_origins=["https://new.example"])
    assert shown(listed, NOW) == ["null"]
    site_setup.note(listed, "https://new.example", now=NOW)
    assert site_setup.get("blog").origin == "https://new.example"


def test_a_page_that_asks_for_comments_is_noted_and_nothing_else(
    app: flask.Flask, blog: records.Site
) -> None:
    client = app.test_client()
    comments = "/api/v1/sites/blog/comments?thread=t"

    def noted(path: str, **headers: str) -> list[str]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        client.get(path, headers=named)
        return [each.origin for each in site_setup.get("blog").wrong]

    assert noted(comments) == []
    assert noted(comments, Origin="https://a.example", Sec_Fetch_Site="same-origin") == []
    assert noted("/api/v1/sites/blog/counts?thread=t", Origin="https://a.example") == []
    client.post(comments, json={}, headers={"Origin": "https://a.example"})
    assert noted(comments, Origin="https://b.example") == ["https://b.example"]
    assert client.get("/api/v1/sites/nothing/comments?thread=t", headers={"Origin": OWN})
    assert site_setup.of(["nothing"]) == {}


def test_a_view_succeeds_if_it_cannot_be_noted(
    app: flask.Flask, blog: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise errors.Overloaded("a test")

    monkeypatch.setattr(site_setup, "_change", fail)
    path, headers = "/api/v1/sites/blog/comments?thread=t", {"Origin": OWN}
    assert app.test_client().get(path, headers=headers).status_code == 200
    monkeypatch.undo()
    app.test_client().get(path, headers=headers)
    assert site_setup.get("blog").origin == OWN
