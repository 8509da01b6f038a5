"""During a slow call, its button says so, nothing is sent twice, and readers can keep reading.

The tests hold back a response until the reader has done everything else.
"""

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from tests.browser import route_holding, widget_form
from tests.browser.conftest import OpenTab, Say
from tests.browser.test_conversation import bodies, choose, comment, write

pytestmark = pytest.mark.browser

LIST = "**/sites/demo/comments?*"


class Held:
    """Calls with a method to a pattern, held back until `release()`."""

    def __init__(self, page: playwright.Page, pattern: str, method: str) -> None:
        self.page, self.method = page, method
        self.routes: list[playwright.Route] = []
        page.route(pattern, self._hold)

    def _hold(self, route: playwright.Route) -> None:
        if route.request.method == self.method:
            self.routes.append(route)
        else:
            route.fallback()

    def wait(self) -> None:
        route_holding.wait_until_sent(self.page, self.routes)

    def release(self) -> None:
        (route,) = self.routes  # Nothing was sent twice
        route.continue_()


def test_a_slow_post_says_so_is_sent_once_and_leaves_the_reader_alone(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    for number in range(51):
        say(f"comment {number}")
    page = open_tab(server).page
    held = Held(page, LIST, "POST")
    form = widget_form.opened(page)
    widget_form.fill(form, "mine", "Grace")
    form.get_by_role("button", name="Post comment").click()
    held.wait()
    button = form.get_by_role("button", name="Sending…")
    expect(button).to_have_attribute("aria-disabled", "true")
    button.click(force=True)
    form.get_by_role("textbox", name="Comment").press("Control+Enter")
    # Reading goes on.
    page.get_by_role("button", name="Load more comments").click()
    expect(comment(page, "comment 50")).to_be_focused()
    # The reader writes elsewhere, and the response moves neither the focus nor the page.
    answered = comment(page, "comment 50")
    answered.get_by_role("button", name="Reply").click()
    reply = answered.get_by_role("form").get_by_role("textbox", name="Comment")
    expect(reply).to_be_focused()
    page.keyboard.type("I am ")
    top = page.evaluate("scrollY")
    held.release()
    expect(comment(page, "mine")).to_be_visible()
    page.keyboard.type("typing")
    expect(reply).to_have_value("I am typing")
    assert page.evaluate("scrollY") >= top
    expect(form.get_by_role("textbox", name="Comment")).to_have_value("")
    expect(form.get_by_role("button", name="Post comment")).to_be_visible()


def test_text_typed_while_a_post_is_sent_stays(server: str, open_tab: OpenTab, say: Say) -> None:
    say("one")
    page = open_tab(server).page
    held = Held(page, LIST, "POST")
    page.get_by_role("button", name="Reply to Ada").click()
    form = page.get_by_role("form", name="Reply to Ada")
    form.get_by_role("textbox", name="Name").fill("Grace")
    text = form.get_by_role("textbox", name="Comment")
    text.press_sequentially("sent")
    text.press("Control+Enter")
    held.wait()
    page.keyboard.type(", and more")
    held.release()
    expect(comment(page, "sent")).to_be_visible()
    expect(text).to_have_value("sent, and more")
    expect(text).to_be_focused()


def test_text_typed_while_an_edit_is_saved_stays(server: str, open_tab: OpenTab) -> None:
    page = open_tab(server).page
    write(page, "before")
    choose(comment(page, "before"), "Edit")
    form = page.get_by_role("form", name="Edit your comment")
    text = form.get_by_role("textbox", name="Comment")
    held = Held(page, "**/api/v1/comments/*", "PATCH")
    text.fill("after")
    text.press("Control+Enter")
    held.wait()
    expect(form.get_by_role("button", name="Sending…")).to_be_visible()
    page.keyboard.type(" that")
    held.release()
    expect(page.get_by_text("edited", exact=True)).to_be_attached()
    expect(text).to_have_value("after that")
    expect(text).to_be_focused()


def test_slow_pages_are_requested_once(server: str, open_tab: OpenTab, say: Say) -> None:
    for number in range(51):
        say(f"comment {number}")
    page = open_tab(server).page
    expect(page.get_by_role("listitem")).to_have_count(50)
    held = Held(page, "**/comments?*cursor=*", "GET")
    page.get_by_role("button", name="Load more comments").click()
    held.wait()
    loading = page.get_by_role("button", name="Loading comments")
    expect(loading).to_have_attribute("aria-disabled", "true")
    loading.click(force=True)
    text = widget_form.opened(page).get_by_role("textbox", name="Comment")
    page.keyboard.type("I am ")
    held.release()
    expect(page.get_by_role("listitem")).to_have_count(51)
    page.keyboard.type("typing")
    expect(text).to_have_value("I am typing")


def test_a_slow_vote_is_shown_at_once_and_sent_once(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    say("one")
    page = open_tab(server).page
    held = Held(page, "**/vote", "PUT")
    up = comment(page, "one").get_by_role("button", name="Upvote")
    up.click()
    held.wait()
    expect(up).to_have_attribute("aria-pressed", "true")
    expect(comment(page, "one").locator(".ft-score")).to_have_text("1")
    up.click(force=True)
    comment(page, "one").get_by_role("button", name="Downvote").click(force=True)
    expect(up).to_have_attribute("aria-pressed", "true")
    held.release()
    expect(comment(page, "one").locator("[aria-disabled]")).to_have_count(0)


@pytest.mark.parametrize("action", ["delete", "report", "erase", "preview"])
def test_other_slow_calls_say_so_and_are_sent_once(
    server: str, open_tab: OpenTab, say: Say, action: str
) -> None:
    say("one", name="Bob")
    page = open_tab(server).page
    write(page, "mine", name="Grace")
    if action == "delete":
        held = Held(page, "**/api/v1/comments/*", "DELETE")
        choose(comment(page, "mine"), "Delete")
        page.get_by_role("button", name="Delete comment").click()
    elif action == "report":
        held = Held(page, "**/report", "POST")
        choose(comment(page, "one"), "Report")
        page.get_by_role("radio", name="Off topic").check()
        page.get_by_role("button", name="Report comment").click()
    elif action == "erase":
        held = Held(page, "**/author", "DELETE")
        page.get_by_role("button", name="Your menu, Grace").click()
        page.get_by_role("menuitem", name="Delete my comments and data").click()
        page.get_by_role("button", name="Delete everything").click()
    else:
        held = Held(page, "**/preview", "POST")
        form = widget_form.opened(page)
        form.get_by_role("textbox", name="Comment").fill("glance")
        form.get_by_role("button", name="Preview").click()
    label = {"report": "Sending…", "preview": "Loading…"}.get(action, "Deleting…")
    held.wait()
    button = page.get_by_role("button", name=label)
    expect(button).to_have_attribute("aria-disabled", "true")
    button.click(force=True)
    held.release()
    expect(button).to_have_count(0)


def test_comments_do_not_wait_for_a_slow_sign_in(server: str, open_tab: OpenTab, say: Say) -> None:
    say("one")
    tab = open_tab("about:blank")
    tab.expect_status(401)
    held = Held(tab.page, "**/sites/demo/session", "POST")
    tab.page.route(f"{server}/", with_account)
    tab.page.goto(server)
    expect(comment(tab.page, "one")).to_be_visible()
    text = widget_form.opened(tab.page).get_by_role("textbox", name="Comment")
    tab.page.keyboard.type("I am ")
    held.wait()
    held.release()
    expect(tab.page.get_by_role("alert").filter(has_text="Sign-in failed.")).to_be_visible()
    tab.page.keyboard.type("typing")
    expect(text).to_have_value("I am typing")
    assert bodies(tab.page) == ["one"]


def with_account(route: playwright.Route) -> None:
    """Answer with the demo page, whose element names an account that the site does not know."""
    answer = route.fetch()
    body = answer.text().replace('id="flatthread"', 'id="flatthread" data-account="x.y.z"')
    assert "data-account" in body
    route.fulfill(response=answer, body=body)
