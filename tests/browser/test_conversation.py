"""People talk: post, reply, edit, retract, come back."""

import re

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.browser


def write(page: playwright.Page, body: str, *, name: str = "Ada") -> None:
    form = page.get_by_role("form", name="Write a comment")
    form.get_by_role("textbox", name="Comment").fill(body)
    form.get_by_role("textbox", name="Name").fill(name)
    form.get_by_role("button", name="Post comment").click()
    expect(comment(page, body)).to_be_visible()


def answer(page: playwright.Page, to: str, body: str) -> None:
    comment(page, to).get_by_role("button", name="Reply to").click()
    form = comment(page, to).get_by_role("form")
    form.get_by_role("textbox", name="Comment").fill(body)
    form.get_by_role("button", name="Post reply").click()
    expect(comment(page, body)).to_be_visible()


def comment(page: playwright.Page, body: str) -> playwright.Locator:
    text = page.locator(".ft-body", has_text=re.compile(f"^\\s*{re.escape(body)}\\s*$"))
    return page.get_by_role("listitem").filter(has=text)


def bodies(page: playwright.Page) -> list[str]:
    return [text.strip() for text in page.locator(".ft-body, .ft-tombstone").all_text_contents()]


def left(locator: playwright.Locator) -> float:
    box = locator.locator(".ft-body").bounding_box()
    assert box is not None
    return box["x"]


def test_a_comment_is_shown_at_once_and_after_reload(server, open_tab):
    page = open_tab(server).page
    expect(page.get_by_text("No comments yet.")).to_be_visible()

    write(page, "The first one")

    expect(page.get_by_role("heading", name="1 comment")).to_be_visible()
    expect(page.get_by_role("status")).to_have_text("Your comment was posted.")
    expect(page.get_by_text("No comments yet.")).to_be_hidden()
    page.reload()
    expect(comment(page, "The first one")).to_be_visible()
    expect(page.get_by_role("textbox", name="Name")).to_have_value("Ada")


def test_a_reply_stands_indented_below_its_parent_and_before_the_next_root(server, open_tab, say):
    first = say("one")
    say("one.one", parent=first)
    say("two")
    page = open_tab(server).page

    write(page, "three")
    answer(page, "one", "one.two")
    answer(page, "one.one", "one.one.one")

    expected = ["one", "one.one", "one.one.one", "one.two", "two", "three"]
    assert bodies(page) == expected
    assert left(comment(page, "one.two")) > left(comment(page, "one"))
    assert left(comment(page, "one.one.one")) > left(comment(page, "one.two"))
    assert left(comment(page, "three")) == left(comment(page, "one"))
    page.reload()
    expect(comment(page, "three")).to_be_visible()
    assert bodies(page) == expected
    expect(page.get_by_role("heading", name="6 comments")).to_be_visible()


def test_an_edit_replaces_the_text_and_says_so(server, open_tab):
    page = open_tab(server).page
    write(page, "Teh comment")

    page.get_by_role("button", name="Edit").click()
    form = page.get_by_role("form", name="Edit your comment")
    expect(form.get_by_role("textbox", name="Comment")).to_have_value("Teh comment")
    form.get_by_role("textbox", name="Comment").fill("The *comment*")
    form.get_by_role("button", name="Save changes").click()

    expect(comment(page, "The comment").locator("em")).to_have_text("comment")
    expect(page.get_by_text("edited", exact=True)).to_be_visible()
    page.reload()
    expect(comment(page, "The comment")).to_be_visible()
    page.get_by_role("button", name="Edit").click()
    expect(form.get_by_role("textbox", name="Comment")).to_have_value("The *comment*")


def test_a_retracted_comment_leaves_a_tombstone_while_replies_exist(server, open_tab):
    page = open_tab(server).page
    write(page, "parent")
    answer(page, "parent", "child")

    comment(page, "parent").get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete it").click()

    expect(page.get_by_text("This comment was removed.")).to_be_visible()
    assert bodies(page) == ["This comment was removed.", "child"]
    page.reload()
    expect(comment(page, "child")).to_be_visible()
    assert bodies(page) == ["This comment was removed.", "child"]

    comment(page, "child").get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Delete it").click()
    expect(page.get_by_text("No comments yet.")).to_be_visible()
    expect(page.get_by_role("heading", name="0 comments")).to_be_visible()
    page.reload()
    expect(page.get_by_text("No comments yet.")).to_be_visible()


