"""A session of moderation begins and ends on a page as the moderator and the site decide."""

import json
from collections.abc import Callable
from datetime import timedelta

import pytest
from playwright.sync_api import expect

from comments import config
from comments.accounts import accounts, moderation_sessions
from comments.domain.records import Status
from comments.sites import site_settings
from comments.store import connection
from tests.browser import widget_form
from tests.browser.conftest import OpenTab, Say, Tab, Website
from tests.browser.moderator_page import (
    Hold,
    bar,
    held,
    offer,
    sign_in,
    status,
    widget,
)
from tests.browser.test_conversation import bodies, choices, comment
from tests.support.people import account_holders, moderators
from tests.support.people.account_holders import moderator

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("quick_passwords")]


def test_a_revoked_session_ends_in_a_sentence_and_the_draft_stays(
    moderating: Callable[..., Tab],
    open_store: connection.Store,
    bob: accounts.Account,
    say: Say,
    hold: Hold,
) -> None:
    say("visible")
    hold("held")
    tab = moderating()
    page = tab.page
    # The session's first call must not be the one that is refused.
    expect(held(page)).to_be_visible()
    form = widget_form.opened(page)
    form.get_by_role("textbox", name="Comment").fill("typed as a moderator")
    with open_store.context():
        for each in moderation_sessions.of_account(bob, now=account_holders.here()):
            moderation_sessions.revoke(bob.id, each.id)
    tab.expect_status(401)
    form.get_by_role("button", name="Post comment").click()
    ended = page.get_by_text("Your moderation session was ended")
    expect(ended).to_be_visible()
    expect(held(page)).to_have_count(0)
    assert bodies(page) == ["visible"]
    expect(form.get_by_role("textbox", name="Comment")).to_have_value("typed as a moderator")
    expect(form.get_by_role("textbox", name="Comment")).to_be_focused()
    expect(form.get_by_role("textbox", name="Name")).to_be_visible()
    assert "Hide" not in choices(comment(page, "visible"))
    # The message offers to moderate again.
    with page.expect_popup() as opened:
        bar(page).get_by_role("button", name="Moderate here").click()
    sign_in(opened.value)
    opened.value.get_by_role("button", name="Moderate here").click()
    expect(held(page)).to_be_visible()


def test_a_session_revoked_before_a_decision_decides_nothing(
    moderating: Callable[..., Tab],
    open_store: connection.Store,
    bob: accounts.Account,
    hold: Hold,
) -> None:
    one = hold("held")
    tab = moderating()
    expect(held(tab.page)).to_be_visible()
    with open_store.context():
        for each in moderation_sessions.of_account(bob, now=account_holders.here()):
            moderation_sessions.revoke(bob.id, each.id)
    tab.expect_status(401)
    held(tab.page).get_by_role("button", name="Approve").click()
    expect(tab.page.get_by_text("Your moderation session was ended")).to_be_visible()
    assert status(open_store, one) is Status.PENDING


def test_an_expired_session_ends_in_a_sentence(
    session: str, moderating: Callable[..., Tab], say: Say
) -> None:
    say("visible")
    past = (account_holders.here() - timedelta(seconds=1)).isoformat()
    page = moderating(json.dumps({**json.loads(session), "expires": past})).page
    expect(page.get_by_text("Your moderation session ended after 12 hours.")).to_be_visible()
    assert "Hide" not in choices(comment(page, "visible"))
    page.reload()
    expect(comment(page, "visible")).to_be_visible()
    expect(bar(page)).to_have_count(0)


def test_a_session_ends_by_itself_while_the_page_is_open(
    session: str, page_url: str, open_tab: OpenTab, hold: Hold
) -> None:
    hold("held")
    page = open_tab("about:blank").page
    # A page that is loading when its clock is replaced measures times with two clocks.
    page.clock.install()
    page.goto(page_url)
    page.evaluate("(kept) => sessionStorage.setItem('flatthread:moderator:demo', kept)", session)
    page.reload()
    expect(held(page)).to_be_visible()
    page.clock.fast_forward("12:00:01")
    expect(page.get_by_text("Your moderation session ended after 12 hours.")).to_be_visible()
    expect(held(page)).to_have_count(0)


