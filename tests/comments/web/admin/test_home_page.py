"""Owners of the service add websites on the home page."""

import html
import re
from datetime import UTC, datetime, timedelta

import pytest

from comments.accounts import accounts, sessions
from comments.domain import records
from comments.events import dispatcher
from comments.moderation import decisions, reports
from comments.sites import site_settings, site_setup
from comments.store import transactions
from comments.upkeep import wiring
from tests.support import stored_state
from tests.support.html import html_validator
from tests.support.people.account_holders import SECRET
from tests.support.people.console_browser import OWN, Desk
from tests.support.threads import sample_threads


def add(desk: Desk, site: str, origin: str, status: int) -> str:
    data = {"form": desk.token, "short_name": site, "origin": origin}
    response = desk.client.post("/admin/sites", data=data, headers=OWN)
    assert response.status_code == status, response.text
    return response.headers.get("Location", "") if status == 303 else html.unescape(response.text)


def test_an_owner_adds_a_website_and_goes_on_with_its_setup(
    owner: Desk, site: records.Site
) -> None:
    new = owner.client.get("/admin").text
    assert "<h1>Get started</h1>" in new
    where = add(owner, " blog ", "blog.example https://www.blog.example/post/1", 303)
    assert where.endswith("admin/sites/blog/start")
    made = site_settings.get("blog")
    assert made.origins == ("https://blog.example", "https://www.blog.example")
    home = owner.client.get("/admin").text
    assert ">blog</a>" in home
    assert "Continue the setup of blog" in home
    assert "<h1>Get started</h1>" not in home
    data = {"form": owner.token}
    owner.client.post("/admin/sites/blog/start/done", data=data, headers=OWN)
    done = owner.client.get("/admin").text
    assert "Continue the setup" not in done
    assert html_validator.complaints([new, home, done]) == [[], [], []]


def test_home_shows_what_needs_a_decision_and_what_is_new(owner: Desk, site: records.Site) -> None:
    today = datetime.now(UTC)
    scheme = sample_threads.SETTINGS.scheme
    site_settings.add("alone", ["https://alone.example"], scheme=scheme, now=today)
    for age, text in ((0, "today"), (6, "six days ago"), (8, "a week ago")):
        sample_threads.post(site, text, now=today - timedelta(days=age))
    reported = sample_threads.post(site, "reported", now=today)
    report = reports.fresh(reported.id, "demo", now=today)
    report.open = 1
    transactions.transaction(lambda: transactions.apply(reports.report_writes(report)))
    decisions.decide("demo", reported.id, records.Verb.HOLD, sample_threads.ADA, now=today)
    site_setup.note(site, "https://other.example", now=today)
    events = [stored_state.name_of(each) for each in stored_state.rows("Event")]
    dispatcher.deliver(events, now=today, handlers=wiring.HANDLERS)
    page = owner.client.get("/admin").text
    numbers = re.findall(r'aria-label="(?:Pending|Reported|New in 7 days): (\d+)"', page)
    assert numbers == ["1", "1", "3"]
    assert page.index("<bdi><a") < page.index(">demo</a>") < page.index(">alone</a>")
    assert "A page of https://other.example asked for the comments of demo" in page
    assert re.search(r"Service status</a>:\s+(no problems found|[1-9] warnings?)\.", page)
    assert html_validator.complaints([page]) == [[]]


def test_home_explains_the_example_and_offers_to_delete_it(owner: Desk, site: records.Site) -> None:
    link = 'href="./admin/sites/demo/settings/delete"'
    assert link not in owner.client.get("/admin").text
    site_settings.change("demo", origins=[])
    assert link in owner.client.get("/admin").text


def test_home_counts_what_is_new_since_the_last_visit(owner: Desk, site: records.Site) -> None:
    now = datetime.now(UTC)
    for age, text in ((2, "two hours ago"), (4, "four hours ago")):
        sample_threads.post(site, text, now=now - timedelta(hours=age))

    account = accounts.by_text("ann", SECRET).id
    assert sessions.note_visit(account, now=now - timedelta(hours=3)) is None
    for _ in range(2):  # Within an hour, it is the same visit.
        assert 'aria-label="New since your last visit: 1"' in owner.client.get("/admin").text


def test_the_form_proposes_an_id_for_an_address_and_stores_nothing(
    owner: Desk, site: records.Site
) -> None:
    page = add(owner, "", "www.demo.example/post/1", 200)
    assert 'value="demo-2"' in page
    assert "Pages of https://www.demo.example will show the comments." in page
    assert html_validator.complaints([page]) == [[]]
    assert [each.id for each in site_settings.every()] == ["demo"]
    assert site_setup.of(["demo", "demo-2"]) == {}


def test_another_address_gets_another_proposal_unless_the_owner_chose_the_name(
    owner: Desk, site: records.Site
) -> None:
    data = {"form": owner.token, "origin": "news.example", "proposed": "blog"}
    again = owner.client.post("/admin/sites", data=data | {"short_name": "blog"}, headers=OWN)
    assert again.status_code == 200
    assert 'name="proposed" value="news"' in again.text
    assert "Pages of https://news.example will show the comments." in again.text
    assert [each.id for each in site_settings.every()] == ["demo"]
    own = owner.client.post("/admin/sites", data=data | {"short_name": "mine"}, headers=OWN)
    assert own.status_code == 303
    assert site_settings.get("mine").origins == ("https://news.example",)


@pytest.mark.parametrize(
    ("name", "origin", "status", "said"),
    [
        ("a b", "https://blog.example", 400, "Short name"),
        ("blog", "", 400, "The address is required."),
        ("blog", "ftp://blog.example", 400, "must be a web address such as"),
        ("", "https://me@blog.example", 400, "must be a web address such as"),
        ("blog", "blog.example:99999", 400, "must be a web address such as"),
        ("", "my blog", 400, "must be a web address such as"),
        ("blog", "https://", 400, "must be a web address such as"),
        ("demo", "https://blog.example", 409, "demo"),
    ],
)
def test_a_refused_website_is_explained_and_the_form_keeps_its_values(
    owner: Desk, site: records.Site, name: str, origin: str, status: int, said: str
) -> None:
    page = add(owner, name, origin, status)
    problem = page.partition('role="alert">')[2].partition("<")[0]
    assert said in problem
    assert f'value="{origin}"' in page
    assert [each.id for each in site_settings.every()] == ["demo"]


def test_moderators_cannot_add_websites(desk: Desk, site: records.Site) -> None:
    page = desk.client.get("/admin").text
    assert "Add website" not in page
    assert "Get started" not in page
    add(desk, "blog", "https://blog.example", 403)
    assert [each.id for each in site_settings.every()] == ["demo"]
