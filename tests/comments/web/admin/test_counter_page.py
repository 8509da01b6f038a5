"""Owners declare counters in the console, and see their numbers."""

import re

import pytest

from comments.domain import records
from comments.events import dispatcher
from comments.tree.counters.declared import declarations, declared_backfill, declared_reports
from comments.upkeep import wiring
from comments.web.admin.pages import counter_page
from tests.support.histories import counter_oracle
from tests.support.html import html_validator
from tests.support.people.console_browser import Desk
from tests.support.threads import sample_threads

PATH = "/counters"


@pytest.fixture
def comments(owner: Desk, site: records.Site) -> None:
    for thread in ("a", "b", "b"):
        sample_threads.post(site, "text", thread=thread)
    events = counter_oracle.events()
    dispatcher.deliver(events, now=sample_threads.START, handlers=wiring.HANDLERS)


def _numbers(page: str) -> list[tuple[str, str]]:
    return re.findall(r'<tr><td class="ft-said"><bdi>(\w+)</bdi></td><td>(\d+)</td></tr>', page)


@pytest.mark.usefixtures("comments")
def test_a_counter_is_declared_counts_existing_comments_and_is_removed(owner: Desk) -> None:
    assert "No counters yet." in owner.page(PATH)
    form = {"act": "add", "name": "by-page", "where": "status = approved, up >= 0", "thread": "on"}
    assert "Saved the counter by-page." in owner.settle(PATH, status=200, **form)
    page = owner.page(f"{PATH}?name=by-page")
    assert _numbers(page) == [("a", "1"), ("b", "2")]
    assert "Complete" in page
    assert html_validator.complaints([page]) == [[]]
    changed = {"act": "change", "name": "by-page", "where": "up >= 1", "thread": "on"}
    owner.settle(PATH, status=200, **changed)
    assert "Nothing is counted yet." in owner.page(f"{PATH}?name=by-page")
    removed = owner.settle(f"{PATH}/remove", name="by-page", status=200)
    assert "Removed the counter by-page." in removed
    assert declarations.of_site("demo").counters == ()


@pytest.mark.usefixtures("comments")
def test_the_cost_is_shown_without_declaring_the_counter(owner: Desk) -> None:
    page = owner.settle(PATH, act="cost", name="all", author="on", status=200)
    assert "The existing comments need 3 reads" in page
    assert re.search(r'name="author" value="on" checked', page)
    assert declarations.of_site("demo").counters == ()


@pytest.mark.usefixtures("comments")
def test_the_comments_of_a_large_site_are_counted_by_the_background_worker(
    owner: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counter_page, "_MOST_AT_ONCE", 2)
    page = owner.settle(PATH, act="add", name="all", status=200)
    assert "Counting existing comments" in page
    declared_backfill.complete("demo")
    counter = declarations.counter("demo", "all")
    (line,) = declared_reports.lines("demo", counter).lines
    assert line.number == 3


def test_a_wrong_condition_is_refused_at_its_field(owner: Desk) -> None:
    refused = owner.settle(PATH, act="add", name="bad", where="status like spam", status=400)
    assert 'id="where-problem"' in refused
    assert 'value="status like spam"' in refused
    owner.settle(PATH, act="add", name="A B", status=400)
    assert declarations.of_site("demo").counters == ()
    assert owner.client.get("/admin/sites/demo/counters?name=none").status_code == 404
