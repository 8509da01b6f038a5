"""Readers hold a conversation: they post, reply, edit, retract, and return later."""

import re
from datetime import UTC, datetime

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.domain import records
from comments.moderation.policy import policy_changes, rules
from comments.store import connection
from tests.browser import widget_form
from tests.browser.conftest import OpenTab, Say

pytestmark = pytest.mark.browser

ADA = records.Actor("cli", "Ada")


def write(page: playwright.Page, body: str, *, name: str = "Ada") -> None:
    form = widget_form.opened(page)
    widget_form.fill(form, body, name)
    form.get_by_role("button", name="Post comment").click()
    expect(comment(page, body)).to_be_visible()


def choose(comment: playwright.Locator, item: str | re.Pattern[str]) -> None:
    """Choose an item of a comment's menu."""
    comment.get_by_role("button", name="More actions").click()
    comment.get_by_role("menuitem", name=item).click()


def signed_in(page: playwright.Page, name: str) -> None:
    """Wait until the widget shows that this reader is signed in."""
    expect(page.get_by_role("button", name=f"Your menu, {name}")).to_be_visible()


def sign_out(page: playwright.Page) -> None:
    page.get_by_role("button", name="Your menu").click()
    page.get_by_role("menuitem", name="Sign out").click()


def choices(comment: playwright.Locator) -> list[str]:
    """Return the items of a comment's menu, without the time that is left for an edit."""
    comment.get_by_role("button", name="More actions").click()
    expect(comment.get_by_role("menu")).to_be_visible()
    items = comment.get_by_role("menuitem").all_text_contents()
    comment.page.keyboard.press("Escape")
    return [item.split(" (")[0] for item in items]


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


def test_a_comment_is_shown_at_once_and_after_reload(server: str, open_tab: OpenTab) -> None:
    page = open_tab(server).page
    expect(page.get_by_text("No comments yet.")).to_be_visible()

    write(page, "The first one")

    expect(page.get_by_role("heading", name="1 comment")).to_be_visible()
    expect(page.get_by_role("status")).to_have_text("Your comment was posted.")
    expect(page.get_by_text("No comments yet.")).to_be_hidden()
    page.reload()
    expect(comment(page, "The first one")).to_be_visible()
    expect(page.get_by_role("button", name="Your menu, Ada")).to_be_visible()


