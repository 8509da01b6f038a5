"""Staff sign in to the admin console with real cookies, forms, one-time links, and by keyboard."""

import re
import urllib.parse

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.accounts import accounts
from comments.accounts.links import invitations
from comments.accounts.passwords import totp
from comments.store import connection
from tests.browser.conftest import OpenTab, Website
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, PASSWORD, SECRET, moderator

pytestmark = pytest.mark.browser


def _fill(page: playwright.Page, **fields: str) -> None:
    for label, text in fields.items():
        page.get_by_label(label.replace("_", " "), exact=label.islower()).first.fill(text)


def _sign_in(page: playwright.Page, server: str, login: str = "ann") -> None:
    page.goto(f"{server}/admin")
    page.get_by_label("Name or e-mail address").fill(login)
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Your sites")).to_be_visible()


def test_a_links_key_is_shown_only_where_it_has_to_be_copied(
    server: str, open_tab: OpenTab, open_store: connection.Store
) -> None:
    with open_store.context():
        link = invitations.first_owner_link(server, secret=SECRET, now=account_holders.here())
    shown = open_tab(link).page.get_by_label("Key").filter(visible=True)
    expect(shown).to_have_count(0)
    shown = open_tab(link, java_script_enabled=False).page.get_by_label("Key")
    expect(shown.filter(visible=True)).to_have_count(1)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_the_first_owner_uses_the_printed_link_then_signs_out_and_in(
    server: str, open_tab: OpenTab, open_store: connection.Store, host: str
) -> None:
    here = server.replace("127.0.0.1", host)
    with open_store.context():
        link = invitations.first_owner_link(here, secret=SECRET, now=account_holders.here())
    page = open_tab(link).page
    token = link.partition("#")[2]
    # The key is in the form and not in the URL, which the browser's history would keep.
    expect(page.get_by_label("Key").first).to_have_value(token)
    expect(page).to_have_url(f"{here}/admin/welcome")
    page.get_by_label("Display name").fill("Ann")
    page.get_by_label("Sign-in name").fill("ann")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_text("You own this service")).to_be_visible()
    expect(page.get_by_role("rowheader", name="demo")).to_be_visible()
    (cookie,) = page.context.cookies()
    # Another service on this host has a cookie of its own.
    assert cookie["name"] == f"__Host-flatthread-{urllib.parse.urlsplit(here).port}"
    assert (cookie["httpOnly"], cookie["secure"], cookie["sameSite"]) == (True, True, "Strict")
    assert page.evaluate("document.cookie") == ""
    page.reload()
    expect(page.get_by_text("You own this service")).to_be_visible()

    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
    assert page.context.cookies() == []
    _sign_in(page, here)

    other = open_tab(link, locale="en-GB")
    other.page.get_by_label("Display name").fill("Eve")
    other.page.get_by_label("Sign-in name").fill("eve")
    other.page.get_by_label("Password").fill(PASSWORD)
    other.expect_status(400)
    other.page.get_by_role("button", name="Create account").click()
    expect(other.page.get_by_role("alert")).to_have_text(re.compile("used|has an owner"))


def test_a_foreign_page_can_neither_frame_it_nor_send_its_forms(
    server: str, open_tab: OpenTab, open_store: connection.Store, website: Website
) -> None:
    with open_store.context():
        account_holders.account("ann", OWNER)
    tab = open_tab(f"{server}/admin/sign-in")
    _sign_in(tab.page, server)
    framing = website.put("frame", f"<iframe src='{server}/admin'></iframe>")
    tab.expected += ["frame-ancestors", "Refused to frame", "ERR_BLOCKED_BY_RESPONSE", "Framing"]
    tab.page.goto(framing)
    frame = tab.page.frames[1]
    assert "Your sites" not in frame.content()
    for path in ("sign-out", "sign-out/everywhere", "account/authenticator/remove"):
        forged = website.put(
            "forged",
            f"<form method=post action='{server}/admin/{path}'><button>Win</button></form>",
        )
        tab.page.goto(forged)
        tab.expect_status(403)
        tab.page.get_by_role("button", name="Win").click()
        expect(tab.page.get_by_text("not sent from this site")).to_be_visible()
    # The browser sends no cookie when a reader follows a link from a different site, but the link
    # still opens the page.
    tab.page.goto(website.put("link", f"<a href='{server}/admin'>In</a>"))
    tab.page.get_by_role("link", name="In").click()
    expect(tab.page.get_by_role("heading", name="Your sites")).to_be_visible()


def test_an_authenticator_is_set_up_and_required(
    server: str, open_tab: OpenTab, open_store: connection.Store
) -> None:
    with open_store.context():
        account_holders.account("ann", moderator())
    page = open_tab(f"{server}/admin/sign-in").page
    _sign_in(page, server)
    page.get_by_role("link", name="Ann").click()
    href = page.get_by_role("link", name="Add this account").get_attribute("href") or ""
    key = urllib.parse.parse_qs(urllib.parse.urlsplit(href).query)["secret"][0]
    step = int(account_holders.here().timestamp()) // totp.STEP
    page.get_by_label("Code that the app shows").fill(totp.code(key, step))
    page.locator("form[action$=authenticator]").get_by_label("Current password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
    expect(page.get_by_role("listitem")).to_have_count(10)
    recovery = page.get_by_role("listitem").last.inner_text()
    page.get_by_role("link", name="I have saved the codes").click()
    expect(page.get_by_text("You have 10 unused recovery codes.")).to_be_visible()
    with open_store.context():
        assert accounts.by_text("ann", SECRET).has_totp

    page.get_by_role("button", name="Sign out", exact=True).click()
    page.get_by_label("Name or e-mail address").fill("ann")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Code from your authenticator app").fill(totp.code(key, step + 1))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Your sites")).to_be_visible()

    page.get_by_role("button", name="Sign out", exact=True).click()
    page.get_by_label("Name or e-mail address").fill("ann")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_label("Code from your authenticator app").fill(recovery)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Your sites")).to_be_visible()


def test_the_pages_work_without_javascript_and_on_a_phone(
    server: str, open_tab: OpenTab, open_store: connection.Store
) -> None:
    with open_store.context():
        token = account_holders.invite(moderator(), now=account_holders.here())
    size = {"width": 360, "height": 640}
    options = {"java_script_enabled": False, "viewport": size}
    page = open_tab(f"{server}/admin/welcome#{token}", **options).page
    page.get_by_label("Key").first.fill(token)
    page.get_by_label("Display name").fill("Ann")
    page.get_by_label("Sign-in name").fill("ann")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("cell", name="Moderator")).to_be_visible()
