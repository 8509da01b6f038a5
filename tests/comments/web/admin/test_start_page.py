"""Test the page that leads through the setup of a site."""

import html
import re
from datetime import UTC, datetime

import pytest

from comments.domain import records
from comments.events import audit_log
from comments.sites import page_check, site_settings, site_setup
from comments.store import connection
from comments.web import recipes
from comments.web.admin.pages import start_page
from datastore_emulator import inprocess, testing
from tests.support import loopback_servers, programs
from tests.support.html import html_validator
from tests.support.people.console_browser import OWN, Desk

pytestmark = pytest.mark.usefixtures("site", "store")


def note(site: records.Site, origin: str) -> None:
    site_setup.note(site, origin, now=datetime.now(UTC))


def text(page: str) -> str:
    return html.unescape(re.sub(r"<[^>]*>", "", page))


def test_the_lines_of_every_system_name_this_service_and_the_site(owner: Desk) -> None:
    page = owner.page("/start")
    assert html_validator.complaints([page]) == [[]]
    assert "comments.example" not in page
    for system in recipes.SYSTEMS:
        for each in recipes.of(system, service="http://localhost", site="demo"):
            assert each.lines in text(page)
            assert "blog" not in each.lines
        made = "".join(each.lines for each in recipes.of(system, service="S", site="demo"))
        assert "S/widget/flatthread.js" in made
        assert re.search(r"data-site=\W*demo", made)


def test_the_documents_have_the_same_lines() -> None:
    docs = (programs.ROOT / "docs" / "recipes.md").read_text()
    plain = (programs.ROOT / "docs" / "embedding.md").read_text()
    for system in recipes.SYSTEMS:
        for each in recipes.of(system, service="https://comments.example", site="blog"):
            assert f"\n{each.lines}\n```\n" in (plain if system == "html" else docs)
            for code in each.codes.values():
                assert code in " ".join(docs.split()), code


def test_the_check_turns_green_when_a_page_is_seen(owner: Desk, site: records.Site) -> None:
    def told(tag: str = "") -> tuple[int, dict[str, object], str]:
        answer = owner.client.get(
            "/admin/sites/demo/start/state", headers={"If-None-Match": tag} if tag else {}
        )
        return answer.status_code, answer.json or {}, answer.headers["ETag"]

    site_setup.begin("demo")
    status, state, tag = told()
    assert (status, state["name"]) == (200, "waiting")
    assert told(tag)[0] == 304
    note(site, "https://wrong.example")
    status, state, tag = told(tag)
    assert (status, state["name"], state["wrong"]) == (200, "wrong", ["https://wrong.example"])
    page = owner.page("/start")
    assert 'data-state="wrong"' in page
    note(site, site.origins[0])
    status, state, _ = told(tag)
    assert (status, state["name"]) == (200, "seen")
    assert f"It works: a page of {site.origins[0]} has shown its comments" in owner.page("/start")


@pytest.mark.embedded
def test_the_check_costs_what_the_documents_say(owner: Desk, engine: inprocess.Engine) -> None:
    costs = (programs.ROOT / "docs" / "costs.md").read_text()
    assert "Each request costs three reads" in " ".join(costs.split())
    answer = owner.client.get("/admin/sites/demo/start/state")
    headers = {"If-None-Match": answer.headers["ETag"]}
    with testing.meter(engine) as cost:
        assert owner.client.get("/admin/sites/demo/start/state", headers=headers).status_code == 304
    assert (cost.reads, cost.writes) == (3, 0)


def test_a_seen_origin_is_added_only_by_the_owner(
    owner: Desk, desk: Desk, site: records.Site
) -> None:
    for origin in ("https://www.blog.example", "null"):
        note(site, origin)
    page = owner.page("/start")
    assert html_validator.complaints([page]) == [[]]
    assert "Add https://www.blog.example" in page
    assert "Add null" not in page
    assert "such as a file on a disk" in page
    assert site_settings.get("demo").origins == site.origins
    desk.settle("/start/origin", origin="https://www.blog.example", status=403)
    owner.settle("/start/origin", origin="https://www.blog.example")
    assert site_settings.get("demo").origins == (*site.origins, "https://www.blog.example")
    assert [each.verb for each in audit_log.log("demo")] == ["set-site"]
    assert "Add https://www.blog.example" not in owner.page("/start")
    owner.settle("/start/origin", origin="null", status=400)


def test_a_finished_setup_shows_the_lines_without_steps(owner: Desk) -> None:
    site_setup.begin("demo")
    assert 'aria-current="step"' in owner.page("/start")
    owner.settle("/start/done")
    page = owner.page("/start")
    assert 'aria-current="step"' not in page
    assert "<h1>Comments on your pages</h1>" in page


def test_the_check_of_a_page_explains_every_fault(
    owner: Desk, store: connection.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = [page_check.Finding(fault, "<b>") for fault in page_check.Fault]
    monkeypatch.setattr(page_check, "findings", lambda *_: every)
    page = owner.settle("/start/check", page="x", status=200)
    assert page.partition('role="alert"')[2].count("<li>") == len(every)
    assert "<b>" not in page
    assert html_validator.complaints([page]) == [[]]


def test_checks_of_pages_are_limited(owner: Desk, store: connection.Store) -> None:
    page_check.OUTBOUND.put(store, loopback_servers.client(resolver=lambda _host: []))
    site_settings.change("demo", origins=["https://blog.example"])
    page = owner.settle("/start/check", page="/post", status=200)
    assert "got no answer from" in page
    assert 'value="/post"' in page
    said = owner.settle("/start/check", page="https://evil.example", status=200)
    assert "The page is at https://evil.example, but" in said
    for _ in range(page_check.LIMIT.most - 2):
        owner.settle("/start/check", page="", status=400)
    assert "Too many checks." in owner.settle("/start/check", page="/post", status=429)


def test_a_form_from_elsewhere_changes_nothing(owner: Desk, site: records.Site) -> None:
    site_setup.begin("demo")
    for path, form in (("origin", {"origin": "https://evil.example"}), ("done", {})):
        for headers, token in (({}, owner.token), (OWN, "x" * 26)):
            answer = owner.client.post(
                f"/admin/sites/demo/start/{path}", data={"form": token, **form}, headers=headers
            )
            assert answer.status_code == 403
    assert site_settings.get("demo").origins == site.origins
    assert not site_setup.get("demo").is_done


@pytest.mark.parametrize(
    ("service", "origin", "is_mixed"),
    [
        ("http://comments.example", "https://blog.example", True),
        ("http://comments.example", "http://blog.example", False),
        ("https://comments.example", "https://blog.example", False),
        ("http://127.0.0.1:8080", "https://blog.example", False),
    ],
)
def test_mixed_content_is_announced(
    service: str, origin: str, *, is_mixed: bool, site: records.Site
) -> None:
    changed = site_settings.change("demo", origins=[origin])
    assert start_page._is_mixed(changed, service) is is_mixed
