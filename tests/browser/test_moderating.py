"""A moderator allows a page to moderate, and then decides about its comments in the thread."""

import json
import re
from collections.abc import Callable

import pytest
from playwright import sync_api as playwright
from playwright.sync_api import expect

from comments.accounts import accounts, moderation_sessions
from comments.domain.records import Status, Verb
from comments.moderation import decisions
from comments.moderation.policy import policy_changes, rulebook, rules
from comments.store import connection, ownership, reads, transactions
from comments.store.models import comment_rows
from comments.threads import comment_flags
from tests.browser import route_holding, widget_form
from tests.browser.conftest import OpenTab, Say, Tab, Website
from tests.browser.moderator_page import (
    ROOT,
    Hold,
    bar,
    begin,
    held,
    offer,
    sign_in,
    status,
    widget,
)
from tests.browser.test_conversation import bodies, choices, choose, comment
from tests.support.html import accessibility
from tests.support.people import account_holders

pytestmark = [pytest.mark.browser, pytest.mark.usefixtures("quick_passwords")]


def test_a_moderator_allows_the_page_decides_undoes_and_stops(  # noqa: PLR0915 - one story
    page_url: str,
    open_tab: OpenTab,
    open_store: connection.Store,
    bob: accounts.Account,
    say: Say,
    hold: Hold,
) -> None:
    say("first")
    parent = say("parent", name="Ann")
    reply = hold("held reply", parent=parent)
    tab = open_tab(page_url)
    page = tab.page
    expect(comment(page, "parent")).to_be_visible()
    assert "Hide" not in choices(comment(page, "first"))
    expect(page.get_by_role("button", name="Moderate here")).to_have_count(0)
    begin(page)
    expect(bar(page)).to_be_focused()
    expect(bar(page)).to_contain_text("1 held comment")
    # The held reply is at its place, with the reason.
    expect(held(page)).to_contain_text("Held by a moderator: looks odd")
    assert bodies(page) == ["first", "parent", "held reply"]
    kept = json.loads(page.evaluate("sessionStorage['flatthread:moderator:demo']"))
    assert kept["token"].startswith("m.")
    assert kept["token"] not in page.evaluate("JSON.stringify(localStorage)")

    held(page).get_by_role("button", name="Approve").click()
    said = comment(page, "held reply")
    expect(said).to_contain_text("You approved Eve's comment.")
    expect(page.get_by_role("heading", name="3 comments")).to_be_visible()
    expect(said.get_by_role("button", name="Undo")).to_be_focused()
    assert status(open_store, reply) is Status.APPROVED
    page.keyboard.press("Enter")
    expect(held(page)).to_be_focused()
    expect(page.get_by_role("heading", name="2 comments")).to_be_visible()
    assert status(open_store, reply) is Status.PENDING

    bar(page).get_by_role("button", name="Stop moderating").click()
    expect(page.get_by_text("You stopped moderating.")).to_be_visible()
    expect(comment(page, "held reply")).to_have_count(0)
    assert bodies(page) == ["first", "parent"]
    assert "Hide" not in choices(comment(page, "first"))
    assert kept["token"] not in page.evaluate("JSON.stringify(sessionStorage)")
    with open_store.context():
        ended = moderation_sessions.find(
            kept["token"], account_holders.SECRET, now=account_holders.here()
        )
    assert ended is None
    page.goto("about:blank")
    page.goto(page_url)
    expect(page.get_by_role("button", name="Moderate here")).to_be_visible()


@pytest.mark.parametrize(
    ("verb", "after", "said"),
    [
        ("Approve", Status.APPROVED, "You approved Eve's comment."),
        ("Reject", Status.REJECTED, "You rejected Eve's comment."),
        ("Mark as spam", Status.SPAM, "You marked Eve's comment as spam."),
    ],
)
def test_a_held_comment_is_decided_and_the_decision_undone(
    moderating: Callable[..., Tab],
    open_store: connection.Store,
    hold: Hold,
    verb: str,
    after: Status,
    said: str,
) -> None:
    one = hold("held")
    page = moderating().page
    held(page).get_by_role("button", name=verb).click()
    sentence = page.locator(".ft-said", has_text=said)
    expect(sentence).to_be_visible()
    expect(bar(page)).to_contain_text("No held comments")
    assert status(open_store, one) is after
    sentence.get_by_role("button", name="Undo").click()
    expect(held(page)).to_be_focused()
    expect(held(page)).to_contain_text("Held by a moderator: looks odd")
    expect(sentence).to_have_count(0)
    expect(bar(page)).to_contain_text("1 held comment")
    assert status(open_store, one) is Status.PENDING


def test_a_held_comment_without_a_reason_awaits_approval(
    moderating: Callable[..., Tab], open_store: connection.Store, hold: Hold
) -> None:
    key = comment_rows.comment_key(hold("held"))

    def forget_reason() -> None:  # Imported comments have none.
        row = reads.get(key)
        row.rule = row.why = ""
        transactions.apply(ownership.Writes(comment_flags.OWNER, put=(row,)))

    with open_store.context():
        transactions.transaction(forget_reason)
    page = moderating().page
    expect(held(page).locator(".ft-why")).to_have_text("Awaiting approval")


