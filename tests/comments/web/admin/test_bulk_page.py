"""A moderator decides about all comments of a filter in the console, and takes it back."""

import re
from datetime import UTC, datetime, timedelta

import flask
import pytest

from comments.domain import records
from comments.domain.records import Status, Verb
from comments.moderation import bulk_decisions, decisions
from comments.sites import site_settings
from comments.store import connection
from tests.support.html import html_validator
from tests.support.people import account_holders
from tests.support.people.account_holders import moderator
from tests.support.people.console_browser import DESK, Desk
from tests.support.threads import sample_threads

ADA = records.Actor("cli", "Ada")
NOW = sample_threads.START


@pytest.fixture
def desk(app: flask.Flask, store: connection.Store, site: records.Site) -> Desk:
    account_holders.account("bob", moderator())
    return Desk(app, "bob")


@pytest.fixture
def held(desk: Desk, site: records.Site) -> list[records.Comment]:
    rows = [sample_threads.post(site, f"text {number}") for number in range(3)]
    return [decisions.decide(site.id, row.id, Verb.HOLD, ADA, now=NOW) for row in rows]


def _asked(page: str) -> str:
    found = re.search(r'name="asked" value="([^"]+)"', page)
    assert found
    return found[1]


def _begin(desk: Desk, query: str = "", act: str = "approve") -> str:
    """Start a job through the form; return the address of its page."""
    asked = _asked(desk.page(f"/queue/all{query}"))
    desk.settle(f"/queue/all{query}", act=act, asked=asked, reason="fine")
    return f"/queue/jobs/{bulk_decisions.jobs('demo')[0].id}"


def _run() -> None:
    (job, *_) = bulk_decisions.jobs("demo")
    bulk_decisions.go_on("demo", job.id, now=datetime.now(UTC))


def _statuses(rows: list[records.Comment]) -> list[Status]:
    return [decisions.case("demo", row.id).comment.status for row in rows]


def test_all_comments_of_a_filter_are_decided_about_and_restored(
    desk: Desk, held: list[records.Comment]
) -> None:
    asked = desk.page("/queue/all")
    assert "3 comments match this filter:" in asked
    assert "Approve (3)" in asked
    pages = [asked, desk.page("/queue/all?q=text+1")]
    assert "All comments that match" in pages[1]
    path = _begin(desk)
    pages += [desk.page(path), desk.page("/queue/all")]
    assert "Another decision about many comments is still running." in pages[-1]
    state = desk.client.get(f"{DESK}{path}/state")
    assert state.json == {"state": "collecting", "seen": 0, "total": 0, "left": ""}
    tag = {"If-None-Match": state.headers["ETag"]}
    assert desk.client.get(f"{DESK}{path}/state", headers=tag).status_code == 304
    _run()
    assert _statuses(held) == [Status.APPROVED] * 3
    pages += [desk.page(path), desk.page("/queue/all")]
    assert "3 comments changed" in pages[-2]
    desk.settle(path, act="undo")
    _run()
    assert _statuses(held) == [Status.PENDING] * 3
    pages.append(desk.page(path))
    assert "undone, 3 of 3 restored" in pages[-1]
    assert html_validator.complaints(pages) == [[]] * len(pages)


def test_comments_that_came_after_the_question_are_left_out(
    desk: Desk, site: records.Site, held: list[records.Comment]
) -> None:
    asked = _asked(desk.page("/queue/all"))
    late = sample_threads.post(site, "late", now=datetime.now(UTC) + timedelta(seconds=1))
    late = decisions.decide("demo", late.id, Verb.HOLD, ADA, now=NOW)
    desk.settle("/queue/all", act="approve", asked=asked)
    _run()
    assert _statuses([*held, late]) == [*[Status.APPROVED] * 3, Status.PENDING]


def test_a_running_decision_is_stopped_and_none_begins_beside_it(
    desk: Desk, held: list[records.Comment]
) -> None:
    path = _begin(desk, "?q=text+1")
    now = datetime.now(UTC).isoformat()
    desk.settle("/queue/all", status=409, act="approve", asked=now)
    desk.settle(path, act="cancel")
    assert "stopped, 0 changed" in desk.page(path)
    desk.settle(path, status=409, act="cancel")
    _run()
    assert _statuses(held) == [Status.PENDING] * 3


@pytest.mark.parametrize(
    "form",
    [
        {"act": "restore", "asked": "2026-01-01T00:00:00Z"}, {"act": "approve"},
        {"act": "approve", "asked": "2026-01-01T00:00:00"}, {"act": "approve", "asked": "now"},
        {"act": "approve", "asked": "2026-01-01T00:00:00Z", "reason": "x" * 501},
    ],
)  # fmt: skip
def test_a_malformed_form_starts_nothing(desk: Desk, form: dict[str, str]) -> None:
    desk.settle("/queue/all", status=400, **form)
    assert bulk_decisions.jobs("demo") == []


def test_a_job_of_another_site_does_not_exist(desk: Desk, held: list[records.Comment]) -> None:
    path = _begin(desk)
    site_settings.add("blog", [], scheme=sample_threads.SETTINGS.scheme, now=NOW)
    for way in ("/queue/jobs/nothing", "/queue/jobs/a%20b", f"{path}x"):
        assert desk.client.get(f"{DESK}{way}").status_code == 404
    answer = desk.client.get(f"/admin/sites/blog{path}")
    assert answer.status_code == 404
