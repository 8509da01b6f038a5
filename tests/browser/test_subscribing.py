"""Readers subscribe to mail next to the form and confirm and unsubscribe on separate pages."""

from collections.abc import Callable

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments import config
from comments.notifications import double_opt_in, subscriptions
from comments.store import connection
from tests.browser.conftest import OpenTab, Say
from tests.support.outside.mail_server import Box

pytestmark = [pytest.mark.browser, pytest.mark.settings(mail=True)]

LOADED = "performance.getEntriesByType('resource').map((each) => each.name)"


def _form(page: playwright.Page) -> playwright.Locator:
    return page.get_by_role("form", name="Write a comment")


def _write(form: playwright.Locator, text: str) -> None:
    form.get_by_role("textbox", name="Comment").fill(text)
    form.get_by_role("textbox", name="Name").fill("Ann")


def test_a_reader_subscribes_confirms_and_unsubscribes(  # noqa: PLR0915, PLR0917 - one long visit
    server: str,
    open_tab: OpenTab,
    box: Box,
    say: Say,
    deliver: Callable[[], None],
    open_store: connection.Store,
    settings: config.Settings,
) -> None:
    say("first")
    deliver()
    page = open_tab(server).page
    form = _form(page)
    expect(page.get_by_role("listitem")).to_have_count(1)
    expect(form.get_by_text("E-mail me:")).to_have_count(0)
    assert not any("notify" in name for name in page.evaluate(LOADED))
    _write(form, "Tell me more")
    form.get_by_label("replies to my comments").check()
    form.get_by_label("every new comment").check()
    form.get_by_label("E-mail address").fill("ann@example.org")
    form.get_by_role("button", name="Post comment").click()
    expect(page.get_by_text("open the link in our e-mail to ann@example.org")).to_be_visible()
    expect(form.get_by_label("E-mail address")).to_be_hidden()
    # The widget must not store the address, because the embedding page can read the widget's
    # storage.
    assert "example.org" not in page.evaluate("JSON.stringify(localStorage)")
    deliver()
    assert box.recipients == ["ann@example.org"]

    page.goto(f"{server}{box.link(page='confirm')}")
    expect(page.get_by_text("replies to your comments")).to_be_visible()
    consent = page.get_by_role("checkbox", name="Let the owner of")
    expect(consent).not_to_be_checked()
    consent.check()
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_role("heading", name="Subscription confirmed")).to_be_visible()
    say("news")
    deliver()
    assert box.recipients == ["ann@example.org"] * 2

    page.goto(f"{server}{box.link(page='unsubscribe')}")
    expect(page.get_by_role("button", name="Stop showing my address")).to_be_visible()
    page.get_by_role("button", name="All e-mails to this address").click()
    expect(page.get_by_text("your address was erased")).to_be_visible()
    with open_store.context():
        who = double_opt_in.subscriber_of("ann@example.org", settings.secret)
        assert subscriptions.of_subscriber(who) == []


def test_a_missing_address_is_reported_before_anything_is_posted(
    server: str, open_tab: OpenTab, box: Box
) -> None:
    page = open_tab(server).page
    form = _form(page)
    _write(form, "Hello")
    form.get_by_label("every new comment").check()
    for wrong in ("", "nobody"):
        form.get_by_label("E-mail address").fill(wrong)
        form.get_by_role("button", name="Post comment").click()
        expect(form.get_by_text("Enter your e-mail address.")).to_be_visible()
        expect(form.get_by_label("E-mail address")).to_be_focused()
    expect(page.get_by_role("listitem")).to_have_count(0)
    form.get_by_label("every new comment").uncheck()
    form.get_by_role("button", name="Post comment").click()
    expect(page.get_by_role("listitem", name="Comment by Ann")).to_be_visible()


def test_the_pages_work_without_javascript_and_on_a_phone(
    server: str, open_tab: OpenTab, settings: config.Settings
) -> None:
    ending = double_opt_in.Unsubscription("a" * 26, ("replies:b",))
    token = double_opt_in.unsubscribe_link(ending, settings.secret)
    link = f"/subscriptions/unsubscribe?token={token}"
    size = {"width": 360, "height": 640}
    page = open_tab(f"{server}{link}", java_script_enabled=False, viewport=size).page
    page.get_by_role("button", name="E-mails like this one").click()
    expect(page.get_by_text("You will no longer get e-mails like that one.")).to_be_visible()


@pytest.mark.settings
class TestWithoutMail:
    def test_nothing_is_offered(self, server: str, open_tab: OpenTab) -> None:
        page = open_tab(server).page
        with page.expect_response("**/subscription") as answered:
            _form(page).get_by_role("textbox", name="Comment").focus()
        assert answered.value.json() == {"mail": False}
        expect(_form(page).get_by_text("E-mail me:")).to_have_count(0)