def test_reasons_are_in_the_language_of_the_page(
    moderating: Callable[..., Tab],
    open_store: connection.Store,
    website: Website,
    server: str,
    say: Say,
) -> None:
    website.put("post", widget(server).replace("lang=en", "lang=de"))
    rule = rules.Rule("ads", rules.Action.HOLD, words=("cheap",), links=0)
    with open_store.context():
        policy_changes.put_rule("demo", rule, ROOT, now=account_holders.here())
    say("cheap https://ads.example", name="Eve")
    page = moderating().page
    expect(page.get_by_role("group", name="Zurückgehaltener Kommentar von Eve")).to_contain_text(
        "der Text enthält „cheap“ und mehr als 0 Links"
    )


def test_a_visible_comment_is_hidden_and_shown_again(
    moderating: Callable[..., Tab], open_store: connection.Store, say: Say
) -> None:
    first = say("first")
    page = moderating().page
    expect(bar(page)).to_be_visible()
    choose(comment(page, "first"), "Hide")
    undo = page.get_by_text("You hid Ada's comment.").get_by_role("button", name="Undo")
    expect(undo).to_be_focused()
    expect(comment(page, "first")).to_be_hidden()
    assert status(open_store, first) is Status.HIDDEN
    undo.click()
    expect(comment(page, "first")).to_be_focused()
    assert status(open_store, first) is Status.APPROVED


def test_an_open_menu_stays_open_when_moderation_begins_and_when_the_window_loses_the_focus(
    page_url: str, open_tab: OpenTab, session: str, say: Say
) -> None:
    say("visible")
    page = open_tab("about:blank").page
    kept = json.dumps(session)
    page.add_init_script(f"sessionStorage['flatthread:moderator:demo'] = {kept}")
    bundles: list[playwright.Route] = []
    page.route("**/widget/moderating-*", lambda route: bundles.append(route))  # noqa: PLW0108 - Playwright needs a function
    page.goto(page_url)
    route_holding.wait_until_sent(page, bundles)
    comment(page, "visible").get_by_role("button", name="More actions").click()
    first = comment(page, "visible").get_by_role("menuitem").first
    expect(first).to_be_focused()
    bundles.pop().continue_()
    expect(bar(page)).to_contain_text("Moderating as Bob")  # All comments are drawn again.
    expect(first).to_be_focused()
    first.evaluate("node => node.dispatchEvent(new FocusEvent('focusout', { bubbles: true }))")
    expect(first).to_be_visible()
    page.keyboard.press("Escape")
    expect(first).to_have_count(0)


