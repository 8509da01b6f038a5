"""New comments are announced while the page is visible, and shown only when the reader asks.

The tests move the browser's clock; nothing waits for real minutes.
"""

import dataclasses
from datetime import UTC, datetime

import flask
import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.domain import records
from comments.reading.compaction import compactor
from comments.sites import site_settings
from comments.store import connection
from datastore_emulator import inprocess, testing
from tests.browser import route_holding, widget_form
from tests.browser.conftest import OpenTab, Say, Tab
from tests.browser.test_conversation import bodies, comment
from tests.support.threads import sample_threads, sample_votes

pytestmark = pytest.mark.browser

SECONDS = 60  # The site's time between two polls
HIDE = """(state) => {
  Object.defineProperty(document, "visibilityState", { configurable: true, get: () => state });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


@dataclasses.dataclass(frozen=True)
class Asked:
    """A request for a page of comments as the server saw it."""

    condition: str | None
    status: int


@pytest.fixture
def asked(app: flask.Flask) -> list[Asked]:
    found: list[Asked] = []

    @app.after_request
    def note(response: flask.Response) -> flask.Response:
        if flask.request.path.endswith("/comments") and flask.request.method == "GET":
            condition = flask.request.headers.get("If-None-Match")
            found.append(Asked(condition, response.status_code))
        return response

    return found


@pytest.fixture
def live(open_store: connection.Store, site: records.Site) -> int:
    """Let the site's pages check for new comments."""
    with open_store.context():
        site_settings.change("demo", options={"live": SECONDS})
    return SECONDS


def opened(open_tab: OpenTab, url: str) -> Tab:
    tab = open_tab("about:blank")
    tab.page.clock.install()
    tab.page.goto(url)
    expect(tab.page.get_by_role("heading", name="comment")).to_be_visible()
    return tab


def poll(page: playwright.Page, seconds: int = SECONDS) -> None:
    """Advance the clock to the next poll, and wait for its response."""
    with page.expect_response(lambda answer: "/comments?" in answer.url) as answer:
        page.clock.run_for(seconds * 1000)
    answer.value.finished()
    page.evaluate("fetch('/widget/icon.svg').then((icon) => icon.text())")  # And it was read


def bar(page: playwright.Page) -> playwright.Locator:
    return page.get_by_role("button", name="new comment")


def test_new_comments_are_a_bar_and_appear_when_the_reader_asks(
    server: str, live: int, open_tab: OpenTab, say: Say
) -> None:
    one = say("one")
    page = opened(open_tab, server).page
    below = say("one.one", parent=one, name="Bob")
    say("one.one.one", parent=below, name="Cy")
    say("two")

    poll(page)

    expect(bar(page)).to_have_text("3 new comments")
    expect(page.get_by_role("status")).to_have_text("3 new comments")
    expect(comment(page, "one").get_by_role("button", name="2 new replies")).to_be_visible()
    expect(page.get_by_role("heading", name="1 comment")).to_be_visible()
    assert bodies(page) == ["one"]
    bar(page).focus()
    page.keyboard.press("Enter")
    expect(comment(page, "one.one")).to_be_focused()
    assert bodies(page) == ["one", "one.one", "one.one.one", "two"]
    expect(page.get_by_role("heading", name="4 comments")).to_be_visible()
    expect(bar(page)).to_have_count(0)
    expect(page.get_by_role("button", name="new repl")).to_have_count(0)
    collapse = page.get_by_role("button", name="Collapse Ada's comment")
    expect(collapse).to_be_visible()


def test_an_own_vote_counts_once_when_new_comments_arrive_with_counted_votes(
    server: str, live: int, open_tab: OpenTab, open_store: connection.Store, say: Say
) -> None:
    say("one")
    page = opened(open_tab, server).page
    comment(page, "one").get_by_role("button", name="Upvote Ada's comment").click()
    expect(comment(page, "one").locator(".ft-votes[aria-disabled]")).to_have_count(0)
    with open_store.context():
        sample_votes.count_all(datetime.now(UTC).replace(year=2100))
    say("two")
    poll(page)
    bar(page).click()
    expect(comment(page, "two")).to_be_visible()
    expect(comment(page, "one").locator(".ft-score")).to_have_text("1")


