"""Readers log in to the widget by e-mail, even if they open the mail in a different browser."""

import re
from collections.abc import Callable

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments import config
from comments.domain import records
from comments.domain.ids import imported_ids
from comments.limits import login_mail_rush, proof_policy
from comments.store import connection
from tests.browser import widget_form
from tests.browser.conftest import OpenTab, Website
from tests.browser.test_conversation import choices, choose, comment, sign_out, signed_in
from tests.support.outside import mail_server
from tests.support.threads import sample_threads

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


@pytest.fixture
def imported(
    server: str, settings: config.Settings, open_store: connection.Store,
    deliver: Callable[[], None], open_tab: OpenTab,
) -> playwright.Page:  # fmt: skip
    """Import two comments under an address, and open their thread."""
    author = imported_ids.author_ids_of_address(settings.secret, "demo", "ann@example.org")[0]
    with open_store.context():
        for text in ("Imported first", "Imported second"):
            node = sample_threads.node(text, author=author)
            sample_threads.store_imported(records.ThreadName("demo", "demo"), node)
    deliver()
    return open_tab(f"{server}/?thread=demo").page


@pytest.fixture
def sign_in(
    imported: playwright.Page, server: str, open_tab: OpenTab, box: mail_server.Box,
    deliver: Callable[[], None],
) -> Callable[[], None]:  # fmt: skip
    """Return a function that signs in with this address."""

    def run() -> None:
        widget_form.opened(imported)
        imported.get_by_role("button", name="Sign in by e-mail").click()
        asking = imported.get_by_role("group", name="Sign in")
        asking.get_by_label("E-mail address").fill("ann@example.org")
        imported.keyboard.press("Enter")
        expect(asking.get_by_text("Open the link in our e-mail")).to_be_visible()
        deliver()
        asking.get_by_label("Code").fill(_code_in_another_browser(server, open_tab, box))
        asking.get_by_label("Display name").fill("Ann")
        asking.get_by_role("button", name="Sign in").click()
        signed_in(imported, "Ann")

    return run


def test_imported_comments_become_the_readers_own(
    imported: playwright.Page, sign_in: Callable[[], None]
) -> None:
    first, second = (comment(imported, f"Imported {which}") for which in ("first", "second"))
    assert "Delete" not in choices(first)
    sign_in()
    expect(imported.locator(".ft-claims")).to_contain_text("2 earlier comments under your e-mail")
    expect(first.get_by_role("button", name="Upvote")).to_have_count(0)
    assert choices(first) == ["Delete", "Collapse"]  # The time to edit is over
    imported.reload()
    signed_in(imported, "Ann")
    expect(first.get_by_role("button", name="Upvote")).to_have_count(0)
    choose(first, "Delete")
    imported.get_by_role("button", name="Delete comment").click()
    expect(first).to_have_count(0)
    assert "Delete" in choices(second)


def test_a_reader_gives_up_imported_comments_by_keyboard(
    imported: playwright.Page, sign_in: Callable[[], None]
) -> None:
    sign_in()
    notice = imported.locator(".ft-claims")
    notice.get_by_role("button", name="Not mine").press("Enter")
    expect(notice.get_by_role("button", name="Keep")).to_be_focused()
    notice.get_by_role("button", name="Give up").press("Enter")
    expect(imported.get_by_text("You gave up these comments.")).to_be_visible()
    expect(notice).to_have_count(0)
    assert "Delete" not in choices(comment(imported, "Imported first"))
    sign_out(imported)
    sign_in()
    expect(comment(imported, "Imported first").get_by_role("button", name="Upvote")).to_be_visible()
    assert "Delete" not in choices(comment(imported, "Imported first"))
