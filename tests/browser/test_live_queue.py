"""The queue stays true while others post and decide, and a failed decision is taken back."""

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.domain import records
from comments.domain.records import Verb
from comments.moderation import decisions
from comments.store import connection
from tests.browser.conftest import OpenTab, Say, Tab
from tests.browser.test_admin_console import ADA, sign_in
from tests.support.html import accessibility
from tests.support.people import account_holders

pytestmark = pytest.mark.browser

PAUSE = 20_000  # Milliseconds between two questions of the page about new comments.


@pytest.fixture
def hold(open_store: connection.Store, say: Say) -> Say:
    def post_and_hold(body: str, **more: str) -> str:
        with open_store.context():
            held = say(body, **more)
            decisions.decide("demo", held, Verb.HOLD, ADA, now=account_holders.here())
        return held

    return post_and_hold


@pytest.fixture
def queue(
    server: str, open_tab: OpenTab, open_store: connection.Store, site: records.Site, hold: Say
) -> Tab:
    """The queue with one comment, on a touch screen, with a clock that the test moves."""
    with open_store.context():
        account_holders.account("bob", account_holders.moderator())
    hold("the first", name="Ann")
    tab = open_tab(f"{server}/admin/sign-in", has_touch=True, is_mobile=True)
    sign_in(tab.page, server)
    tab.page.clock.install()
    tab.page.goto(f"{server}/admin/sites/demo/queue")
    return tab


def ask(page: playwright.Page) -> playwright.Response:
    """Let the page ask about new comments, and return the answer."""
    with page.expect_response("**/queue/news?*") as answer:
        page.clock.run_for(PAUSE)
    return answer.value


def test_new_comments_are_counted_and_shown_on_request(queue: Tab, hold: Say) -> None:
    page = queue.page
    offer = page.get_by_role("link", name="· Show")
    assert ask(page).status == 200
    assert ask(page).status == 304
    expect(offer).to_be_hidden()
    for number in range(2):
        hold(f"later {number}", name="Bob")
    ask(page)
    expect(offer).to_have_text("2 new comments · Show")
    expect(page.get_by_role("link", name="Queue")).to_have_text("Queue 3")
    expect(page.locator(".ft-case")).to_have_count(1)
    assert accessibility.complaints(page) == []
    offer.tap()
    expect(page.locator(".ft-case")).to_have_count(3)
    expect(page.locator(".ft-case").first).to_contain_text("later 1")
    expect(offer).to_be_hidden()
    ask(page)
    expect(offer).to_be_hidden()
    page.locator(".ft-case").first.get_by_role("button", name="Approve").tap()
    expect(page.get_by_role("link", name="Queue")).to_have_text("Queue 2")


def test_a_decision_is_shown_at_once_and_undone_by_touch(queue: Tab) -> None:
    page = queue.page
    row = page.locator(".ft-case")
    waiting: list[playwright.Route] = []
    page.route("**/queue", lambda route: waiting.append(route))  # noqa: PLW0108 - see Playwright
    row.get_by_role("button", name="Approve").tap()
    expect(row.locator(".ft-text")).to_be_hidden()
    expect(row).to_have_attribute("aria-busy", "true")
    waiting[0].continue_()
    page.unroute("**/queue")
    toast = page.locator(".ft-toast")
    expect(toast).to_contain_text("Approved")
    expect(toast).not_to_contain_text("Press u")
    toast.get_by_role("button", name="Undo").tap()
    expect(row.locator(".ft-text")).to_be_visible()
    expect(page.get_by_role("link", name="Queue")).to_have_text("Queue 1")


def test_a_key_without_a_selected_comment_selects_the_first_one(queue: Tab) -> None:
    page = queue.page
    row = page.locator(".ft-case")
    page.keyboard.press("a")
    expect(row).to_be_focused()
    expect(page.locator(".ft-toast")).to_contain_text("Press the key again")
    expect(row.locator(".ft-text")).to_be_visible()
    page.keyboard.press("a")
    expect(page.locator(".ft-toast")).to_contain_text("Approved")


def test_the_page_asks_before_it_is_left_with_decisions_that_are_not_sent(queue: Tab) -> None:
    page = queue.page
    waiting: list[playwright.Route] = []
    page.route("**/queue", lambda route: waiting.append(route))  # noqa: PLW0108 - see Playwright
    leave = "dispatchEvent(new Event('beforeunload', { cancelable: true }))"
    page.locator(".ft-case").get_by_role("button", name="Approve").tap()
    expect(page.locator(".ft-case[aria-busy]")).to_have_count(1)
    assert page.evaluate(leave) is False
    waiting[0].continue_()
    expect(page.locator(".ft-case[aria-busy]")).to_have_count(0)
    assert page.evaluate(leave) is True


def test_a_decision_that_fails_is_taken_back_with_the_reason(queue: Tab) -> None:
    page = queue.page
    row = page.locator(".ft-case")
    queue.expect_status(503)
    page.route("**/queue", lambda route: route.fulfill(status=503))
    row.get_by_role("button", name="Approve").tap()
    expect(row.locator(".ft-outcome")).to_contain_text("503")
    expect(row.locator(".ft-text")).to_be_visible()
    page.unroute("**/queue")
    row.get_by_role("button", name="Approve").tap()
    expect(row.locator(".ft-outcome")).to_contain_text("Approved")


def test_the_page_asks_less_often_after_failures(queue: Tab) -> None:
    page = queue.page
    queue.expect_status(503)
    page.route("**/queue/news?*", lambda route: route.fulfill(status=503))
    ask(page)
    asked: list[playwright.Request] = []
    page.on("request", lambda request: asked.append(request))  # noqa: PLW0108 - same
    page.clock.run_for(2 * PAUSE - 1)
    assert asked == []
    page.unroute("**/queue/news?*")
    with page.expect_response("**/queue/news?*"):
        page.clock.run_for(1)
