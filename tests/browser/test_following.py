"""Readers follow a thread by mail and sign in from the header of the comments."""

from collections.abc import Callable

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab, Say
from tests.support.outside.mail_server import Box

pytestmark = [pytest.mark.browser, pytest.mark.settings(mail=True)]


def _open_form(page: playwright.Page) -> playwright.Locator:
    page.get_by_role("button", name="Follow").focus()
    page.keyboard.press("Enter")
    form = page.get_by_role("form", name="Follow this discussion by e-mail")
    expect(form.get_by_role("textbox")).to_be_focused()
    return form


def test_a_reader_who_never_wrote_follows_a_thread(
    server: str, open_tab: OpenTab, say: Say, box: Box, deliver: Callable[[], None]
) -> None:
    say("first")
    deliver()
    page = open_tab(server).page
    _open_form(page)
    page.keyboard.type("bea@example.org")
    page.keyboard.press("Enter")
    told = page.get_by_text("open the link in our e-mail to bea@example.org")
    expect(told).to_be_focused()
    assert "example.org" not in page.evaluate("JSON.stringify(localStorage)")
    deliver()
    page.goto(f"{server}{box.link(page='confirm')}")
    page.get_by_role("button", name="Confirm").click()
    expect(page.get_by_role("heading", name="Subscription confirmed")).to_be_visible()
    say("news")
    deliver()
    assert box.recipients == ["bea@example.org"] * 2


@pytest.mark.parametrize("typed", ["", "bea", "bea@"])
def test_a_wrong_address_is_refused_at_its_field(
    server: str, open_tab: OpenTab, say: Say, box: Box, deliver: Callable[[], None], typed: str
) -> None:
    say("first")
    deliver()
    page = open_tab(server).page
    form = _open_form(page)
    page.keyboard.type(typed)
    page.keyboard.press("Enter")
    expect(form.get_by_role("alert")).to_have_text("Enter your e-mail address.")
    expect(form.get_by_role("textbox")).to_be_focused()
    deliver()
    assert box.recipients == []


def test_escape_closes_the_form_and_restores_the_focus(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    say("first")
    page = open_tab(server).page
    form = _open_form(page)
    page.keyboard.press("Escape")
    expect(form).to_have_count(0)
    expect(page.get_by_role("button", name="Follow")).to_be_focused()


def test_an_empty_thread_cannot_be_followed(server: str, open_tab: OpenTab) -> None:
    page = open_tab(server).page
    expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Follow")).to_be_hidden()


def test_a_reader_signs_in_from_the_header(server: str, open_tab: OpenTab) -> None:
    page = open_tab(server).page
    page.get_by_role("button", name="Sign in", exact=True).click()
    by_mail = page.get_by_role("button", name="Sign in by e-mail")
    expect(by_mail).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("textbox", name="E-mail address")).to_be_focused()


@pytest.mark.settings(mail=False)
def test_without_mail_the_header_offers_neither(server: str, open_tab: OpenTab, say: Say) -> None:
    say("first")
    page = open_tab(server).page
    expect(page.locator(".ft-body")).to_have_text("first")
    for name in ("Follow", "Sign in"):
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)


def test_the_ways_to_sign_in_are_offered_once(server: str, open_tab: OpenTab) -> None:
    page = open_tab(server).page
    by_mail = page.get_by_role("button", name="Sign in by e-mail")
    page.get_by_role("textbox", name="Comment").focus()
    expect(by_mail).to_be_visible()
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(by_mail).to_be_focused()
    expect(by_mail).to_have_count(1)
