"""People add a passkey and sign in with it, with Chromium's virtual authenticator."""

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.store import connection
from tests.browser.conftest import OpenTab, Tab
from tests.support.html import accessibility
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, PASSWORD

pytestmark = pytest.mark.browser

PHONE = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@pytest.fixture
def tab(server: str, open_tab: OpenTab, open_store: connection.Store) -> Tab:
    """The account page of an owner, on localhost."""
    with open_store.context():
        account_holders.account("ann", OWNER)
    tab = open_tab(f"{server.replace('127.0.0.1', 'localhost')}/admin/sign-in")
    tab.page.get_by_label("Name or e-mail address").fill("ann")
    tab.page.get_by_label("Password").fill(PASSWORD)
    tab.page.keyboard.press("Enter")
    tab.page.get_by_role("link", name="Ann").click()
    expect(tab.page.get_by_role("heading", name="Your account")).to_be_visible()
    return tab


def _add(page: playwright.Page, password: str) -> None:
    form = page.locator("[data-passkey=create]")
    form.get_by_label("Name of the passkey").fill("Phone")
    form.get_by_label("Current password").fill(password)
    form.get_by_role("button", name="Add passkey").click()


def test_a_passkey_is_added_signs_in_and_is_removed(tab: Tab) -> None:
    page = tab.page
    cdp = page.context.new_cdp_session(page)
    cdp.send("WebAuthn.enable")
    phone = cdp.send("WebAuthn.addVirtualAuthenticator", {"options": PHONE})["authenticatorId"]
    tab.expect_status(403)
    _add(page, "a wrong password")
    expect(page.get_by_role("alert")).to_contain_text("not your current password")
    _add(page, PASSWORD)
    expect(page.get_by_role("button", name="Remove the passkey Phone")).to_be_visible()
    assert accessibility.complaints(page) == []
    page.goto(page.url.replace("account#passkeys", ""))
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("heading", name="Your sites")).to_be_visible()

    page.get_by_role("link", name="Ann").click()
    expect(page.get_by_text("Passkey added")).to_be_visible()
    page.get_by_label("Current password, to remove a passkey").fill(PASSWORD)
    page.get_by_role("button", name="Remove the passkey Phone").click()
    expect(page.get_by_role("button", name="Remove the passkey Phone")).to_have_count(0)
    page.goto(page.url.replace("account#passkeys", ""))
    page.get_by_role("button", name="Sign out").click()
    tab.expect_status(403)
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("alert").filter(visible=True)).to_contain_text("was not accepted")
    # The browser's own refusal is explained too.
    cdp.send("WebAuthn.removeVirtualAuthenticator", {"authenticatorId": phone})
    cdp.send("WebAuthn.addVirtualAuthenticator", {"options": PHONE | {"isUserVerified": False}})
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_text("No passkey was used.")).to_be_visible()


def test_passkeys_are_hidden_where_browsers_have_none(
    server: str, open_tab: OpenTab, open_store: connection.Store
) -> None:
    page = open_tab(f"{server}/admin/sign-in").page
    expect(page.get_by_role("button", name="Sign in", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Sign in with a passkey")).to_have_count(0)
