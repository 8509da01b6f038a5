"""Readers log in to the widget by e-mail, even if they open the mail in a different browser."""

import re
from collections.abc import Callable

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.limits import login_mail_rush, proof_policy
from tests.browser import widget_form
from tests.browser.conftest import OpenTab, Website
from tests.browser.test_conversation import choices, comment, sign_out, signed_in
from tests.support.outside import mail_server

pytestmark = [pytest.mark.browser, pytest.mark.settings(mail=True)]


def _code_in_another_browser(server: str, open_tab: OpenTab, box: mail_server.Box) -> str:
    found = re.search(r"https://service\.example(/sign-in#\S+)", box.text())
    assert found
    page = open_tab(f"{server}{found[1]}", locale="en-GB").page
    assert "#" not in page.url
    page.get_by_role("button", name="Show code").click()
    return page.locator(".ft-key").inner_text()


def _come_back_and_leave(page: playwright.Page) -> None:
    page.reload()
    signed_in(page, "Ann")
    assert "Edit" in choices(comment(page, "Typed before"))
    sign_out(page)
    expect(widget_form.opened(page).get_by_role("textbox", name="Name")).to_be_visible()
    assert "Edit" not in choices(comment(page, "Typed before"))
    assert '"a.' not in page.evaluate("JSON.stringify(localStorage)")
    page.reload()
    expect(widget_form.opened(page).get_by_role("textbox", name="Name")).to_be_visible()


def test_a_reader_signs_in_posts_returns_and_signs_out(
    server: str,
    website: Website,
    open_tab: OpenTab,
    box: mail_server.Box,
    deliver: Callable[[], None],
) -> None:
    # The page is on a different site, so all our cookies would be third-party cookies.
    address = website.put(
        "page",
        f"<script type=module src='{server}/widget/flatthread.js' data-site=demo></script>"
        "<div id=flatthread data-thread=demo></div>",
    )
    tab = open_tab(address)
    tab.expect_status(401)
    page = tab.page
    form = page.get_by_role("form", name="Write a comment")
    form.get_by_role("textbox", name="Comment").fill("Typed before")
    form.get_by_role("textbox", name="Name").fill("Ann")
    page.get_by_role("button", name="Sign in by e-mail").click()
    asking = page.get_by_role("group", name="Sign in")
    asking.get_by_label("E-mail address").fill("ann@example.org")
    page.keyboard.press("Enter")
    expect(asking.get_by_text("Open the link in our e-mail to ann@example.org")).to_be_visible()

    deliver()
    code = _code_in_another_browser(server, open_tab, box)
    asking.get_by_label("Code").fill("aaaa aaaa")
    asking.get_by_role("button", name="Sign in").click()
    expect(asking.get_by_text("This code is wrong.")).to_be_visible()
    asking.get_by_label("Code").fill(code)
    asking.get_by_role("button", name="Sign in").click()
    signed_in(page, "Ann")
    expect(page.get_by_role("textbox", name="Comment")).to_have_value("Typed before")
    page.get_by_role("button", name="Post comment").click()
    expect(comment(page, "Typed before")).to_be_visible()
    assert page.context.cookies() == []
    _come_back_and_leave(page)


def test_in_a_rush_the_widget_solves_a_proof_for_the_mail(
    server: str,
    website: Website,
    open_tab: OpenTab,
    box: mail_server.Box,
    deliver: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(login_mail_rush, "PER_DOMAIN", login_mail_rush.PER_DOMAIN._replace(most=0))
    monkeypatch.setattr(proof_policy, "LEAST", 500)
    address = website.put(
        "page",
        f"<script type=module src='{server}/widget/flatthread.js' data-site=demo></script>"
        "<div id=flatthread data-thread=demo></div>",
    )
    tab = open_tab(address)
    tab.expect_status(403)
    page = tab.page
    page.get_by_role("textbox", name="Comment").fill("Typed before")
    page.get_by_role("button", name="Sign in by e-mail").click()
    asking = page.get_by_role("group", name="Sign in")
    asking.get_by_label("E-mail address").fill("ann@example.org")
    page.keyboard.press("Enter")
    expect(asking.get_by_text("Open the link in our e-mail to ann@example.org")).to_be_visible()
    deliver()
    assert box.recipients == ["ann@example.org"]
