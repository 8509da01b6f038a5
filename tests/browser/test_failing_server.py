"""A failed call shows a message and a way to try again, and never loses typed text.

Each test lets one of the widget's calls fail in all ways (tests/browser/faults.py), and then
succeed.
"""

import re

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from tests.browser import faults, widget_form
from tests.browser.conftest import OpenTab, Say
from tests.browser.test_conversation import bodies, choose, comment, write

pytestmark = pytest.mark.browser

LIST = "**/sites/demo/comments?*"
ONE = re.compile(r"/api/v1/comments/\w+$")


def told(page: playwright.Page | playwright.Locator, sentence: str) -> playwright.Locator:
    return page.get_by_role("alert").filter(has_text=sentence)


def test_the_thread(server: str, open_tab: OpenTab, say: Say) -> None:
    say("one")
    tab = open_tab("about:blank")
    for fault in faults.each(tab, LIST):
        tab.page.goto(server)
        expect(told(tab.page, "The comments could not be loaded.")).to_contain_text(fault.told)
    tab.page.get_by_role("button", name="Try again").click()
    expect(comment(tab.page, "one")).to_be_visible()


def test_more_pages(server: str, open_tab: OpenTab, say: Say) -> None:
    for number in range(51):
        say(f"comment {number}")
    tab = open_tab(server)
    more = tab.page.get_by_role("button", name="Load more comments")
    for fault in faults.each(tab, "**/comments?*cursor=*"):
        more.click()
        expect(told(tab.page, fault.told)).to_be_visible()
        expect(tab.page.get_by_role("listitem")).to_have_count(50)
    more.click()
    expect(tab.page.get_by_role("listitem")).to_have_count(51)
    expect(tab.page.get_by_role("alert").filter(has_text=re.compile("."))).to_have_count(0)


def test_a_different_order(server: str, open_tab: OpenTab, say: Say) -> None:
    say("one")
    say("two")
    tab = open_tab(server)
    page = tab.page
    expect(comment(page, "one")).to_be_visible()
    for fault in faults.each(tab, LIST):
        page.get_by_role("button", name="Sort: Oldest").click()
        page.get_by_role("menuitemradio", name="Newest").click()
        expect(told(page, fault.told)).to_be_visible()
        assert bodies(page) == ["one", "two"]
        again = page.get_by_role("button", name="Try again")
        with page.expect_request(LIST):
            again.click()
        expect(told(page, fault.told)).to_be_visible()
        expect(again).to_be_focused()
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_role("button", name="Sort: Newest")).to_be_visible()
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)
    assert bodies(page) == ["two", "one"]


def test_a_comment_on_a_page_that_is_not_loaded(server: str, open_tab: OpenTab, say: Say) -> None:
    for number in range(60):
        say(f"comment {number}")
    far = say("far away")
    tab = open_tab(server)
    page = tab.page
    expect(page.get_by_role("listitem")).to_have_count(50)
    for fault in faults.each(tab, "**/comments?*around=*"):
        page.evaluate("location.hash = ''")
        page.evaluate("(id) => { location.hash = `#comment-${id}`; }", far)
        expect(told(page, fault.told)).to_be_visible()
    page.get_by_role("button", name="Try again").click()
    expect(comment(page, "far away")).to_be_focused()


def test_a_post(server: str, open_tab: OpenTab) -> None:
    tab = open_tab(server)
    page = tab.page
    form = widget_form.opened(page)
    widget_form.fill(form, "not lost", "Ada")
    button = form.get_by_role("button", name="Post comment")
    for fault in faults.each(tab, LIST, "POST"):
        button.click()
        expect(told(form, fault.told)).to_contain_text("Your text is kept.")
        expect(form.get_by_role("textbox", name="Comment")).to_have_value("not lost")
    button.click()
    expect(comment(page, "not lost")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="1 comment")).to_be_visible()