def test_new_replies_are_counted_at_the_lowest_visible_comment_above_them(
    server: str, live: int, open_tab: OpenTab, say: Say
) -> None:
    one = say("one")
    below = say("one.one", parent=one, name="Bob")
    say("two")
    page = opened(open_tab, server).page
    say("one.one.one", parent=below, name="Cy")
    say("one.two", parent=one, name="Cy")
    say("one.three", parent=one, name="Cy")
    poll(page)
    expect(comment(page, "one").get_by_role("button", name="new repl")).to_have_text(
        "2 new replies"
    )
    at_reply = comment(page, "one.one").get_by_role("button", name="new repl")
    expect(at_reply).to_have_text("1 new reply")
    at_reply.click()
    expect(comment(page, "one.one.one")).to_be_focused()
    assert bodies(page) == ["one", "one.one", "one.one.one", "one.two", "one.three", "two"]


def test_new_discussions_beyond_the_page_are_shown_newest_first(
    server: str, live: int, open_tab: OpenTab, say: Say
) -> None:
    for number in range(51):
        say(f"comment {number}")
    page = opened(open_tab, server).page
    say("latest")
    poll(page)
    bar(page).click()
    expect(comment(page, "latest")).to_be_focused()
    assert bodies(page)[0] == "latest"


def test_a_poll_is_conditional_and_polls_become_rare_while_nothing_changes(
    server: str, live: int, asked: list[Asked], open_tab: OpenTab, say: Say
) -> None:
    say("one")
    page = opened(open_tab, server).page
    assert [each.condition for each in asked] == [None]
    for factor in (1, 2, 4, 8, 16, 16):
        page.clock.run_for((live * factor - 1) * 1000)
        before = len(asked)
        poll(page, 2)
        page.clock.run_for(0)
        assert len(asked) == before + 1, factor
        assert asked[-1].condition is not None
        assert asked[-1].status == 304
    say("two")
    poll(page, live * 16)
    expect(bar(page)).to_have_text("1 new comment")
    assert asked[-1].status == 200
    poll(page, live)
    assert asked[-1].status == 304


def test_a_poll_repeats_no_news_and_takes_no_focus(
    server: str, live: int, open_tab: OpenTab, say: Say
) -> None:
    say("one")
    say("two")
    page = opened(open_tab, server).page
    form = widget_form.opened(page)
    form.get_by_role("textbox", name="Comment").press_sequentially("I am ")
    say("three")
    poll(page)
    expect(bar(page)).to_have_text("1 new comment")
    page.keyboard.type("typing")
    expect(form.get_by_role("textbox", name="Comment")).to_have_value("I am typing")
    bar(page).focus()
    page.get_by_role("status").evaluate("node => { node.textContent = ''; }")
    poll(page)
    expect(page.get_by_role("status")).to_have_text("")
    say("four")
    poll(page, live * 2)
    expect(bar(page)).to_have_text("2 new comments")
    expect(bar(page)).to_be_focused()
    page.get_by_role("button", name="Sort").focus()
    say("five")
    poll(page)
    expect(bar(page)).to_have_text("3 new comments")
    expect(page.get_by_role("button", name="Sort")).to_be_focused()


def test_a_hidden_page_asks_nothing_and_begins_again_when_it_is_shown(
    server: str, live: int, asked: list[Asked], open_tab: OpenTab, say: Say
) -> None:
    say("one")
    page = opened(open_tab, server).page
    poll(page)
    page.evaluate(HIDE, "hidden")
    page.clock.run_for(100 * live * 1000)
    assert len(asked) == 2
    page.evaluate(HIDE, "visible")
    poll(page, live)
    # Each return replaces the planned poll, so that there are never two.
    for _ in range(5):
        page.evaluate(HIDE, "hidden")
        page.evaluate(HIDE, "visible")
        page.evaluate("dispatchEvent(new Event('online'))")
    poll(page, live)
    assert len(asked) == 4


