"""Long and deep threads can be paged through, and permalinks open a single comment."""

import random

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.domain import records
from comments.domain.ids import sorthash
from comments.store import connection
from comments.store.models import comment_rows
from comments.tree.lists import ordered_query
from comments.upkeep.migrations import rescheming
from tests.browser.conftest import OpenTab, Say
from tests.support.importing import uploading
from tests.support.importing.samples import flatthread
from tests.support.threads import sample_threads

pytestmark = pytest.mark.browser

SEED = 7


def shown(page: playwright.Page) -> list[str]:
    return page.get_by_role("listitem").evaluate_all(
        "nodes => nodes.map((node) => node.dataset.id)"
    )


def stored(store: connection.Store) -> list[str]:
    with store.context():
        return [row.id for row in ordered_query.thread(records.ThreadName("demo", "demo"))]


@pytest.fixture
def long_thread(say: Say) -> list[str]:
    """Post 123 comments (roots and replies to recent comments); return the ids in posting order."""
    rng = random.Random(SEED)
    ids: list[str] = []
    for number in range(123):
        parent = rng.choice([None, *ids[-10:]])
        ids.append(say(f"comment {number}", parent=parent))
    return ids


def test_every_comment_is_shown_once_in_order_by_loading_more(
    server: str, open_tab: OpenTab, long_thread: list[str], open_store: connection.Store
) -> None:
    page = open_tab(server).page
    more = page.get_by_role("button", name="Load more comments")
    expect(page.get_by_role("heading", name="123 comments")).to_be_visible()
    expect(page.get_by_role("listitem")).to_have_count(50)
    for count in (100, 123):
        more.press("Enter")  # A click misses if the layout changes before the button is released.
        expect(page.get_by_role("listitem")).to_have_count(count)
    expect(more).to_have_count(0)
    assert shown(page) == stored(open_store)


def test_a_thread_that_has_moved_to_another_scheme_starts_again(
    server: str, open_tab: OpenTab, long_thread: list[str], open_store: connection.Store
) -> None:
    tab = open_tab(server)
    tab.expect_status(410)
    page = tab.page
    more = page.get_by_role("button", name="Load more comments")
    more.click()
    expect(page.get_by_role("listitem")).to_have_count(100)
    with open_store.context():
        rescheming.begin(
            "demo", sorthash.Scheme(levels=3), sample_threads.ADA, now=sample_threads.START
        )
        rescheming.run_to_end("demo")
    more.click()
    expect(page.get_by_role("listitem")).to_have_count(50)
    expect(page.get_by_role("alert")).to_have_count(0)
    for count in (100, 123):
        more.press("Enter")  # A click misses if the layout changes before the button is released.
        expect(page.get_by_role("listitem")).to_have_count(count)
    assert shown(page) == stored(open_store)


def test_a_comment_posted_before_the_rest_was_loaded_is_shown_once(
    server: str, open_tab: OpenTab, long_thread: list[str], open_store: connection.Store
) -> None:
    page = open_tab(server).page
    form = page.get_by_role("form", name="Write a comment")
    form.get_by_role("textbox", name="Comment").fill("the newest root")
    form.get_by_role("textbox", name="Name").fill("Grace")
    form.get_by_role("button", name="Post comment").click()
    newest = page.get_by_role("listitem", name="Comment by Grace")
    expect(newest).to_be_focused()
    expect(page.get_by_role("listitem")).to_have_count(51)

    more = page.get_by_role("button", name="Load more comments")
    for count in (101, 124):
        more.click()
        expect(page.get_by_role("listitem")).to_have_count(count)
    expect(page.get_by_role("heading", name="124 comments")).to_be_visible()
    assert shown(page) == stored(open_store)
    expect(newest).to_have_count(1)


def test_the_focus_moves_to_the_first_loaded_comment(
    server: str, open_tab: OpenTab, long_thread: list[str]
) -> None:
    page = open_tab(server).page
    more = page.get_by_role("button", name="Load more comments")
    more.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("listitem").nth(50)).to_be_focused()
    expect(page.get_by_role("status")).to_have_text("50 more comments loaded.")