def test_a_reply_is_indented_below_its_parent_and_before_the_next_root(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    first = say("one")
    say("one.one", parent=first)
    say("two")
    page = open_tab(server).page

    write(page, "three")
    answer(page, "one", "one.two")
    answer(page, "one.one", "one.one.one")

    # Own new comments are shown below the form and below the comment that they answer.
    assert bodies(page) == ["three", "one", "one.two", "one.one", "one.one.one", "two"]
    page.reload()
    expect(comment(page, "three")).to_be_visible()
    assert bodies(page) == ["one", "one.one", "one.one.one", "one.two", "two", "three"]
    assert left(comment(page, "one.two")) > left(comment(page, "one"))
    assert left(comment(page, "one.one.one")) > left(comment(page, "one.two"))
    assert left(comment(page, "three")) == left(comment(page, "one"))
    expect(page.get_by_role("heading", name="6 comments")).to_be_visible()


def test_an_edit_replaces_the_text_and_is_marked(server: str, open_tab: OpenTab) -> None:
    page = open_tab(server).page
    write(page, "Teh comment")

    choose(comment(page, "Teh comment"), "Edit")
    form = page.get_by_role("form", name="Edit your comment")
    expect(form.get_by_role("textbox", name="Comment")).to_have_value("Teh comment")
    form.get_by_role("textbox", name="Comment").fill("The *comment*")
    form.get_by_role("button", name="Save changes").click()

    expect(comment(page, "The comment").locator("em")).to_have_text("comment")
    expect(page.get_by_text("edited", exact=True)).to_be_visible()
    page.reload()
    expect(comment(page, "The comment")).to_be_visible()
    choose(comment(page, "The comment"), "Edit")
    expect(form.get_by_role("textbox", name="Comment")).to_have_value("The *comment*")


def test_an_edit_is_not_offered_once_the_server_says_that_its_time_is_over(
    server: str, open_tab: OpenTab
) -> None:
    page = open_tab(server).page
    write(page, "Too late")

    def end_time(route: playwright.Route) -> None:
        response = route.fetch()
        held = response.json()
        ended = [each | {"editable_until": None} for each in held["comments"]]
        route.fulfill(response=response, json=held | {"comments": ended})

    page.route("**/held?*", end_time)
    with page.expect_response("**/held?*"):
        page.reload()
    stored = "Object.values(localStorage).some((text) => text.includes('\"until\":null'))"
    page.wait_for_function(stored)
    comment(page, "Too late").get_by_role("button", name="More actions").click()
    expect(page.get_by_role("menuitem", name="Delete")).to_be_visible()
    expect(page.get_by_role("menuitem", name="Edit")).to_have_count(0)


def test_a_retracted_comment_leaves_a_tombstone_while_replies_exist(
    server: str, open_tab: OpenTab
) -> None:
    page = open_tab(server).page
    write(page, "parent")
    answer(page, "parent", "child")

    choose(comment(page, "parent"), "Delete")
    page.get_by_role("button", name="Delete comment").click()

    expect(page.get_by_text("This comment was removed.")).to_be_visible()
    assert bodies(page) == ["This comment was removed.", "child"]
    page.reload()
    expect(comment(page, "child")).to_be_visible()
    assert bodies(page) == ["This comment was removed.", "child"]

    choose(comment(page, "child"), "Delete")
    page.get_by_role("button", name="Delete comment").click()
    expect(page.get_by_text("No comments yet.")).to_be_visible()
    expect(page.get_by_role("heading", name="0 comments")).to_be_visible()
    page.reload()
    expect(page.get_by_text("No comments yet.")).to_be_visible()


def test_deleting_asks_first_and_can_be_canceled(server: str, open_tab: OpenTab) -> None:
    page = open_tab(server).page
    write(page, "stays")

    choose(comment(page, "stays"), "Delete")
    keep = page.get_by_role("button", name="Keep comment")
    expect(keep).to_be_focused()
    keep.click()

    expect(page.get_by_role("button", name="Keep comment")).to_have_count(0)
    page.reload()
    expect(comment(page, "stays")).to_be_visible()


def test_only_own_comments_can_be_changed(server: str, open_tab: OpenTab, say: Say) -> None:
    say("of somebody else")
    page = open_tab(server).page
    write(page, "mine")

    assert choices(comment(page, "mine")) == ["Edit", "Delete", "Collapse"]
    others = comment(page, "of somebody else")
    expect(others.get_by_role("button", name="Reply to")).to_be_visible()
    assert choices(others) == ["Collapse", "Mute Ada", "Report"]


def test_two_tabs_keep_each_others_comments(server: str, open_tab: OpenTab) -> None:
    one = open_tab(server).page
    two = open_tab(server).page
    write(one, "from tab one")
    write(two, "from tab two")

    for page in (one, two):
        page.reload()
        expect(comment(page, "from tab two")).to_be_visible()
        assert bodies(page) == ["from tab one", "from tab two"]
        assert "Delete" in choices(comment(page, "from tab one"))
        assert "Delete" in choices(comment(page, "from tab two"))


def test_after_posting_an_author_sees_others_new_comments_and_their_number(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    """The comments appear in thread order; the author's new comment stays in view and focused."""
    first = say("a question")
    one, two = open_tab(server).page, open_tab(server).page
    for page in (one, two):
        expect(comment(page, "a question")).to_be_visible()
    write(one, "from tab one")
    say("an answer of somebody else", parent=first)

    write(two, "from tab two")

    expect(two.get_by_role("heading", name="4 comments")).to_be_visible()
    assert bodies(two) == [
        "from tab two",
        "a question",
        "an answer of somebody else",
        "from tab one",
    ]
    expect(comment(two, "from tab two")).to_be_focused()
    assert "Delete" in choices(comment(two, "from tab one"))


def test_authors_who_post_first_in_two_tabs_see_both_comments(
    server: str, open_tab: OpenTab
) -> None:
    one, two = open_tab(server).page, open_tab(server).page
    for page in (one, two):
        expect(page.get_by_text("No comments yet.")).to_be_visible()
    write(one, "from tab one")

    write(two, "from tab two")

    expect(two.get_by_role("heading", name="2 comments")).to_be_visible()
    assert bodies(two) == ["from tab two", "from tab one"]


def test_after_posting_an_author_sees_others_deletions_and_edits(
    server: str, open_tab: OpenTab
) -> None:
    one = open_tab(server).page
    write(one, "to be deleted")
    write(one, "version 1")
    two = open_tab(server).page
    expect(comment(two, "version 1")).to_be_visible()
    choose(comment(one, "version 1"), "Edit")
    form = one.get_by_role("form", name="Edit your comment")
    form.get_by_role("textbox", name="Comment").fill("version 2")
    form.get_by_role("button", name="Save changes").click()
    expect(comment(one, "version 2")).to_be_visible()
    choose(comment(one, "to be deleted"), "Delete")
    one.get_by_role("button", name="Delete comment").click()
    expect(comment(one, "to be deleted")).to_have_count(0)

    write(two, "version 3")

    expect(two.get_by_role("heading", name="2 comments")).to_be_visible()
    assert bodies(two) == ["version 3", "version 2"]


def test_comments_that_only_their_author_sees_stay_when_others_are_loaded(
    server: str, open_tab: OpenTab, say: Say, open_store: connection.Store
) -> None:
    with open_store.context():
        for action in (rules.Action.HOLD, rules.Action.SHADOW):
            rule = rules.Rule(id=action, action=action, words=(action,))
            policy_changes.put_rule("demo", rule, ADA, now=datetime.now(UTC))
    page = open_tab(server).page
    write(page, "shadow")
    write(page, "hold")
    say("of somebody else")

    write(page, "plain")

    expect(comment(page, "of somebody else")).to_be_visible()
    assert sorted(bodies(page)) == ["hold", "of somebody else", "plain", "shadow"]
    expect(comment(page, "plain")).to_be_focused()


def test_after_posting_comments_beyond_the_page_can_be_loaded(
    server: str, open_tab: OpenTab, say: Say, open_store: connection.Store
) -> None:
    for number in range(50):
        say(f"comment {number}")
    page = open_tab(server).page
    expect(page.get_by_role("listitem")).to_have_count(50)
    more = page.get_by_role("button", name="Load more comments")
    expect(more).to_have_count(0)
    say("of somebody else")

    write(page, "mine")

    more.click()
    expect(page.get_by_role("listitem")).to_have_count(52)
    assert bodies(page)[-2:] == ["of somebody else", "mine"]
    expect(page.get_by_role("heading", name="52 comments")).to_be_visible()
    expect(more).to_have_count(0)


def test_a_cached_page_does_not_remove_the_posted_comment(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    """A CDN may serve the thread without the new comment for some time."""
    say("before")
    kept: list[str] = []

    def cached(route: playwright.Route) -> None:
        if route.request.method != "GET":
            route.continue_()
            return
        kept.append(kept[0] if kept else route.fetch().text())
        route.fulfill(body=kept[0], content_type="application/json")

    page = open_tab("about:blank").page
    page.route("**/sites/demo/comments?**", cached)
    page.goto(server)
    with page.expect_request_finished(lambda sent: "/comments?" in sent.url and len(kept) > 1):
        write(page, "after")
    write(page, "later")

    expect(page.get_by_role("heading", name="3 comments")).to_be_visible()
    assert bodies(page) == ["later", "after", "before"]


def test_an_edit_overtaken_by_another_tab_keeps_its_text_and_can_be_sent_again(
    server: str, open_tab: OpenTab
) -> None:
    slow = open_tab(server)
    write(slow.page, "version 1")
    fast = open_tab(server).page
    choose(comment(slow.page, "version 1"), "Edit")
    slow_form = slow.page.get_by_role("form", name="Edit your comment")
    slow_form.get_by_role("textbox", name="Comment").fill("version 3")
    choose(comment(fast, "version 1"), "Edit")
    fast_form = fast.get_by_role("form", name="Edit your comment")
    fast_form.get_by_role("textbox", name="Comment").fill("version 2")
    fast_form.get_by_role("button", name="Save changes").click()
    expect(comment(fast, "version 2")).to_be_visible()

    slow.expect_status(412)
    slow_form.get_by_role("button", name="Save changes").click()
    expect(slow_form.get_by_role("alert")).to_contain_text("was edited somewhere else")
    expect(slow_form.get_by_role("textbox", name="Comment")).to_have_value("version 3")
    slow_form.get_by_role("button", name="Save changes").click()

    expect(comment(slow.page, "version 3")).to_be_visible()


def test_everything_works_by_keyboard(server: str, open_tab: OpenTab, say: Say) -> None:
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


def test_escape_closes_a_reply_and_restores_the_focus(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    say("a question")
    page = open_tab(server).page
    reply = page.get_by_role("button", name="Reply to Ada")
    reply.click()
    form = page.get_by_role("form", name="Reply to Ada")
    expect(form.get_by_role("textbox", name="Comment")).to_be_focused()
    page.keyboard.press("Escape")
    expect(form).to_have_count(0)
    expect(reply).to_be_focused()


def test_a_reply_can_be_opened_while_a_deletion_is_being_confirmed(
    server: str, open_tab: OpenTab
) -> None:
    page = open_tab(server).page
    write(page, "mine")
    choose(comment(page, "mine"), "Delete")
    page.get_by_role("button", name="Reply to Ada").click()
    form = page.get_by_role("form", name="Reply to Ada")
    expect(form.get_by_role("textbox", name="Comment")).to_be_focused()
    expect(page.get_by_role("button", name="Keep comment")).to_have_count(0)


def test_a_failed_deletion_is_reported_and_can_be_retried(server: str, open_tab: OpenTab) -> None:
    tab = open_tab(server)
    write(tab.page, "to be deleted")
    tab.expected.append("net::ERR_FAILED")
    tab.page.route("**/api/v1/comments/*", lambda route: route.abort(), times=1)
    choose(comment(tab.page, "to be deleted"), "Delete")
    tab.page.get_by_role("button", name="Delete comment").click()
    expect(tab.page.get_by_role("alert").filter(has_text="did not respond")).to_be_visible()
    tab.page.get_by_role("button", name="Delete comment").click()
    expect(tab.page.get_by_text("No comments yet.")).to_be_visible()