def test_a_challenge_for_a_post(server: str, open_tab: OpenTab) -> None:
    """A challenge that failed while the reader was writing is requested again by the post."""
    tab = open_tab(server)
    for fault in faults.each(tab, "**/challenge*"):
        form = widget_form.opened(tab.page)
        widget_form.fill(form, "not lost", "Ada")
        form.get_by_role("button", name="Post comment").click()
        expect(told(form, fault.told)).to_contain_text("Your text is kept.")
        tab.page.reload()
    form = widget_form.opened(tab.page)
    expect(form.get_by_role("textbox", name="Comment")).to_have_value("not lost")
    for fault in faults.each(tab, "**/challenge*"):
        if fault.name == "cut":
            form.get_by_role("textbox", name="Comment").press_sequentially("!")
    form.get_by_role("button", name="Post comment").click()
    expect(comment(tab.page, "not lost!")).to_be_visible()


def test_a_reply_and_its_quote(server: str, open_tab: OpenTab, say: Say) -> None:
    say("one")
    tab = open_tab(server)
    page = tab.page
    page.get_by_role("button", name="Reply to Ada").click()
    form = page.get_by_role("form", name="Reply to Ada")
    form.get_by_role("button", name="Quote this comment").click()
    form.get_by_role("textbox", name="Comment").press_sequentially("not lost")
    form.get_by_role("textbox", name="Name").fill("Bob")
    for fault in faults.each(tab, LIST, "POST"):
        form.get_by_role("button", name="Post reply").click()
        expect(told(form, fault.told)).to_be_visible()
        expect(form.get_by_role("textbox", name="Comment")).to_have_value("> one\n\nnot lost")
    form.get_by_role("button", name="Post reply").click()
    expect(page.get_by_role("listitem", name="Reply by Bob to Ada")).to_be_visible()


def test_an_edit(server: str, open_tab: OpenTab) -> None:
    tab = open_tab(server)
    write(tab.page, "before")
    choose(comment(tab.page, "before"), re.compile("Edit"))
    form = tab.page.get_by_role("form", name="Edit your comment")
    form.get_by_role("textbox", name="Comment").fill("after")
    for fault in faults.each(tab, ONE, "PATCH"):
        form.get_by_role("button", name="Save changes").click()
        expect(told(form, fault.told)).to_contain_text("Your text is kept.")
        expect(form.get_by_role("textbox", name="Comment")).to_have_value("after")
    form.get_by_role("button", name="Save changes").click()
    expect(comment(tab.page, "after")).to_be_visible()


def test_a_deletion(server: str, open_tab: OpenTab) -> None:
    tab = open_tab(server)
    write(tab.page, "mine")
    choose(comment(tab.page, "mine"), "Delete")
    for fault in faults.each(tab, ONE, "DELETE"):
        tab.page.get_by_role("button", name="Delete comment").click()
        expect(told(tab.page, fault.told)).to_be_visible()
    tab.page.get_by_role("button", name="Delete comment").click()
    expect(comment(tab.page, "mine")).to_have_count(0)


def test_a_vote_and_its_withdrawal(server: str, open_tab: OpenTab, say: Say) -> None:
    say("one")
    tab = open_tab(server)
    one = comment(tab.page, "one")
    up = one.get_by_role("button", name="Upvote")
    for fault in faults.each(tab, "**/vote", "PUT"):
        up.click()
        expect(told(one, fault.told)).to_be_visible()
        expect(up).to_have_attribute("aria-pressed", "false")
        expect(one.locator(".ft-score")).to_have_text("0")
    up.click()
    expect(one.locator(".ft-votes:not([aria-disabled]) [aria-pressed=true]")).to_have_count(1)
    for fault in faults.each(tab, "**/vote", "DELETE"):
        up.click()
        expect(told(one, fault.told)).to_be_visible()
        expect(up).to_have_attribute("aria-pressed", "true")
        expect(one.locator(".ft-score")).to_have_text("1")
    up.click()
    expect(one.locator(".ft-score")).to_have_text("0")
    expect(told(one, "server")).to_have_count(0)


