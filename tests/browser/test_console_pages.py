"""The layout of the admin console: what is visible, next to what, and where the focus is."""

import gzip

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.domain import records
from comments.domain.records import Verb
from comments.moderation import decisions
from comments.sites import site_settings
from comments.store import connection
from tests.browser.conftest import OpenTab, Say, Tab
from tests.browser.test_admin_console import ADA, sign_in
from tests.conftest import ROOT
from tests.support.html import accessibility
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER

pytestmark = pytest.mark.browser

LAPTOP = {"width": 1100, "height": 700}
PHONE = {"width": 390, "height": 844}
TOUCH = 40  # Pixels that a finger needs.


@pytest.fixture
def console(server: str, open_tab: OpenTab, open_store: connection.Store) -> Tab:
    """The home page in an owner's browser, with a long name in the bar."""
    login = "konstantin-alexander-of-the-night"
    with open_store.context():
        account_holders.account(login, OWNER)
    tab = open_tab(f"{server}/admin/sign-in", viewport=LAPTOP)
    sign_in(tab.page, server, login)
    return tab


def box(found: playwright.Locator) -> playwright.FloatRect:
    rectangle = found.bounding_box()
    assert rectangle is not None
    return rectangle


def is_on_screen(found: playwright.Locator) -> bool:
    """Return whether the whole element is in the visible part of the page."""
    return bool(
        found.evaluate(
            "each => { const box = each.getBoundingClientRect();"
            " return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight; }"
        )
    )


def test_saving_keeps_the_view_and_tells_which_settings_were_saved(
    console: Tab, server: str, site: records.Site, open_store: connection.Store
) -> None:
    page = console.page
    page.goto(f"{server}/admin/sites/demo/settings")
    page.get_by_text("Advanced").click()
    page.get_by_label("CDN cache time").fill("7")
    page.get_by_role("button", name="Save site").click()
    notice = page.locator("#saved-site")
    expect(notice).to_be_visible()
    assert is_on_screen(notice)
    assert is_on_screen(page.get_by_role("button", name="Save site"))
    assert page.locator(".ft-done:visible").count() == 1
    with open_store.context():
        assert site_settings.get("demo").cdn_seconds == 7
    page.get_by_role("button", name="Save moderation").click()
    expect(page.locator("#saved-moderation")).to_be_visible()
    expect(notice).to_be_hidden()
    assert accessibility.complaints(page) == []


def test_a_notice_at_the_top_does_not_hide_the_bar(console: Tab, server: str, say: Say) -> None:
    page = console.page
    say("Hello")
    page.goto(f"{server}/admin/sites/demo/thread?thread=demo")
    page.get_by_role("button", name="Save").first.click()
    expect(page.get_by_text("Saved. New comments follow this")).to_be_visible()
    assert is_on_screen(page.get_by_role("navigation"))


def test_a_label_of_a_thread_is_on_the_line_of_its_field(
    console: Tab, server: str, say: Say
) -> None:
    page = console.page
    say("Hello")
    page.goto(f"{server}/admin/sites/demo/thread?thread=demo")
    for name in ("New comments", "Moderation in this thread"):
        label = box(page.get_by_text(name, exact=True))
        field = box(page.get_by_label(name))
        assert field["y"] <= label["y"] + label["height"] / 2 <= field["y"] + field["height"]


@pytest.mark.parametrize("width", [768, 1100, 1280])
def test_the_navigation_and_the_account_are_beside_the_page(
    console: Tab, server: str, site: records.Site, width: int
) -> None:
    page = console.page
    page.set_viewport_size({"width": width, "height": 700})
    page.goto(f"{server}/admin/sites/demo/queue")
    for found in (
        page.get_by_role("link", name="Status"),
        page.get_by_role("link", name="Konstantin-alexander-of-the-night"),
        page.get_by_role("button", name="Sign out"),
    ):
        assert is_on_screen(found)
        assert box(found)["x"] + box(found)["width"] <= box(page.get_by_role("main"))["x"]
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_an_error_of_the_form_for_a_website_is_at_its_field(
    console: Tab, server: str, site: records.Site
) -> None:
    page = console.page
    console.expect_status(400)
    page.get_by_label("Address of the website").fill("https://blog.example")
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Short name").fill("Blog!")
    page.get_by_role("button", name="Add website").click()
    field = page.get_by_label("Short name")
    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description("Lowercase letters, digits and hyphens, for "
        "example blog. Your pages name the site by it. Short name must "
        "be 1 to 63 characters long and contain only a-z, 0-9 and hyphens.")  # fmt: skip
    expect(page.get_by_label("Address of the website")).to_have_value("https://blog.example")
    assert accessibility.complaints(page) == []


