"""The form helps writers: formatting, preview, checks before sending, and a remembered name."""

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from tests.browser import route_holding
from tests.browser.conftest import OpenTab, Say
from tests.browser.test_conversation import choose, comment, write

pytestmark = pytest.mark.browser


def text(page: playwright.Page) -> playwright.Locator:
    return page.get_by_role("textbox", name="Comment")


def test_the_form_is_one_line_until_it_is_used(server: str, open_tab: OpenTab) -> None:
    page = open_tab(server).page
    expect(page.get_by_role("button", name="Post comment")).to_have_count(0)
    low = text(page).bounding_box()
    text(page).click()
    expect(page.get_by_role("button", name="Post comment")).to_be_visible()
    expect(text(page)).to_be_focused()
    high = text(page).bounding_box()
    assert low is not None
    assert high is not None
    assert high["height"] > low["height"] + 20


def test_text_typed_while_the_code_loads_is_kept(server: str, open_tab: OpenTab) -> None:
    tab = open_tab("about:blank")
    waiting: list[playwright.Route] = []
    tab.page.route("**/widget/writer-*.js", lambda route: waiting.append(route))  # noqa: PLW0108 - a plain function
    tab.page.goto(server)
    text(tab.page).click()
    tab.page.keyboard.type("typed early")
    route_holding.wait_until_sent(tab.page, waiting)
    tab.page.wait_for_timeout(100)
    assert len(waiting) == 1  # The page requested the code once for all keys.
    waiting[0].continue_()
    expect(tab.page.get_by_role("button", name="Post comment")).to_be_visible()
    expect(text(tab.page)).to_be_focused()
    tab.page.keyboard.type(", typed late")
    expect(text(tab.page)).to_have_value("typed early, typed late")


@pytest.mark.parametrize(
    ("keys", "button", "expected"),
    [
        ("Control+b", None, "some **word**"),
        ("Control+i", None, "some *word*"),
        (None, "Bold", "some **word**"),
        (None, "Italic", "some *word*"),
        (None, "Code", "some `word`"),
        (None, "Quote", "> some word"),
        (None, "List", "- some word"),
        (None, "Link", "some [word](https://)"),
    ],
)
def test_formatting_applies_to_the_selection_and_can_be_undone(
    server: str, open_tab: OpenTab, keys: str | None, button: str | None, expected: str
) -> None:
    page = open_tab(server).page
    text(page).click()
    expect(page.get_by_role("button", name="Bold")).to_be_visible()
    page.keyboard.type("some word")
    for _ in range(4):
        page.keyboard.press("Shift+ArrowLeft")
    if keys:
        page.keyboard.press(keys)
    else:
        page.get_by_role("button", name=button, exact=True).click()
    expect(text(page)).to_have_value(expected)
    expect(text(page)).to_be_focused()
    page.keyboard.press("Control+z")
    expect(text(page)).to_have_value("some word")


def test_mistakes_are_shown_without_asking_the_server(server: str, open_tab: OpenTab) -> None:
    tab = open_tab(server)
    page = tab.page
    posts: list[str] = []
    page.on("request", lambda sent: posts.append(sent.url) if sent.method == "POST" else None)
    text(page).click()
    page.get_by_role("button", name="Post comment").click()
    expect(page.get_by_text("Write a comment first.")).to_be_visible()
    expect(text(page)).to_be_focused()
    page.keyboard.type("a text")
    page.get_by_role("button", name="Post comment").click()
    expect(page.get_by_text("Enter your name.")).to_be_visible()
    page.keyboard.type("Ada")
    website = page.get_by_role("textbox", name="Website")
    for wrong in ("http://a b", "a b", "mailto:a@b.example"):
        website.fill(wrong)
        page.get_by_role("button", name="Post comment").click()
        expect(page.get_by_text("Enter a web address such as")).to_be_visible()
        expect(website).to_be_focused()
    website.fill("ada.example")
    assert posts == []
    page.get_by_role("button", name="Post comment").click()
    expect(comment(page, "a text").get_by_role("link", name="Ada")).to_have_attribute(
        "href", "https://ada.example/"
    )


def test_a_late_error_does_not_take_the_focus_from_a_reader_who_types(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    say("a question")
    tab = open_tab(server)
    page = tab.page
    tab.expect_status(400)
    waiting: list[playwright.Route] = []

    def hold(route: playwright.Route) -> None:
        if route.request.method == "POST":
            waiting.append(route)
        else:
            route.fallback()

    page.route("**/api/v1/sites/demo/comments?*", hold)
    text(page).click()
    page.keyboard.type("a text")
    page.get_by_role("textbox", name="Name").fill("admin")
    page.get_by_role("button", name="Post comment").click()
    page.get_by_role("button", name="Reply to Ada").click()
    answer = page.get_by_role("form", name="Reply to Ada").get_by_role("textbox", name="Comment")
    expect(answer).to_be_focused()
    page.keyboard.type("I am ")
    route_holding.wait_until_sent(page, waiting)
    waiting[0].fulfill(
        status=400,
        content_type="application/problem+json",
        body='{"status": 400, "code": "reserved-name", "field": "name"}',
    )
    expect(page.get_by_text("This name is reserved. Choose another name.")).to_be_visible()
    page.keyboard.type("typing")
    expect(answer).to_have_value("I am typing")
    expect(answer).to_be_focused()


def test_a_returning_guest_can_change_the_name(server: str, open_tab: OpenTab) -> None:
    page = open_tab(server).page
    write(page, "first", name="Ada")
    page.reload()
    text(page).click()
    expect(page.get_by_text("Commenting as Ada")).to_be_visible()
    expect(page.get_by_role("textbox", name="Name")).to_be_hidden()
    page.get_by_role("button", name="Your menu, Ada").click()
    page.get_by_role("menuitem", name="Change name").click()
    expect(page.get_by_role("textbox", name="Name")).to_be_focused()
    page.get_by_role("textbox", name="Name").fill("Grace")
    text(page).fill("second")
    page.get_by_role("button", name="Post comment").click()
    expect(page.get_by_role("listitem", name="Comment by Grace")).to_be_visible()
    expect(page.get_by_role("button", name="Your menu, Grace")).to_be_visible()


def test_a_reply_can_quote_the_comment(server: str, open_tab: OpenTab, say: Say) -> None:
    say("one *two*\n\nthree")
    page = open_tab(server).page
    page.get_by_role("button", name="Reply to Ada").click()
    form = page.get_by_role("form", name="Reply to Ada")
    expect(form.get_by_text("Replying to Ada")).to_be_visible()
    form.get_by_role("button", name="Quote this comment").click()
    expect(form.get_by_role("textbox", name="Comment")).to_have_value("> one two\n>\n> three\n\n")


def test_edit_is_offered_only_while_the_server_accepts_it(server: str, open_tab: OpenTab) -> None:
    page = open_tab(server).page
    write(page, "mine")
    choose(comment(page, "mine"), "Edit")
    expect(page.get_by_role("form", name="Edit your comment")).to_be_visible()
    page.keyboard.press("Escape")
    page.evaluate("""() => {
        const key = "flatthread:own:demo";
        const kept = JSON.parse(localStorage.getItem(key));
        for (const entry of Object.values(kept)) entry.until = "2020-01-01T00:00:00Z";
        localStorage.setItem(key, JSON.stringify(kept));
    }""")
    comment(page, "mine").get_by_role("button", name="More actions").click()
    expect(page.get_by_role("menuitem", name="Delete")).to_be_visible()
    expect(page.get_by_role("menuitem", name="Edit")).to_have_count(0)
