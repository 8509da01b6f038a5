"""Two tabs of one reader share votes, mutes, the order and drafts.

tests/browser/test_conversation.py has the tests of comments that are posted and edited in two tabs.
"""

import pytest
from playwright.sync_api import expect

from comments.store import connection
from tests.browser import widget_form
from tests.browser.conftest import OpenTab, Say
from tests.browser.test_conversation import bodies, choose, comment
from tests.browser.test_votes import cast, score, settled, up

pytestmark = pytest.mark.browser


def test_a_vote_in_one_tab_is_not_counted_again_in_the_other(
    server: str, open_tab: OpenTab, say: Say, open_store: connection.Store
) -> None:
    say("one")
    one, two = open_tab(server).page, open_tab(server).page
    expect(score(one, "one")).to_have_text("0")
    expect(score(two, "one")).to_have_text("0")
    up(one, "one").click()
    settled(one, "one")
    up(two, "one").click()
    settled(two, "one")
    assert cast(open_store) == [1]
    one.reload()
    expect(up(one, "one")).to_have_attribute("aria-pressed", "true")
    expect(score(one, "one")).to_have_text("1")
    up(one, "one").click()
    settled(one, "one")
    two.reload()
    expect(score(two, "one")).to_have_text("0")
    expect(up(two, "one")).to_have_attribute("aria-pressed", "false")


def test_mutes_and_the_order_are_those_of_the_last_tab(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    say("loud", name="Bob")
    say("quiet")
    one, two = open_tab(server).page, open_tab(server).page
    choose(comment(one, "loud"), "Mute Bob")
    expect(one.get_by_text("You muted Bob.")).to_be_visible()
    two.get_by_role("button", name="Sort: Oldest").click()
    two.get_by_role("menuitemradio", name="Newest").click()
    expect(two.get_by_role("button", name="Sort: Newest")).to_be_visible()
    for page in (one, two):
        page.reload()
        expect(page.get_by_text("You muted Bob.")).to_be_visible()
        expect(page.get_by_role("button", name="Sort: Newest")).to_be_visible()
        assert bodies(page)[0] == "quiet"


def test_a_draft_of_one_tab_is_in_a_later_tab_and_sending_it_keeps_the_others(
    server: str, open_tab: OpenTab
) -> None:
    one = open_tab(server).page
    widget_form.fill(widget_form.opened(one), "first text", "Ada")
    two = open_tab(server).page
    form = two.get_by_role("form", name="Write a comment")
    text = form.get_by_role("textbox", name="Comment")
    expect(text).to_have_value("first text")
    expect(form.get_by_role("button", name="Post comment")).to_be_visible()
    text.fill("second text")
    one.get_by_role("button", name="Post comment").click()
    expect(comment(one, "first text")).to_be_visible()
    expect(text).to_have_value("second text")
    two.reload()
    expect(text).to_have_value("second text")
