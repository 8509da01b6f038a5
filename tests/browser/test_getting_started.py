"""The first run: from a service without an owner to the first comment on a website's page."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import flask
import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments import app as apps
from comments import config
from comments.accounts import accounts
from comments.sites import page_check, site_settings, site_setup
from comments.store import connection
from tests.browser.conftest import OpenTab, Website, served
from tests.support import loopback_servers
from tests.support.html import accessibility
from tests.support.people.account_holders import PASSWORD

pytestmark = [
    pytest.mark.browser,
    pytest.mark.usefixtures("quick_passwords"),
    pytest.mark.settings(data_dir=Path("data")),
]


@pytest.fixture
def service(
    app: flask.Flask,
    open_store: connection.Store,
    settings: config.Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[str]:
    """A service that has just started, without an owner."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    with served(app) as origin:
        with open_store.context():
            site_settings.prepare_demo([], scheme=settings.scheme, now=datetime.now(UTC))
        yield origin


def _become_owner(page: playwright.Page, app: flask.Flask, service: str) -> None:
    """Find the link as the pages say, and create an account."""
    page.goto(f"{service}/admin")
    expect(page.get_by_role("heading", name="This service has no owner yet")).to_be_visible()
    assert accessibility.complaints(page) == []
    offered = apps.offer_ownership(app, service)
    assert offered
    assert offered.file
    expect(page.get_by_text(offered.file.name)).to_be_visible()
    page.goto(offered.file.read_text().strip())
    page.get_by_label("Display name").fill("Ann")
    page.get_by_label("Sign-in name").fill("ann")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("heading", name="Get started")).to_be_visible()


def _add_website(page: playwright.Page, address: str) -> None:
    page.get_by_label("Address of the website").fill(address)
    page.get_by_role("button", name="Continue").click()
    name = page.get_by_label("Short name")
    expect(name).to_be_focused()
    expect(name).to_have_value("blog")
    name.fill("blog")
    assert accessibility.complaints(page) == []
    page.get_by_role("button", name="Add website").click()
    expect(page.get_by_role("heading", name="Get started")).to_be_visible()


def _copy_lines(page: playwright.Page) -> str:
    """Choose a system with the keyboard, copy its lines, and those of a plain page."""
    page.get_by_role("radio", name="Plain HTML").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("In functions.php of a child theme")).to_be_visible()
    expect(page.get_by_text("In each page, where")).to_be_hidden()
    page.keyboard.press("ArrowLeft")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied.")).to_be_visible()
    assert accessibility.complaints(page) == []
    return str(page.evaluate("navigator.clipboard.readText()"))


def _check_primary_link(page: playwright.Page) -> None:
    link = page.get_by_role("link", name="Import comments")
    expect(link).to_have_class(re.compile("ft-primary"))
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)
        assert accessibility.complaints(page, rules=["color-contrast"]) == [], scheme


def test_from_a_new_service_to_the_first_comment(
    app: flask.Flask,
    service: str,
    website: Website,
    open_tab: OpenTab,
    open_store: connection.Store,
) -> None:
    start = open_tab(service, permissions=["clipboard-read", "clipboard-write"]).page
    expect(start.get_by_role("heading", name="This service has no owner yet")).to_be_visible()
    expect(start.get_by_text(f"{service}/widget/flatthread.js")).to_be_visible()
    _become_owner(start, app, service)
    _add_website(start, f"{website.origin.removeprefix('http://')}/post?a=b")
    lines = _copy_lines(start)
    assert lines.startswith(f'<script type="module" src="{service}/widget/flatthread.js"')
    assert f'<a href="{service}/embed/blog"' in lines
    assert lines.endswith("</div>")
    state = start.locator(".ft-state")
    expect(state).to_have_text(re.compile("Waiting for the first view."))
    # The owner leaves, and finds the step again.
    start.goto(f"{service}/admin")
    start.get_by_role("link", name="Continue the setup of blog").click()

    page = open_tab(website.put("post", f"<title>My post</title>{lines}")).page
    expect(page.get_by_text("No comments yet.")).to_be_visible()
    expect(state).to_have_text(re.compile(f"It works: a page of {re.escape(website.origin)} has"))
    expect(state).to_have_attribute("data-state", "seen")
    expect(start.locator("[aria-current=step]")).to_have_text("Comments")
    _check_primary_link(start)
    page.get_by_role("textbox", name="Comment").fill("Hello!")
    page.get_by_role("textbox", name="Name").fill("Bob")
    page.get_by_role("button", name="Post comment").click()
    expect(page.locator(".ft-body")).to_have_text("Hello!")

    start.get_by_role("button", name="Start empty").click()
    start.get_by_role("link", name="Home").click()
    expect(start.get_by_role("link", name="blog", exact=True)).to_be_visible()
    expect(start.get_by_role("link", name="Continue the setup")).to_have_count(0)
    with open_store.context():
        assert [each.login for each in accounts.staff()] == ["ann"]
        assert site_setup.get("blog").is_done