def test_the_code_that_sends_votes_and_opens_menus(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    say("one")
    tab = open_tab("about:blank")
    tab.expected += ["net::ERR_FAILED"]
    tab.page.route("**/widget/writer-*", lambda route: route.abort())
    tab.page.goto(server)
    one = comment(tab.page, "one")
    one.get_by_role("button", name="Upvote").click()
    expect(told(one, faults.SILENT)).to_be_visible()
    expect(one.locator(".ft-score")).to_have_text("0")
    one.get_by_role("button", name="More actions").click()
    expect(tab.page.get_by_role("status")).to_contain_text(faults.SILENT)
    expect(tab.page.get_by_role("status")).to_be_in_viewport()
    tab.page.unroute_all(behavior="wait")
    one.get_by_role("button", name="More actions").click()
    expect(one.get_by_role("menu")).to_be_visible()


@pytest.mark.parametrize("call", ["votes", "held"])
def test_the_readers_own_votes_and_pending_comments(
    server: str, open_tab: OpenTab, say: Say, call: str
) -> None:
    say("one", name="Bob")
    tab = open_tab(server)
    write(tab.page, "mine")
    up = comment(tab.page, "one").get_by_role("button", name="Upvote")
    up.click()
    expect(comment(tab.page, "one").locator("[aria-disabled]")).to_have_count(0)
    sentence = told(tab.page, "Your votes and pending comments could not be loaded.")
    for _ in faults.each(tab, f"**/sites/demo/{call}?*"):
        tab.page.reload()
        expect(sentence).to_be_visible()
        expect(comment(tab.page, "one")).to_be_visible()
    sentence.get_by_role("button", name="Try again").click()
    expect(sentence).to_have_count(0)
    expect(up).to_have_attribute("aria-pressed", "true")
    expect(comment(tab.page, "one").locator(".ft-score")).to_have_text("1")


def test_a_report(server: str, open_tab: OpenTab, say: Say) -> None:
    say("one")
    tab = open_tab(server)
    choose(comment(tab.page, "one"), "Report")
    tab.page.get_by_role("radio", name="Off topic").check()
    for fault in faults.each(tab, "**/report", "POST"):
        tab.page.get_by_role("button", name="Report comment").click()
        expect(told(tab.page, fault.told)).to_be_visible()
        expect(tab.page.get_by_role("radio", name="Off topic")).to_be_checked()
    tab.page.get_by_role("button", name="Report comment").click()
    expect(tab.page.get_by_role("status")).to_contain_text("Thank you.")


def test_an_erasure(server: str, open_tab: OpenTab, say: Say) -> None:
    say("of somebody else", name="Bob")
    tab = open_tab(server)
    write(tab.page, "mine", name="Grace")
    tab.page.get_by_role("button", name="Your menu, Grace").click()
    tab.page.get_by_role("menuitem", name="Delete my comments and data").click()
    for fault in faults.each(tab, "**/author", "DELETE"):
        tab.page.get_by_role("button", name="Delete everything").click()
        expect(told(tab.page, fault.told)).to_be_visible()
        expect(comment(tab.page, "mine")).to_be_visible()
    for fault in faults.each(tab, LIST):
        if fault.name == "cut":
            tab.page.get_by_role("button", name="Delete everything").click()
            expect(told(tab.page, fault.told)).to_be_visible()
            expect(tab.page.get_by_role("button", name="Delete everything")).to_have_count(0)
    tab.page.get_by_role("button", name="Try again").click()
    expect(comment(tab.page, "mine")).to_have_count(0)
    expect(comment(tab.page, "of somebody else")).to_be_visible()


def test_a_preview(server: str, open_tab: OpenTab) -> None:
    tab = open_tab(server)
    form = widget_form.opened(tab.page)
    form.get_by_role("textbox", name="Comment").fill("not lost")
    for fault in faults.each(tab, "**/preview", "POST"):
        form.get_by_role("button", name="Preview").click()
        expect(told(form, fault.told)).to_be_visible()
        expect(form.get_by_role("textbox", name="Comment")).to_have_value("not lost")
    form.get_by_role("button", name="Preview").click()
    expect(form.get_by_role("region").get_by_text("not lost")).to_be_visible()