def test_a_refused_password_does_not_ask_for_the_key_of_the_link_again(
    server: str, open_tab: OpenTab, open_store: connection.Store
) -> None:
    with open_store.context():
        key = account_holders.invite(OWNER, first=True, now=account_holders.here())
    tab = open_tab(f"{server}/admin/welcome#{key}")
    tab.expect_status(400)
    page = tab.page
    for password, problem in (("password12", "common password"), ("correct horse", "")):
        page.get_by_label("Display name").fill("Ann")
        page.get_by_label("Sign-in name").fill("ann")
        expect(page.get_by_label("Key")).to_be_hidden()
        page.get_by_label("Password").fill(password)
        page.get_by_role("button", name="Create account").click()
        if problem:
            expect(page.get_by_role("alert")).to_contain_text(problem)
    expect(page.get_by_role("heading", name="Your sites")).to_be_visible()


def test_a_wrong_key_of_a_link_can_be_corrected(server: str, open_tab: OpenTab) -> None:
    tab = open_tab(f"{server}/admin/welcome#wrong")
    tab.expect_status(400)
    page = tab.page
    page.get_by_label("Display name").fill("Ann")
    page.get_by_label("Sign-in name").fill("ann")
    page.get_by_label("Password").fill("correct horse battery")
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("alert")).to_contain_text("not valid, has expired or was used")
    expect(page.get_by_label("Key")).to_be_visible()
    expect(page.get_by_label("Key")).to_have_value("wrong")


def test_on_a_phone_held_comments_are_in_reach(
    server: str, open_tab: OpenTab, open_store: connection.Store, say: Say
) -> None:
    with open_store.context():
        account_holders.account("bob", account_holders.moderator())
        for number in range(3):
            held = say("A text of some length, which fills several lines. " * 9, name=f"G{number}")
            decisions.decide("demo", held, Verb.HOLD, ADA, now=account_holders.here())
    page = open_tab(f"{server}/admin/sign-in", viewport=PHONE, is_mobile=True, has_touch=True).page
    sign_in(page, server)
    page.goto(f"{server}/admin/sites/demo/queue")
    first = page.locator(".ft-case").first
    assert box(first)["y"] < 200
    assert box(first)["height"] < 160
    for each in first.locator(".ft-button:visible").all():
        assert box(each)["height"] >= TOUCH
    first.get_by_role("checkbox").check()
    expect(page.get_by_role("group", name="Selected comments")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    first.get_by_role("checkbox").uncheck()
    queue = page.get_by_role("link", name="Queue")
    assert is_on_screen(queue)
    expect(queue).to_have_text("Queue 3")
    first.get_by_role("button", name="Approve").tap()
    expect(queue).to_have_text("Queue 2")
    page.get_by_role("button", name="More", exact=True).tap()
    expect(page.get_by_role("link", name="Statistics")).to_be_visible()
    assert accessibility.complaints(page) == []


def test_on_a_phone_a_button_opens_the_filters(
    server: str, open_tab: OpenTab, open_store: connection.Store, say: Say
) -> None:
    with open_store.context():
        account_holders.account("bob", account_holders.moderator())
        held = say("Cats are great")
        decisions.decide("demo", held, Verb.HOLD, ADA, now=account_holders.here())
    page = open_tab(f"{server}/admin/sign-in", viewport=PHONE, is_mobile=True, has_touch=True).page
    sign_in(page, server)
    page.goto(f"{server}/admin/sites/demo/queue")
    for reason, shown in (("rule", 0), ("moderator", 1)):
        expect(page.get_by_label("Reason", exact=True)).to_be_hidden()
        page.get_by_role("button", name="Filters").tap()
        page.get_by_label("Reason", exact=True).select_option(reason)
        assert accessibility.complaints(page) == []
        page.get_by_role("button", name="Filter", exact=True).tap()
        expect(page.get_by_role("button", name="Filters")).to_have_text("Filters 1")
        expect(page.locator(".ft-case")).to_have_count(shown)
    assert box(page.locator(".ft-case").first)["y"] < 200


def test_the_console_weighs_little() -> None:
    names = [each.name for each in (ROOT / "widget/pages/console").iterdir() if each.is_file()]
    built = [(ROOT / "comments/web/static/widget" / name).read_bytes() for name in names]
    assert sum(len(gzip.compress(each)) for each in built) <= 60_000