def test_a_page_at_another_address_is_found_and_added(
    app: flask.Flask,
    service: str,
    website: Website,
    open_tab: OpenTab,
    open_store: connection.Store,
) -> None:
    tab = open_tab(f"{service}/admin", viewport={"width": 390, "height": 800})
    start = tab.page
    _become_owner(start, app, service)
    start.get_by_label("Address of the website").fill("blog.example")
    start.get_by_role("button", name="Continue").click()
    start.get_by_role("button", name="Add website").click()
    shown = start.locator("pre:visible")
    expect(shown).to_have_count(1)  # Until the style sheet has arrived, all are visible.
    lines = shown.inner_text()
    wrong = open_tab(website.put("post", lines))
    wrong.expected.append("Flatthread: ")  # The same advice for the owner, in the console
    state = start.locator(".ft-state")
    expect(state).to_have_attribute("data-state", "wrong")
    expect(state).to_have_text(re.compile("at another address than you entered"))
    add = start.get_by_role("button", name=f"Add {website.origin}")
    expect(add).to_be_visible()
    assert accessibility.complaints(start) == []
    assert start.evaluate("document.documentElement.scrollWidth") <= 390
    add.click()
    expect(add).to_have_count(0)
    with open_store.context():
        assert site_settings.get("blog").origins == ("https://blog.example", website.origin)

    # A silent page is explained.
    with open_store.context(), loopback_servers.receiver(certificate="blog.example") as silent:
        silent.answer = b"<h1>No script</h1>"
        page_check.OUTBOUND.put(open_store, loopback_servers.client(silent.port))
        site_settings.change("blog", added_origins=[f"https://blog.example:{silent.port}"])
        start.get_by_label("Address of a page").fill(f"blog.example:{silent.port}/post")
        start.get_by_role("button", name="Check page").click()
        expect(start.get_by_text("The page does not contain the script.")).to_be_visible()
    assert accessibility.complaints(start) == []


def test_the_steps_work_without_javascript(
    app: flask.Flask, service: str, open_tab: OpenTab, open_store: connection.Store
) -> None:
    page = open_tab(f"{service}/admin", java_script_enabled=False).page
    offered = apps.offer_ownership(app, service)
    assert offered
    where, _, token = offered.link.partition("#")
    page.goto(where)
    page.get_by_label("Key (the part of your link").fill(token)
    page.get_by_label("Display name").first.fill("Ann")
    page.get_by_label("Sign-in name").fill("ann")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    page.get_by_label("Address of the website").fill("blog.example")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Add website").click()
    page.get_by_text("Vue", exact=True).click()
    expect(page.get_by_text("FlatComments.vue")).to_be_visible()
    expect(page.get_by_role("button", name="Copy")).to_have_count(0)
    with open_store.context():
        site = site_settings.get("blog")
        site_setup.note(site, site.origins[0], now=datetime.now(UTC))
    page.reload()
    expect(page.get_by_text("It works: a page of https://blog.example")).to_be_visible()
    page.get_by_role("button", name="Start empty").click()
    page.get_by_role("link", name="Home").click()
    expect(page.get_by_role("link", name="blog", exact=True)).to_be_visible()
