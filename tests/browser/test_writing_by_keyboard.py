"""Everything around writing works with the keyboard alone and reports its state in a sentence."""

import re
from datetime import UTC, datetime

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.domain import records
from comments.moderation.policy import policy_changes, rules
from comments.store import connection
from tests.browser import widget_form
from tests.browser.conftest import OpenTab, Say
from tests.browser.test_conversation import comment, write
from tests.browser.test_votes import score, settled, up

pytestmark = pytest.mark.browser

ADA = records.Actor("cli", "Ada")


def open_menu(comment: playwright.Locator) -> playwright.Locator:
    """Open a comment's menu with a key."""
    comment.get_by_role("button", name="More actions").focus()
    comment.page.keyboard.press("ArrowDown")
    menu = comment.get_by_role("menu")
    expect(menu).to_be_visible()
    return menu


def choose_by_letters(menu: playwright.Locator, letter: str) -> None:
    menu.page.keyboard.press(letter)
    expect(menu.locator(":focus")).to_have_text(re.compile(f"^{letter}", re.IGNORECASE))
    menu.page.keyboard.press("Enter")


@pytest.mark.parametrize("command", ["Control", "Meta"])
def test_a_command_key_with_enter_posts_and_escape_leaves_the_form(
    server: str, open_tab: OpenTab, command: str
) -> None:
    page = open_tab(server).page
    form = widget_form.opened(page)
    page.keyboard.type("by keys")
    page.keyboard.press("Escape")
    expect(form.get_by_role("textbox", name="Comment")).not_to_be_focused()
    expect(form.get_by_role("textbox", name="Comment")).to_have_value("by keys")
    form.get_by_role("textbox", name="Name").focus()
    page.keyboard.type("Ada")
    page.keyboard.press(f"{command}+Enter")
    expect(comment(page, "by keys")).to_be_focused()


def test_comments_are_muted_reported_and_collapsed_by_keys(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    one = say("one", name="Bob")
    say("one.one", parent=one, name="Cy")
    page = open_tab(server).page
    choose_by_letters(open_menu(comment(page, "one.one")), "r")
    expect(page.get_by_role("radio").first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("radio", name="Insults or hate")).to_be_checked()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Report comment")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Thank you.")
    expect(comment(page, "one.one")).to_be_focused()
    choose_by_letters(open_menu(comment(page, "one.one")), "m")
    expect(page.get_by_text("You muted Cy.")).to_be_visible()
    choose_by_letters(open_menu(comment(page, "one")), "c")
    expect(page.get_by_role("listitem")).to_have_count(1)
    expect(page.get_by_role("button", name="More actions")).to_be_hidden()


def test_the_menu_counts_down_and_offers_no_edit_when_the_time_is_over(
    server: str, open_tab: OpenTab
) -> None:
    tab = open_tab("about:blank")
    page = tab.page
    page.clock.install()
    page.goto(server)
    write(page, "mine")
    menu = open_menu(comment(page, "mine"))
    edit = menu.get_by_role("menuitem", name="Edit")
    expect(edit).to_have_text(re.compile(r"1[45] min.* left"))
    page.keyboard.press("Escape")
    page.clock.fast_forward("10:00")
    open_menu(comment(page, "mine"))
    expect(edit).to_have_text(re.compile(r"[45] min.* left"))
    page.keyboard.press("Escape")
    page.clock.fast_forward("05:01")
    open_menu(comment(page, "mine"))
    expect(menu.get_by_role("menuitem", name="Delete")).to_be_focused()
    expect(edit).to_have_count(0)


def test_a_thread_with_only_own_pending_comments_says_so(
    server: str, open_tab: OpenTab, open_store: connection.Store
) -> None:
    with open_store.context():
        rule = rules.Rule(id="held", action=rules.Action.HOLD, words=("hold",))
        policy_changes.put_rule("demo", rule, ADA, now=datetime.now(UTC))
    page = open_tab(server).page
    write(page, "hold this")
    for _ in range(2):
        expect(page.get_by_role("heading", name="0 comments")).to_be_visible()
        expect(page.get_by_text("1 of your comments is awaiting approval")).to_be_visible()
        expect(page.get_by_text("No comments yet.")).to_be_hidden()
        page.reload()


def test_a_vote_stays_right_after_a_reload_before_it_is_counted(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    say("one")
    page = open_tab(server).page
    up(page, "one").click()
    settled(page, "one")
    for _ in range(2):
        page.reload()
        expect(up(page, "one")).to_have_attribute("aria-pressed", "true")
        expect(score(page, "one")).to_have_text("1")


def test_a_thread_that_closes_meanwhile_keeps_the_typed_text(
    server: str, open_tab: OpenTab
) -> None:
    tab = open_tab(server)
    tab.expect_status(403)

    def close(route: playwright.Route) -> None:
        if route.request.method != "POST":
            route.fallback()
            return
        problem = '{"status": 403, "code": "thread-closed"}'
        route.fulfill(status=403, body=problem, content_type="application/problem+json")

    tab.page.route("**/comments?*", close)
    form = widget_form.opened(tab.page)
    widget_form.fill(form, "too late", "Ada")
    tab.page.keyboard.press("Control+Enter")
    notice = tab.page.locator(".ft-notice")
    expect(notice).to_have_text("Comments are closed.")
    expect(form.get_by_role("textbox", name="Comment")).to_have_value("too late")
    tab.page.keyboard.press("Control+Enter")
    expect(notice).to_have_count(1)


def test_the_honeypot_is_invisible_without_styles(server: str, open_tab: OpenTab) -> None:
    page = open_tab(server).page
    form = widget_form.opened(page)
    page.locator("#flatthread").evaluate("host => { host.shadowRoot.adoptedStyleSheets = []; }")
    expect(form.get_by_role("textbox", name="Name")).to_be_visible()
    trap = form.locator("[name=subject]")
    expect(trap).to_have_count(1)
    expect(trap).to_be_hidden()
    assert trap.bounding_box() is None
