"""Readers whose browsers run no JavaScript post with the page's form, even in a frame."""

import dataclasses
from collections.abc import Callable

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments import app as apps
from comments import config
from comments.domain import records
from comments.domain.records import Policy
from comments.moderation.policy import policy_changes
from comments.sites import site_settings
from comments.store import connection
from tests.browser.conftest import OpenTab, Say, Website, served
from tests.support.html import accessibility
from tests.support.threads import sample_threads

pytestmark = pytest.mark.browser

PHONE = {"width": 320, "height": 640}
ANN = records.Actor("cli", "Ann")


@pytest.fixture
def plain(server: str, open_store: connection.Store) -> str:
    """Enable the form on the site "demo"; return its page."""
    with open_store.context():
        site_settings.change("demo", options={"forms": True})
    return f"{server}/embed/demo?thread=demo"


def fill(page: playwright.Page, body: str, name: str = "Ann") -> None:
    page.get_by_label("Comment", exact=True).fill(body)
    page.get_by_label("Name").fill(name)


def test_a_reader_posts_and_sees_the_comment(plain: str, open_tab: OpenTab, say: Say) -> None:
    say("first")
    page = open_tab(plain, java_script_enabled=False).page
    expect(page.get_by_label("Name")).to_be_hidden()
    page.get_by_text("Write a comment").click()
    fill(page, "one\n\n*two*")
    page.get_by_label("Website").fill("ann.example")
    expect(page.get_by_label("Leave this field empty")).to_be_hidden()
    page.get_by_role("button", name="Post comment").click()
    page.wait_for_url("**#comment-*")
    mine = page.locator(".ft-comment:target")
    expect(mine).to_contain_text("two")
    expect(mine).to_be_in_viewport()
    expect(mine.get_by_role("link", name="Ann", exact=True)).to_have_attribute(
        "href", "https://ann.example"
    )
    page.reload()  # Does not send the form again
    expect(page.locator(".ft-title")).to_have_text("2 comments")


def test_a_reader_answers_below_the_comment(plain: str, open_tab: OpenTab, say: Say) -> None:
    say("first", name="Ada")
    say("second", name="Bob")
    page = open_tab(plain, java_script_enabled=False).page
    page.get_by_role("link", name="Reply to Bob").click()
    page.wait_for_load_state()
    form = page.get_by_role("form", name="Reply to Bob")
    expect(form).to_be_in_viewport()
    expect(page.get_by_role("article", name="Bob").get_by_label("Name")).to_be_visible()
    form.get_by_role("link", name="Cancel").click()
    page.wait_for_load_state()
    expect(page.get_by_role("form")).to_have_count(0)

    page.get_by_role("link", name="Reply to Bob").click()
    fill(page, "an answer")
    page.get_by_role("button", name="Post reply").click()
    page.wait_for_url("**#comment-*")
    mine = page.locator(".ft-list .ft-list .ft-comment:target")
    expect(mine).to_contain_text("an answer")


def test_two_clicks_post_once(plain: str, open_tab: OpenTab, open_store: connection.Store) -> None:
    page = open_tab(plain, java_script_enabled=False).page
    page.get_by_text("Write a comment").click()
    fill(page, "once")
    page.get_by_role("button", name="Post comment").dblclick()
    page.wait_for_url("**#comment-*")
    page.goto(plain)
    expect(page.locator(".ft-title")).to_have_text("1 comment")


def test_an_error_is_at_its_field_and_the_text_stays(plain: str, open_tab: OpenTab) -> None:
    tab = open_tab(plain, java_script_enabled=False)
    tab.expect_status(400)
    page = tab.page
    page.get_by_text("Write a comment").click()
    fill(page, "a long text", name="admin")
    page.get_by_role("button", name="Post comment").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Your comment was not posted")
    name = page.get_by_label("Name")
    expect(name).to_have_attribute("aria-invalid", "true")
    expect(name).to_have_accessible_description("This name is reserved. Choose another name.")
    expect(page.get_by_label("Comment", exact=True)).to_have_value("a long text")
    name.fill("Ann")
    page.get_by_role("button", name="Post comment").click()
    page.wait_for_url("**#comment-*")
    expect(page.locator(".ft-comment:target")).to_contain_text("a long text")