@pytest.mark.parametrize("seconds", [0, 300])
def test_the_site_chooses_the_time_between_polls_or_none(
    server: str,
    asked: list[Asked],
    open_tab: OpenTab,
    say: Say,
    open_store: connection.Store,
    seconds: int,
) -> None:
    say("one")
    with open_store.context():
        site_settings.change("demo", options={"live": seconds})
    page = opened(open_tab, server).page
    page.clock.run_for(299 * 1000)
    assert len(asked) == 1
    if seconds:
        poll(page, 2)
    else:
        page.clock.run_for(24 * 60 * 60 * 1000)
    assert len(asked) == (2 if seconds else 1)


def test_a_failed_poll_is_reported_until_one_succeeds(
    server: str, live: int, open_tab: OpenTab, say: Say
) -> None:
    say("one")
    tab = opened(open_tab, server)
    tab.expected.append("net::ERR_FAILED")
    page = tab.page
    page.route("**/comments?*", lambda route: route.abort(), times=2)
    for seconds in (live, 2 * live):
        with page.expect_event("requestfailed"):
            page.clock.run_for(seconds * 1000)
    failure = page.get_by_role("alert").filter(has_text="The server did not respond.")
    expect(failure).to_have_count(1)
    expect(comment(page, "one")).to_be_visible()
    say("two")
    failure.get_by_role("button", name="Try again").click()
    expect(bar(page)).to_have_text("1 new comment")
    expect(failure).to_have_count(0)


def test_news_that_cannot_be_loaded_stay_on_offer(
    server: str, live: int, open_tab: OpenTab, say: Say
) -> None:
    say("one")
    tab = opened(open_tab, server)
    tab.expected.append("net::ERR_FAILED")
    say("two")
    poll(tab.page)
    expect(bar(tab.page)).to_be_visible()
    tab.page.route("**/comments?*", lambda route: route.abort(), times=1)
    bar(tab.page).click()
    failure = tab.page.get_by_role("alert").filter(has_text="The server did not respond.")
    expect(failure).to_be_visible()
    expect(bar(tab.page)).to_be_visible()
    failure.get_by_role("button", name="Try again").click()
    expect(comment(tab.page, "two")).to_be_focused()
    expect(bar(tab.page)).to_have_count(0)
    expect(failure).to_have_count(0)


def test_a_removed_thread_polls_no_more(
    server: str, live: int, asked: list[Asked], open_tab: OpenTab, say: Say
) -> None:
    """Neither the planned poll nor a running one schedules another."""
    say("one")
    page = opened(open_tab, server).page
    held: list[playwright.Route] = []
    page.route("**/comments?*", lambda route: held.append(route))  # noqa: PLW0108 - plain function
    with page.expect_request("**/comments?*"):
        page.clock.run_for(live * 1000)
    page.evaluate("document.querySelector('#flatthread').remove()")
    route_holding.wait_until_sent(page, held)
    with page.expect_response("**/comments?*"):
        held[0].continue_()
    page.clock.run_for(100 * live * 1000)
    assert len(asked) == 2
    assert len(held) == 1


def test_a_poll_of_a_compacted_thread_costs_at_most_one_read(
    server: str,
    live: int,
    open_tab: OpenTab,
    say: Say,
    open_store: connection.Store,
    engine: inprocess.Engine,
) -> None:
    for number in range(5):
        say(f"comment {number}")
    with open_store.context():
        compactor.compact(sample_threads.SETTINGS.scheme, records.ThreadName("demo", "demo"))
    page = opened(open_tab, server).page
    poll(page)  # Fills the caches of this process
    for _ in range(3):
        page.evaluate(HIDE, "visible")  # The next poll is due at the shortest time again
        with testing.meter(engine) as cost:
            poll(page, live)
        assert cost.reads + cost.empty <= 1
        assert (cost.writes, cost.deletes) == (0, 0)