def test_a_token_of_another_site_is_refused_in_a_sentence(
    session: str,
    moderating: Callable[..., Tab],
    website: Website,
    open_store: connection.Store,
    settings: config.Settings,
    hold: Hold,
) -> None:
    hold("held")
    with open_store.context():
        now = account_holders.here()
        site_settings.add("blog", [website.origin], scheme=settings.scheme, now=now)
        eve = account_holders.account("eve", moderator("blog"))
        foreign = moderators.begun(eve, "blog", origin=website.origin).token
    tab = moderating(json.dumps({**json.loads(session), "token": foreign}))
    tab.expect_status(401)
    expect(tab.page.get_by_text("Your moderation session was ended")).to_be_visible()
    expect(held(tab.page)).to_have_count(0)


@pytest.mark.parametrize("kept", ['"text"', '{"token": 5}', '{"token": "m.\\n"}', "{", "[]"])
def test_a_damaged_session_is_ignored(moderating: Callable[..., Tab], say: Say, kept: str) -> None:
    say("visible")
    page = moderating(kept).page
    assert "Hide" not in choices(comment(page, "visible"))
    expect(bar(page)).to_have_count(0)


def test_an_owner_ends_moderation_and_pages_offer_it_no_more(
    moderating: Callable[..., Tab], open_store: connection.Store, hold: Hold
) -> None:
    one = hold("held")
    tab = moderating()
    page = tab.page
    expect(held(page)).to_be_visible()
    with open_store.context():
        site_settings.change("demo", options={"moderation": False})
    tab.expect_status(403)
    held(page).get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Moderation in the thread is turned off")).to_be_visible()
    assert status(open_store, one) is Status.PENDING
    page.reload()
    expect(page.get_by_role("heading", name="0 comments")).to_be_visible()
    expect(page.get_by_role("button", name="Moderate here")).to_have_count(0)


def test_the_code_is_typed_if_the_window_is_blocked(
    server: str, website: Website, open_tab: OpenTab, bob: accounts.Account, hold: Hold
) -> None:
    hold("held")
    blocked = "<script>window.open = () => null</script>"
    page = open_tab(website.put("blocked", blocked + widget(server))).page
    offer(page).click()
    panel = page.locator(".ft-end")
    with page.expect_popup() as opened:
        panel.get_by_role("link", name="Open moderation window").click()
    window = opened.value
    sign_in(window)
    window.get_by_role("button", name="Moderate here").click()
    panel.get_by_label("Code").fill(window.locator(".ft-key").inner_text())
    page.keyboard.press("Enter")
    expect(bar(page)).to_be_focused()
    expect(held(page)).to_be_visible()


def test_a_moderator_changes_their_mind_before_the_window_answers(
    page_url: str, open_tab: OpenTab, say: Say
) -> None:
    say("visible")
    page = open_tab(page_url).page
    with page.expect_popup():
        offer(page).click()
    expect(page.get_by_label("Code")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_label("Code")).to_have_count(0)
    expect(page.get_by_role("button", name="Moderate here")).to_be_focused()


def test_a_bundle_or_call_that_fails_leaves_a_sentence_and_another_attempt(
    session: str, page_url: str, open_tab: OpenTab, hold: Hold, say: Say
) -> None:
    hold("held")
    say("visible")
    tab = open_tab(page_url)
    page = tab.page
    tab.expected += ["net::ERR_FAILED", "Flatthread: A call to"]
    page.route("**/widget/moderating-*", lambda route: route.abort(), times=1)
    offer(page).click()
    expect(page.get_by_text("The server did not respond.")).to_be_visible()
    page.evaluate("(kept) => sessionStorage.setItem('flatthread:moderator:demo', kept)", session)
    page.route("**/moderation/comments?*", lambda route: route.abort(), times=1)
    page.get_by_role("button", name="Moderate here").click()
    expect(bar(page).get_by_role("alert")).to_have_text("The server did not respond.")
    bar(page).get_by_role("button", name="Try again").click()
    page.route("**/decision", lambda route: route.abort(), times=1)
    held(page).get_by_role("button", name="Approve").click()
    expect(held(page).get_by_role("alert")).to_have_text("The server did not respond.")
    held(page).get_by_role("button", name="Approve").click()
    expect(page.locator(".ft-said", has_text="You approved Eve's comment.")).to_be_visible()


def test_another_tab_does_not_moderate(
    moderating: Callable[..., Tab], page_url: str, open_tab: OpenTab, hold: Hold, say: Say
) -> None:
    hold("held")
    say("visible")
    expect(held(moderating().page)).to_be_visible()
    other = open_tab(page_url).page
    expect(comment(other, "visible")).to_be_visible()
    expect(bar(other)).to_have_count(0)
