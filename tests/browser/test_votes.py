"""Readers vote by mouse and by keyboard, change votes, and see when the server refuses a vote."""

import re
from datetime import UTC, datetime

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.store import connection
from tests.browser import route_holding
from tests.browser.conftest import OpenTab, Say
from tests.browser.test_conversation import choose, comment, write
from tests.support.threads import sample_votes

pytestmark = pytest.mark.browser

UP, DOWN = re.compile("^Upvote "), re.compile("^Downvote ")


def score(page: playwright.Page, body: str) -> playwright.Locator:
    return comment(page, body).locator(".ft-score")


def up(page: playwright.Page, body: str) -> playwright.Locator:
    return comment(page, body).get_by_role("button", name=UP)


def down(page: playwright.Page, body: str) -> playwright.Locator:
    return comment(page, body).get_by_role("button", name=DOWN)


def settled(page: playwright.Page, body: str) -> None:
    expect(comment(page, body).locator(".ft-votes[aria-disabled]")).to_have_count(0)


def cast(store: connection.Store) -> list[int]:
    with store.context():
        return sorted(value for votes in sample_votes.cast().values() for value in votes.values())


def test_a_vote_is_shown_at_once_sent_once_and_can_be_withdrawn(
    server: str, open_tab: OpenTab, say: Say, open_store: connection.Store
) -> None:
    say("one")
    page = open_tab(server).page
    expect(score(page, "one")).to_have_text("0")

    up(page, "one").click()

    expect(score(page, "one")).to_have_text("1")
    expect(up(page, "one")).to_have_attribute("aria-pressed", "true")
    settled(page, "one")
    assert cast(open_store) == [1]
    down(page, "one").click()
    expect(score(page, "one")).to_have_text("-1")
    expect(up(page, "one")).to_have_attribute("aria-pressed", "false")
    settled(page, "one")
    assert cast(open_store) == [-1]
    down(page, "one").click()
    expect(score(page, "one")).to_have_text("0")
    settled(page, "one")
    assert cast(open_store) == []


def test_returning_readers_see_their_own_vote_and_everybody_the_score(
    server: str, open_tab: OpenTab, say: Say, open_store: connection.Store
) -> None:
    say("one")
    say("two")
    page = open_tab(server).page
    up(page, "one").click()
    down(page, "two").click()
    settled(page, "one")
    settled(page, "two")
    with open_store.context():
        sample_votes.count_all(datetime.now(UTC).replace(year=2100))
    page.reload()
    expect(up(page, "one")).to_have_attribute("aria-pressed", "true")
    expect(down(page, "two")).to_have_attribute("aria-pressed", "true")
    expect(score(page, "one")).to_have_text("1")
    expect(score(page, "two")).to_have_text("-1")
    # Both votes belong to one reader, who was unknown before the first vote.
    with open_store.context():
        assert len({voter for votes in sample_votes.cast().values() for voter in votes}) == 1
    other = open_tab(server, locale="en-GB").page
    expect(score(other, "one")).to_have_text("1")
    expect(up(other, "one")).to_have_attribute("aria-pressed", "false")
    up(other, "one").click()
    expect(score(other, "one")).to_have_text("2")
    settled(other, "one")
    assert cast(open_store) == [-1, 1, 1]


def test_a_vote_stays_visible_when_the_votes_before_it_arrive_late(
    server: str, open_tab: OpenTab, say: Say, open_store: connection.Store
) -> None:
    say("one")
    say("two")
    page = open_tab(server).page
    up(page, "one").click()
    settled(page, "one")
    waiting: list[playwright.Route] = []
    page.route("**/sites/demo/votes?*", lambda route: waiting.append(route))  # noqa: PLW0108 - a plain function
    page.reload()
    route_holding.wait_until_sent(page, waiting)
    before = waiting[0].fetch()
    up(page, "two").click()
    expect(score(page, "two")).to_have_text("1")
    waiting[0].fulfill(response=before)
    settled(page, "two")
    expect(up(page, "one")).to_have_attribute("aria-pressed", "true")
    expect(up(page, "two")).to_have_attribute("aria-pressed", "true")
    assert cast(open_store) == [1, 1]


def test_votes_are_cast_by_keyboard_and_the_focus_stays(
    server: str, open_tab: OpenTab, say: Say, open_store: connection.Store
) -> None:
    say("one")
    page = open_tab(server).page
    up(page, "one").focus()
    page.keyboard.press("Enter")
    expect(score(page, "one")).to_have_text("1")
    expect(up(page, "one")).to_be_focused()
    settled(page, "one")
    page.keyboard.press("Tab")
    expect(down(page, "one")).to_be_focused()
    page.keyboard.press("Space")
    expect(score(page, "one")).to_have_text("-1")
    expect(down(page, "one")).to_be_focused()
    settled(page, "one")
    expect(comment(page, "one").get_by_role("group", name="Score: -1")).to_be_visible()
    assert cast(open_store) == [-1]


def test_own_and_retracted_comments_have_no_vote_buttons(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    page = open_tab(server).page
    write(page, "mine")
    expect(score(page, "mine")).to_have_text("0")
    expect(up(page, "mine")).to_have_count(0)
    choose(comment(page, "mine"), "Edit")
    form = comment(page, "mine").get_by_role("form", name="Edit your comment")
    form.get_by_role("textbox", name="Comment").fill("still mine")
    form.get_by_role("button", name="Save changes").click()
    expect(up(page, "still mine")).to_have_count(0)


def test_a_refused_vote_is_not_shown_and_is_explained(
    server: str, open_tab: OpenTab, say: Say, open_store: connection.Store
) -> None:
    one = say("one")
    tab = open_tab(server)
    tab.expect_status(429)
    with open_store.context():
        posted = sample_votes.comment(one)
        for number in range(5):
            sample_votes.vote(posted, f"bob {number}", network="127.0.0.1", now=datetime.now(UTC))
    up(tab.page, "one").click()
    expect(comment(tab.page, "one").get_by_role("alert")).to_contain_text(
        "Too many votes on this comment came from your network."
    )
    expect(score(tab.page, "one")).to_have_text("0")
    expect(up(tab.page, "one")).to_have_attribute("aria-pressed", "false")
    assert cast(open_store) == [1] * 5
