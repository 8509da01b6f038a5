"""A failed mail or sign-in call shows a message and never loses an address or typed text."""

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from tests.browser import faults, widget_form
from tests.browser.conftest import OpenTab, Say
from tests.browser.test_conversation import comment
from tests.browser.test_failing_server import told

pytestmark = [pytest.mark.browser, pytest.mark.settings(mail=True)]

SUBSCRIPTION = "**/sites/demo/subscription*"


def _sign_in(page: playwright.Page) -> playwright.Locator:
    return page.get_by_role("button", name="Sign in", exact=True)


def test_the_ways_to_sign_in(server: str, open_tab: OpenTab) -> None:
    tab = open_tab(server)
    page = tab.page
    for fault in faults.each(tab, "**/sites/demo/sign-in"):
        _sign_in(page).click()
        expect(page.get_by_text("Sign-in is not available right now.")).to_be_visible()
        assert fault.told
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("button", name="Sign in by e-mail")).to_be_visible()


def test_the_mail_with_a_code(server: str, open_tab: OpenTab) -> None:
    tab = open_tab(server)
    page = tab.page
    _sign_in(page).click()
    page.get_by_role("button", name="Sign in by e-mail").click()
    address = page.get_by_role("textbox", name="E-mail address")
    address.fill("ann@example.org")
    send = page.get_by_role("button", name="Send link")
    for fault in faults.each(tab, "**/sites/demo/sign-in", "POST"):
        send.click()
        expect(told(page, fault.told)).to_be_visible()
        expect(address).to_have_value("ann@example.org")
    send.click()
    expect(page.get_by_text("Open the link in our e-mail to ann@example.org")).to_be_visible()


def test_the_code(server: str, open_tab: OpenTab) -> None:
    tab = open_tab(server)
    page = tab.page
    _sign_in(page).click()
    page.get_by_role("button", name="Sign in by e-mail").click()
    page.get_by_role("textbox", name="E-mail address").fill("ann@example.org")
    page.get_by_role("button", name="Send link").click()
    code = page.get_by_role("textbox", name="Code")
    code.fill("abcd-efgh")
    page.get_by_role("textbox", name="Display name").fill("Ann")
    for fault in faults.each(tab, "**/sites/demo/sign-in/code", "POST"):
        page.get_by_role("group", name="Sign in").get_by_role("button", name="Sign in").click()
        expect(told(page, fault.told)).to_be_visible()
        expect(code).to_have_value("abcd-efgh")


def test_the_offer_of_mail(server: str, open_tab: OpenTab) -> None:
    """The form works without it."""
    tab = open_tab("about:blank")
    for fault in faults.each(tab, SUBSCRIPTION):
        tab.page.goto(server)
        form = widget_form.opened(tab.page)
        expect(form.get_by_text("E-mail notifications are not available")).to_be_visible()
        assert fault.told
    form = widget_form.opened(tab.page)
    form.get_by_role("button", name="Try again").click()
    expect(form.get_by_text("E-mail me:")).to_be_visible()


def test_a_subscription_with_a_post(server: str, open_tab: OpenTab) -> None:
    """The comment is posted, and the sentence says that only the mail failed."""
    tab = open_tab(server)
    page = tab.page
    for number, fault in enumerate(faults.each(tab, SUBSCRIPTION, "PUT")):
        form = widget_form.opened(page)
        widget_form.fill(form, f"comment {number}", "Ada")
        form.get_by_label("every new comment").check()
        form.get_by_label("E-mail address").fill("ann@example.org")
        form.get_by_role("button", name="Post comment").click()
        item = comment(page, f"comment {number}")
        expect(item.get_by_role("status")).to_contain_text("could not subscribe you")
        expect(item.get_by_role("status")).to_contain_text(fault.told)


def test_following(server: str, open_tab: OpenTab, say: Say) -> None:
    say("first")
    tab = open_tab(server)
    page = tab.page
    page.get_by_role("button", name="Follow").click()
    form = page.get_by_role("form", name="Follow this discussion by e-mail")
    form.get_by_role("textbox").fill("bea@example.org")
    for fault in faults.each(tab, SUBSCRIPTION, "PUT"):
        form.get_by_role("button", name="Follow").click()
        expect(told(form, fault.told)).to_be_visible()
        expect(form.get_by_role("textbox")).to_have_value("bea@example.org")
    form.get_by_role("button", name="Follow").click()
    expect(page.get_by_text("open the link in our e-mail to bea@example.org")).to_be_visible()