def test_deleting_asks_first_and_can_be_called_off(server, open_tab):
    page = open_tab(server).page
    write(page, "stays")

    page.get_by_role("button", name="Delete").click()
    keep = page.get_by_role("button", name="Keep it")
    expect(keep).to_be_focused()
    keep.click()

    expect(page.get_by_role("button", name="Keep it")).to_have_count(0)
    page.reload()
    expect(comment(page, "stays")).to_be_visible()


def test_only_own_comments_can_be_changed(server, open_tab, say):
    say("of somebody else")
    page = open_tab(server).page
    write(page, "mine")

    expect(comment(page, "mine").get_by_role("button", name="Edit")).to_be_visible()
    others = comment(page, "of somebody else")
    expect(others.get_by_role("button", name="Reply to")).to_be_visible()
    expect(others.get_by_role("button", name="Edit")).to_have_count(0)
    expect(others.get_by_role("button", name="Delete")).to_have_count(0)


def test_two_tabs_keep_each_others_comments(server, open_tab):
    one = open_tab(server).page
    two = open_tab(server).page
    write(one, "from tab one")
    write(two, "from tab two")

    for page in (one, two):
        page.reload()
        expect(comment(page, "from tab two")).to_be_visible()
        assert bodies(page) == ["from tab one", "from tab two"]
        expect(page.get_by_role("button", name="Delete")).to_have_count(2)


def test_an_edit_that_another_tab_overtook_keeps_the_text_and_can_be_sent_again(server, open_tab):
    slow = open_tab(server)
    write(slow.page, "version 1")
    fast = open_tab(server).page
    slow.page.get_by_role("button", name="Edit").click()
    slow_form = slow.page.get_by_role("form", name="Edit your comment")
    slow_form.get_by_role("textbox", name="Comment").fill("version 3")
    fast.get_by_role("button", name="Edit").click()
    fast_form = fast.get_by_role("form", name="Edit your comment")
    fast_form.get_by_role("textbox", name="Comment").fill("version 2")
    fast_form.get_by_role("button", name="Save changes").click()
    expect(comment(fast, "version 2")).to_be_visible()

    slow.expect_status(412)
    slow_form.get_by_role("button", name="Save changes").click()
    expect(slow_form.get_by_role("alert")).to_contain_text("was changed elsewhere")
    expect(slow_form.get_by_role("textbox", name="Comment")).to_have_value("version 3")
    slow_form.get_by_role("button", name="Save changes").click()

    expect(comment(slow.page, "version 3")).to_be_visible()


def test_the_keyboard_is_enough(server, open_tab, say):
    say("a question")
    page = open_tab(server).page
    page.get_by_role("button", name="Reply to Ada").focus()
    page.keyboard.press("Enter")
    form = page.get_by_role("form", name="Reply to Ada")
    expect(form.get_by_role("textbox", name="Comment")).to_be_focused()

    page.keyboard.type("an answer")
    page.keyboard.press("Tab")
    expect(form.get_by_role("textbox", name="Name")).to_be_focused()
    page.keyboard.type("Grace")
    page.keyboard.press("Control+Enter")

    expect(comment(page, "an answer")).to_be_focused()
    expect(page.get_by_role("listitem", name="Reply by Grace to Ada")).to_be_visible()


def test_escape_closes_a_reply_and_gives_the_focus_back(server, open_tab, say):
    say("a question")
    page = open_tab(server).page
    reply = page.get_by_role("button", name="Reply to Ada")
    reply.click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("form", name="Reply to Ada")).to_have_count(0)
    expect(reply).to_be_focused()


def test_a_reply_can_be_opened_where_a_deletion_was_asked_about(server, open_tab):
    page = open_tab(server).page
    write(page, "mine")
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("button", name="Reply to Ada").click()
    form = page.get_by_role("form", name="Reply to Ada")
    expect(form.get_by_role("textbox", name="Comment")).to_be_focused()
    expect(page.get_by_role("button", name="Keep it")).to_have_count(0)


def test_a_deletion_that_fails_says_so_and_can_be_tried_again(server, open_tab):
    tab = open_tab(server)
    write(tab.page, "to be deleted")
    tab.expected.append("net::ERR_FAILED")
    tab.page.route("**/api/v1/comments/*", lambda route: route.abort(), times=1)
    tab.page.get_by_role("button", name="Delete").click()
    tab.page.get_by_role("button", name="Delete it").click()
    expect(tab.page.get_by_role("alert").filter(has_text="try again")).to_be_visible()
    tab.page.get_by_role("button", name="Delete it").click()
    expect(tab.page.get_by_text("No comments yet.")).to_be_visible()
