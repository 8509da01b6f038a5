"""Readers find their way: they sort, collapse, follow deep replies, mute, share and use menus."""

from datetime import UTC, datetime, timedelta

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.domain import records
from comments.moderation import decisions
from comments.posting import admission, new_comment
from comments.store import connection
from tests.browser.conftest import OpenTab, Say, Website
from tests.browser.test_conversation import bodies, choices, choose, comment, write
from tests.support.threads import sample_threads

pytestmark = pytest.mark.browser

PHONE = {"width": 375, "height": 800}


def sort_by(page: playwright.Page, order: str) -> None:
    page.get_by_role("button", name="Sort").click()
    page.get_by_role("menuitemradio", name=order).click()


def test_times_are_compared_with_the_servers_clock(
    page_url: str, open_tab: OpenTab, say: Say
) -> None:
    say("new")
    page = open_tab("about:blank").page
    page.clock.set_fixed_time(datetime.now(UTC) + timedelta(hours=1, minutes=1))
    page.goto(page_url)
    expect(comment(page, "new").locator("time")).to_have_text("just now")


def test_the_order_can_be_chosen_and_is_remembered(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    for body in ("first", "second", "third"):
        say(body)
    page = open_tab(server).page
    expect(comment(page, "third")).to_be_visible()
    assert bodies(page) == ["first", "second", "third"]

    sort_by(page, "Newest")

    expect(page.locator(".ft-body").first).to_have_text("third")
    assert bodies(page) == ["third", "second", "first"]
    page.reload()
    expect(page.locator(".ft-body").first).to_have_text("third")
    expect(page.get_by_role("button", name="Sort: Newest")).to_be_visible()
    page.get_by_role("button", name="Sort").click()
    expect(page.get_by_role("menuitemradio", name="Newest")).to_have_attribute(
        "aria-checked", "true"
    )


def test_menus_work_with_the_keyboard(server: str, open_tab: OpenTab, say: Say) -> None:
    say("one")
    page = open_tab(server).page
    opener = comment(page, "one").get_by_role("button", name="More actions")
    opener.focus()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("menuitem", name="Collapse")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("menuitem", name="Mute Ada")).to_be_focused()
    page.keyboard.press("End")
    expect(page.get_by_role("menuitem", name="Report")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("menuitem", name="Collapse")).to_be_focused()
    page.keyboard.press("m")
    expect(page.get_by_role("menuitem", name="Mute Ada")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_have_count(0)
    expect(opener).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(page.get_by_role("menuitem", name="Report")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("menu")).to_have_count(0)


@pytest.mark.parametrize("direction", ["ltr", "rtl"])
def test_a_menu_stays_inside_the_window(
    server: str, website: Website, open_tab: OpenTab, say: Say, direction: str
) -> None:
    parent = None
    for name in ("one", "two", "three", "four"):
        parent = say(name, parent=parent, name="A rather long name of an author")
    html = (
        f'<!doctype html><html lang="de" dir="{direction}"><body style="margin: 0">'
        f'<script type="module" src="{server}/widget/flatthread.js" data-site="demo"></script>'
        '<div id="flatthread" data-thread="demo"></div>'
    )
    page = open_tab(website.put("narrow", html), viewport={"width": 320, "height": 800}).page
    comment(page, "four").get_by_role("button", name="Weitere Aktionen").click()
    box = page.get_by_role("menu").bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 320


def test_a_click_elsewhere_closes_a_menu(server: str, open_tab: OpenTab, say: Say) -> None:
    say("one")
    page = open_tab(server).page
    comment(page, "one").get_by_role("button", name="More actions").click()
    expect(page.get_by_role("menu")).to_be_visible()
    page.get_by_role("heading", name="1 comment").click()
    expect(page.get_by_role("menu")).to_have_count(0)


def test_replies_collapse_by_button_and_by_line_and_stay_so_after_a_reload(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    one = say("one")
    below = say("one.one", name="Bob", parent=one)
    say("one.one.one", name="Cy", parent=below)
    say("two")
    page = open_tab(server).page
    expect(comment(page, "one.one.one")).to_be_visible()

    comment(page, "one").get_by_role("button", name="Collapse Ada's comment").click()

    expect(page.get_by_role("listitem")).to_have_count(2)
    toggle = page.get_by_role("button", name="Expand Ada's comment")
    expect(toggle).to_have_text("2 replies")
    expect(toggle).to_have_attribute("aria-expanded", "false")
    expect(page.locator(".ft-body").first).to_be_hidden()
    page.reload()
    expect(toggle).to_have_text("2 replies")
    toggle.click()
    expect(comment(page, "one.one.one")).to_be_visible()

    # The outer line beside the deepest reply belongs to the root.
    line = comment(page, "one.one.one").locator(".ft-gutter")
    box = line.bounding_box()
    assert box is not None
    line.click(position={"x": 2, "y": box["height"] / 2})
    expect(page.get_by_role("listitem")).to_have_count(2)
    page.get_by_role("button", name="Expand Ada's comment").click()
    line.click(position={"x": box["width"] - 2, "y": box["height"] / 2})
    expect(page.get_by_role("listitem")).to_have_count(3)
    expect(page.get_by_role("button", name="Expand Bob's comment")).to_have_text("1 reply")


def test_deep_replies_are_shown_alone(server: str, open_tab: OpenTab, say: Say) -> None:
    parent = None
    for level in range(12):
        parent = say(f"level {level}", parent=parent)
    say("another root")
    page = open_tab(server, viewport=PHONE).page
    expect(page.get_by_role("listitem")).to_have_count(7)

    page.get_by_role("button", name="Continue this thread").click()

    expect(page.get_by_role("listitem")).to_have_count(7)
    expect(comment(page, "level 11")).to_be_visible()
    expect(comment(page, "level 0")).to_be_hidden()
    expect(comment(page, "level 5")).to_be_focused()
    page.get_by_role("button", name="Back to all comments").click()
    expect(comment(page, "level 0")).to_be_visible()
    expect(page.get_by_role("listitem")).to_have_count(7)
    expect(comment(page, "level 5")).to_be_focused()


def test_a_permalink_to_a_deep_reply_shows_it(server: str, open_tab: OpenTab, say: Say) -> None:
    parent = None
    for level in range(12):
        parent = say(f"level {level}", parent=parent)
    page = open_tab(f"{server}/#comment-{parent}", viewport=PHONE).page
    expect(comment(page, "level 11")).to_be_focused()
    expect(page.get_by_role("button", name="Back to all comments")).to_be_visible()


def test_a_very_long_comment_is_shortened(server: str, open_tab: OpenTab, say: Say) -> None:
    say("\n\n".join(f"paragraph {number}" for number in range(60)))
    page = open_tab(server).page
    box = page.locator(".ft-body").bounding_box()
    assert box is not None
    assert box["height"] < 500
    page.get_by_role("button", name="Show more").click()
    expect(page.get_by_role("button", name="Show more")).to_have_count(0)
    whole = page.locator(".ft-body").bounding_box()
    assert whole is not None
    assert whole["height"] > 1000


def test_a_muted_author_is_hidden_in_this_browser_only(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    say("loud", name="Bob")
    say("still loud", name="Bob")
    say("quiet", name="Cy")
    page = open_tab(server).page
    choose(comment(page, "loud"), "Mute Bob")
    expect(page.get_by_text("You muted Bob.")).to_have_count(2)
    assert bodies(page)[-1] == "quiet"
    page.reload()
    expect(page.get_by_text("You muted Bob.")).to_have_count(2)
    page.get_by_role("button", name="Show", exact=True).first.click()
    expect(comment(page, "still loud")).to_be_visible()
    other = open_tab(server, viewport={"width": 900, "height": 700}).page
    expect(comment(other, "still loud")).to_be_visible()


def test_the_link_to_a_comment_can_be_copied(server: str, open_tab: OpenTab, say: Say) -> None:
    wanted = say("one")
    page = open_tab(server, permissions=["clipboard-read", "clipboard-write"]).page
    comment(page, "one").get_by_role("button", name="Share Ada's comment").click()
    expect(page.get_by_role("status")).to_have_text("Link copied.")
    assert page.evaluate("navigator.clipboard.readText()") == f"{server}/#comment-{wanted}"


def test_without_a_clipboard_the_link_is_in_the_address(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    wanted = say("one")
    page = open_tab(server).page
    page.evaluate("delete Navigator.prototype.clipboard")
    comment(page, "one").get_by_role("button", name="Share Ada's comment").click()
    expect(page.get_by_role("status")).to_have_text("The link is now in the address bar.")
    expect(page).to_have_url(f"{server}/#comment-{wanted}")


def test_comments_since_the_last_visit_are_marked(server: str, open_tab: OpenTab, say: Say) -> None:
    say("old")
    page = open_tab(server).page
    expect(comment(page, "old")).to_be_visible()
    expect(page.get_by_text("New", exact=True)).to_have_count(0)
    say("recent")
    page.reload()
    expect(comment(page, "recent").get_by_text("New", exact=True)).to_be_visible()
    expect(comment(page, "old").get_by_text("New", exact=True)).to_have_count(0)


def test_a_new_comment_is_below_the_form_and_leads_to_its_place(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    for number in range(60):
        say(f"comment {number}")
    page = open_tab(server).page
    write(page, "mine", name="Grace")
    mine = comment(page, "mine")
    expect(mine).to_be_focused()
    expect(mine).to_be_in_viewport()
    assert bodies(page)[0] == "mine"

    mine.get_by_role("button", name="View in thread").click()

    expect(page.get_by_role("button", name="Show all comments")).to_be_visible()
    assert bodies(page)[-1] == "mine"
    expect(comment(page, "mine")).to_be_focused()
    assert choices(comment(page, "mine"))[0] == "Edit"


def test_a_comment_can_be_reported(server: str, open_tab: OpenTab, say: Say) -> None:
    say("buy pills", name="Bob")
    page = open_tab(server).page
    choose(comment(page, "buy pills"), "Report")
    page.get_by_role("button", name="Report comment").click()
    expect(page.get_by_text("Choose a reason first.")).to_be_visible()
    page.get_by_role("radio", name="Spam or advertising").check()
    with page.expect_response(lambda answer: answer.url.endswith("/report")) as reported:
        page.get_by_role("button", name="Report comment").click()
    assert reported.value.status == 202
    expect(page.get_by_role("status")).to_contain_text("The moderators will look at this comment.")
    expect(page.get_by_role("radio")).to_have_count(0)


def test_readers_erase_everything_about_themselves(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    say("of somebody else", name="Bob")
    page = open_tab(server).page
    write(page, "mine", name="Grace")
    page.get_by_role("button", name="Your menu, Grace").click()
    page.get_by_role("menuitem", name="Delete my comments and data").click()
    expect(page.get_by_role("button", name="Keep everything")).to_be_focused()
    page.get_by_role("button", name="Delete everything").click()
    expect(comment(page, "mine")).to_have_count(0)
    expect(page.get_by_role("heading", name="1 comment")).to_be_visible()
    assert "Grace" not in page.evaluate("JSON.stringify(localStorage)")
    page.reload()
    expect(comment(page, "of somebody else")).to_be_visible()
    expect(comment(page, "mine")).to_have_count(0)


def test_a_moderators_pinned_comment_is_marked_above_the_list(
    server: str, site: records.Site, open_tab: OpenTab, say: Say, open_store: connection.Store
) -> None:
    say("first")
    author = records.Author("Mia", is_staff=True)
    draft = admission.Submission("demo", None, author, "please read")
    with open_store.context():
        pinned = new_comment.post(draft, sample_threads.request(site)).comment.id
        decisions.decide(
            "demo", pinned, records.Verb.PIN, records.Actor("cli", "Ann"), now=sample_threads.START
        )
    page = open_tab(server).page
    card = page.get_by_role("article", name="Pinned comment by Mia")
    expect(card).to_contain_text("please read")
    expect(card.get_by_text("Moderator", exact=True)).to_be_visible()
    card.get_by_role("button", name="View in thread").click()
    expect(comment(page, "please read")).to_be_focused()