def test_a_failed_page_can_be_requested_again(
    server: str, open_tab: OpenTab, long_thread: list[str]
) -> None:
    tab = open_tab(server)
    tab.expected.append("net::ERR_FAILED")
    more = tab.page.get_by_role("button", name="Load more comments")
    tab.page.route("**/comments?*cursor=*", lambda route: route.abort(), times=1)
    more.click()
    expect(tab.page.get_by_role("alert").filter(has_text="did not respond")).to_be_visible()
    more.click()
    expect(tab.page.get_by_role("listitem")).to_have_count(100)
    expect(tab.page.get_by_role("alert").filter(has_text="did not respond")).to_have_count(0)


def test_a_permalink_opens_the_page_with_its_comment(
    server: str, open_tab: OpenTab, long_thread: list[str]
) -> None:
    wanted = long_thread[-1]
    page = open_tab(f"{server}/#comment-{wanted}").page
    target = page.locator(f"li[data-id='{wanted}']")
    expect(target).to_be_in_viewport()
    expect(target).to_be_focused()

    page.get_by_role("button", name="Show all comments").click()
    expect(page.get_by_role("listitem")).to_have_count(50)
    expect(page.get_by_role("button", name="Show all comments")).to_have_count(0)
    expect(page).to_have_url(f"{server}/")


def test_a_permalink_of_another_flatthread_opens_the_page_with_its_comment(
    server: str, open_tab: OpenTab, open_store: connection.Store
) -> None:
    ids = [comment_rows.comment_id(f"{number:016}".encode()) for number in range(120)]
    lines = (
        flatthread.comment("a", number, id=each, thread="demo", text=f"moved {number}")
        for number, each in enumerate(ids)
    )
    data = flatthread.ended(flatthread.lines(flatthread.thread("demo", url=""), *lines))
    with open_store.context():
        assert uploading.imported("demo", data).added == len(ids)
    page = open_tab(f"{server}/#comment-{ids[-1]}").page
    target = page.get_by_role("listitem").filter(has_text="moved 119")
    expect(target).to_be_in_viewport()
    expect(target).to_be_focused()
    page.evaluate("id => { location.hash = `comment-${id}`; }", ids[13])
    expect(page.get_by_role("listitem").filter(has_text="moved 13")).to_be_focused()


def test_the_time_of_a_comment_is_its_permalink(
    server: str, open_tab: OpenTab, long_thread: list[str]
) -> None:
    page = open_tab(server).page
    third = page.get_by_role("listitem").nth(2)
    wanted = third.get_attribute("data-id")
    third.locator("a.ft-time").click()
    expect(page).to_have_url(f"{server}/#comment-{wanted}")
    expect(third).to_be_focused()


def test_an_unknown_permalink_shows_the_thread(server: str, open_tab: OpenTab, say: Say) -> None:
    say("still here")
    tab = open_tab("about:blank")
    tab.expect_status(404)
    tab.page.goto(f"{server}/#comment-{'a' * 26}")
    expect(tab.page.get_by_text("still here")).to_be_visible()
    expect(tab.page.get_by_role("button", name="Show all comments")).to_have_count(0)


def test_ten_levels_are_readable_on_a_phone(server: str, open_tab: OpenTab, say: Say) -> None:
    parent = None
    for level in range(10):
        parent = say(f"level {level} with some words to break into lines", parent=parent)
    page = open_tab(server, viewport={"width": 360, "height": 740}).page
    expect(page.get_by_role("listitem")).to_have_count(6)
    page.get_by_role("button", name="Continue this thread").click()
    expect(page.get_by_role("listitem")).to_have_count(5)

    widths = [box.bounding_box()["width"] for box in page.locator(".ft-body:visible").all()]
    assert min(widths) > 180
    assert widths == sorted(widths, reverse=True)
    assert page.evaluate("document.documentElement.scrollWidth") == 360


def test_at_the_deepest_level_a_reply_names_its_parents_author(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    parent = None
    for level in range(8):
        parent = say(f"level {level}", parent=parent)
    deepest = say("deepest", name="Grace", parent=parent)
    say("an answer to Grace", name="Tony", parent=deepest)
    page = open_tab(server).page

    last = page.get_by_role("listitem", name="Reply by Tony to Grace")
    expect(last.locator(".ft-answered")).to_have_text("in reply to Grace")
    last.locator(".ft-answered a").click()
    expect(page.locator(f"li[data-id='{deepest}']")).to_be_focused()