def test_without_a_proof_of_work_the_comment_waits(
    site: records.Site,
    open_tab: OpenTab,
    open_store: connection.Store,
    settings: config.Settings,
) -> None:
    checked = dataclasses.replace(settings, proof_of_work=1_000)
    with open_store.context():
        site_settings.change("demo", options={"forms": True})
    with served(apps.create_app(checked, open_store)) as origin:
        page = open_tab(f"{origin}/embed/demo?thread=demo", java_script_enabled=False).page
        page.get_by_text("Write a comment").click()
        expect(page.get_by_text("A moderator reviews comments from this form")).to_be_visible()
        fill(page, "held")
        page.get_by_role("button", name="Post comment").click()
        expect(page.get_by_text("It is awaiting approval.")).to_be_visible()
        page.get_by_role("link", name="Back to the comments").click()
        expect(page.get_by_text("No comments yet.")).to_be_visible()
        page.goto("about:blank")  # Ends requests for icons before the server stops
    with open_store.context():
        assert [case.comment.body for case in sample_threads.queue(site=site.id)] == ["held"]


def test_a_closed_thread_has_a_sentence_and_no_form(
    plain: str, open_tab: OpenTab, say: Say, open_store: connection.Store
) -> None:
    say("first")
    tab = open_tab(plain, java_script_enabled=False)
    tab.expect_status(409)
    page = tab.page
    page.get_by_text("Write a comment").click()
    fill(page, "too late")
    with open_store.context():
        policy_changes.set_policy("demo", ANN, now=sample_threads.START, policy=Policy.CLOSED)
    page.get_by_role("button", name="Post comment").click()
    expect(page.get_by_role("alert")).to_have_text("Comments are closed.")
    expect(page.get_by_label("Comment", exact=True)).to_have_value("too late")
    page.get_by_role("link", name="Cancel").click()
    expect(page.get_by_text("Comments are closed.")).to_be_visible()
    expect(page.get_by_text("Write a comment")).to_have_count(0)
    expect(page.get_by_role("link", name="Reply")).to_have_count(0)


def test_a_reader_posts_in_a_frame(plain: str, website: Website, open_tab: OpenTab) -> None:
    frame = f'<iframe src="{plain}" width="600" height="600"></iframe>'
    page = open_tab(website.put("article", frame)).page
    inside = page.frame_locator("iframe")
    inside.get_by_text("Write a comment").click()
    inside.get_by_label("Comment", exact=True).fill("framed")
    inside.get_by_label("Name").fill("Ann")
    inside.get_by_role("button", name="Post comment").click()
    expect(inside.locator(".ft-comment:target")).to_contain_text("framed")
    assert page.url == f"{website.origin}/article"


def test_a_page_of_another_site_cannot_send_the_form(
    plain: str, open_tab: OpenTab, website: Website
) -> None:
    fields = "".join(
        f'<input name="{name}" value="{value}">'
        for name, value in (("name", "Ann"), ("body", "forged"), ("key", "0" * 32))
    )
    form = f'<form method="post" action="{plain}">{fields}<button>Send</button></form>'
    url = website.put("attack", form).replace("127.0.0.1", "localhost")
    tab = open_tab(url)
    tab.expect_status(403)
    tab.page.get_by_role("button", name="Send").click()
    expect(tab.page.locator("main")).to_contain_text("origin-not-allowed")
    tab.page.goto(plain)
    expect(tab.page.get_by_text("No comments yet.")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("find", ["Write a comment", "Reply to Ada"])
def test_the_form_is_accessible_and_fits_a_phone(
    plain: str, open_tab: OpenTab, say: Say, scheme: str, find: str
) -> None:
    say("first", name="Ada")
    page = open_tab(plain, color_scheme=scheme, viewport=PHONE).page
    opener: Callable[..., playwright.Locator] = page.get_by_label
    opener = page.get_by_text if find.startswith("Write") else opener
    opener(find).click()
    expect(page.get_by_label("Name")).to_be_visible()
    assert accessibility.complaints(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_answers_are_accessible(plain: str, open_tab: OpenTab, scheme: str) -> None:
    # The checker itself needs JavaScript.
    tab = open_tab(plain, color_scheme=scheme)
    tab.expect_status(400)
    page = tab.page
    page.get_by_text("Write a comment").click()
    fill(page, "a long text", name="admin")
    page.get_by_role("button", name="Post comment").click()
    expect(page.get_by_label("Name")).to_have_attribute("aria-invalid", "true")
    assert accessibility.complaints(page) == []
    page.goto(plain.replace("?", "/waiting?"))
    expect(page.get_by_text("It is awaiting approval.")).to_be_visible()
    assert accessibility.complaints(page) == []


def test_the_form_works_with_the_keyboard(plain: str, open_tab: OpenTab) -> None:
    page = open_tab(plain, java_script_enabled=False).page
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Comment", exact=True)).to_be_focused()
    page.keyboard.type("typed")
    page.keyboard.press("Tab")
    page.keyboard.type("Ann")
    page.keyboard.press("Tab")
    expect(page.get_by_label("Website")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Post comment")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**#comment-*")
    expect(page.locator(".ft-comment:target")).to_contain_text("typed")