def test_a_visible_comment_is_marked_as_spam_pinned_and_unpinned(
    moderating: Callable[..., Tab], open_store: connection.Store, say: Say
) -> None:
    one, _ = say("one"), say("two", parent=say("three"))
    page = moderating().page
    expect(bar(page)).to_be_visible()
    card = page.get_by_role("article", name="Pinned comment by Ada")
    choose(comment(page, "one"), "Pin")
    expect(card).to_contain_text("one")
    choose(comment(page, "one"), "Unpin")
    expect(card).to_have_count(0)
    page.get_by_role("button", name="Undo").click()
    expect(card).to_contain_text("one")
    choose(comment(page, "one"), "Mark as spam")
    expect(card).to_have_count(0)
    assert status(open_store, one) is Status.SPAM
    expect(page.get_by_role("heading", name="2 comments")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(comment(page, "one")).to_be_visible()
    assert status(open_store, one) is Status.APPROVED


def test_an_author_is_banned_and_the_ban_lifted(
    moderating: Callable[..., Tab], open_store: connection.Store, hold: Hold
) -> None:
    hold("held")
    page = moderating().page

    def banned() -> int:
        with open_store.context():
            return len(rulebook.from_store("demo").bans)

    held(page).get_by_role("button", name="Ban Eve").click()
    sentence = page.locator(".ft-said", has_text="You banned Eve from commenting on this site.")
    expect(sentence.get_by_role("button", name="Undo")).to_be_focused()
    assert banned() == 1
    # The comment itself still awaits a decision.
    expect(held(page).get_by_role("button", name="Approve")).to_be_visible()
    page.keyboard.press("Enter")
    expect(sentence).to_have_count(0)
    assert banned() == 0


def test_all_held_comments_are_decided_by_keyboard(
    moderating: Callable[..., Tab], open_store: connection.Store, say: Say, hold: Hold
) -> None:
    parent = say("parent")
    ids = [hold("first held", name="Ann"), hold("second held", name="Bea", parent=parent)]
    page = moderating().page
    following = bar(page).get_by_role("button", name="2 held comments")
    following.focus()
    page.keyboard.press("Enter")
    expect(held(page, "Bea")).to_be_focused()  # It stands above the other, below its parent
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(held(page, "Ann")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    sentence = page.locator(".ft-said", has_text="You rejected Ann's comment.")
    expect(sentence.get_by_role("button", name="Undo")).to_be_focused()
    assert [status(open_store, each) for each in ids] == [Status.REJECTED, Status.APPROVED]


def test_a_held_comment_without_a_visible_place_is_above_the_list(
    moderating: Callable[..., Tab], open_store: connection.Store, say: Say, hold: Hold
) -> None:
    parent = hold("hidden parent", name="Ann")
    with open_store.context():
        decisions.decide("demo", parent, Verb.APPROVE, ROOT, now=account_holders.here())
    hold("held reply", parent=parent)
    say("visible")
    say("newer")
    with open_store.context():
        decisions.decide("demo", parent, Verb.HIDE, ROOT, now=account_holders.here())
    page = moderating().page
    expect(held(page)).to_be_visible()
    assert bodies(page) == ["held reply", "visible", "newer"]
    # Another order loads another page, which shows the held comment again.
    page.get_by_role("button", name="Sort").click()
    page.get_by_role("menuitemradio", name="Newest").click()
    expect(page.locator(".ft-body").nth(1)).to_have_text("newer")
    expect(held(page)).to_be_visible()
    assert bodies(page) == ["held reply", "newer", "visible"]


def test_a_held_comment_with_visible_replies_takes_the_place_of_its_tombstone(
    moderating: Callable[..., Tab], open_store: connection.Store, say: Say
) -> None:
    parent = say("reported", name="Eve")
    say("reply", parent=parent)
    with open_store.context():
        decisions.decide("demo", parent, Verb.HOLD, ROOT, now=account_holders.here())
    page = moderating().page
    expect(held(page)).to_be_visible()
    assert bodies(page) == ["reported", "reply"]
    bar(page).get_by_role("button", name="Stop moderating").click()
    expect(held(page)).to_have_count(0)
    assert bodies(page) == ["This comment was removed.", "reply"]


def test_a_moderator_posts_and_answers_as_staff(moderating: Callable[..., Tab], say: Say) -> None:
    say("question", name="Ann")
    page = moderating().page
    expect(bar(page)).to_be_visible()
    form = widget_form.opened(page)
    expect(form.locator(".ft-identity")).to_have_text(re.compile(r"Commenting as Bob\s+Moderator"))
    expect(form.get_by_role("textbox")).to_have_count(1)
    form.get_by_role("textbox", name="Comment").fill("announcement")
    form.get_by_role("button", name="Post comment").click()
    posted = comment(page, "announcement")
    expect(posted.locator(".ft-badge", has_text="Moderator")).to_be_visible()
    comment(page, "question").get_by_role("button", name="Reply to Ann").click()
    reply = comment(page, "question").get_by_role("form")
    reply.get_by_role("textbox", name="Comment").fill("answer")
    reply.get_by_role("button", name="Post reply").click()
    expect(comment(page, "answer").locator(".ft-author")).to_have_text("Bob")
    expect(comment(page, "answer").locator(".ft-badge", has_text="Moderator")).to_be_visible()
    # The page stores nothing that would let a later reader act as the moderator.
    assert "m." not in page.evaluate("JSON.stringify(localStorage)")
    bar(page).get_by_role("button", name="Stop moderating").click()
    expect(widget_form.opened(page).get_by_role("textbox", name="Name")).to_have_value("")


def test_a_comment_that_changed_meanwhile_is_shown_again_before_a_decision(
    moderating: Callable[..., Tab], open_store: connection.Store, hold: Hold
) -> None:
    one = hold("held")
    tab = moderating()
    page = tab.page
    expect(held(page)).to_be_visible()
    with open_store.context():
        decisions.decide("demo", one, Verb.APPROVE, ROOT, now=account_holders.here())
        decisions.decide("demo", one, Verb.HOLD, ROOT, now=account_holders.here(), reason="again")
    tab.expect_status(412)
    held(page).get_by_role("button", name="Approve").click()
    expect(held(page).get_by_role("alert")).to_contain_text("has changed in the meantime")
    expect(held(page)).to_contain_text("again")
    assert status(open_store, one) is Status.PENDING
    held(page).get_by_role("button", name="Approve").click()
    expect(page.locator(".ft-said", has_text="You approved Eve's comment.")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_window_and_the_thread_in_moderation_are_accessible(
    page_url: str, open_tab: OpenTab, bob: accounts.Account, say: Say, hold: Hold, scheme: str
) -> None:
    hold("held reply", parent=say("parent"))
    say("visible")
    page = open_tab(page_url, color_scheme=scheme).page
    with page.expect_popup() as opened:
        offer(page).click()
    window = opened.value
    expect(window.get_by_label("Password")).to_be_visible()
    assert accessibility.complaints(window) == []
    assert accessibility.complaints(page) == []
    sign_in(window)
    expect(window.get_by_role("button", name="Moderate here")).to_be_visible()
    assert accessibility.complaints(window) == []
    window.get_by_role("button", name="Moderate here").click()
    expect(held(page)).to_be_visible()
    choose(comment(page, "visible"), "Hide")
    expect(page.get_by_role("button", name="Undo")).to_be_focused()
    assert accessibility.complaints(page) == []
