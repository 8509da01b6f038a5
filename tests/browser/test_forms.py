"""Forms never lose typed text, and they show each error next to its field."""

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab, Say
from tests.browser.test_conversation import choices, comment

pytestmark = pytest.mark.browser

POSTS = "**/api/v1/sites/demo/comments?*"


def main_form(page: playwright.Page) -> playwright.Locator:
    return page.get_by_role("form", name="Write a comment")


def fill(form: playwright.Locator, **values: str) -> None:
    for name, value in values.items():
        form.get_by_role("textbox", name=name).fill(value)


def error_beside(form: playwright.Locator, name: str) -> playwright.Locator:
    described = form.get_by_role("textbox", name=name).get_attribute("aria-describedby")
    return form.locator(f"[id='{described}']")


def on_posts(page: playwright.Page, handle: object) -> None:
    """Intercept the page's POST requests; let other requests pass."""

    def route(route: playwright.Route) -> None:
        if route.request.method != "POST":
            route.fallback()
            return
        handle(route)  # type: ignore[operator]

    page.route(POSTS, route)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("Name", "", "Enter your name."),
        ("Comment", "", "Write a comment first."),
        ("Website", "javascript:alert(1)", "Enter a web address"),
    ],
)
def test_an_error_is_beside_the_field_it_names(
    server: str, open_tab: OpenTab, field: str, value: str, message: str
) -> None:
    tab = open_tab(server)
    tab.expect_status(400)
    form = main_form(tab.page)
    fill(form, **{"Comment": "A text", "Name": "Ada", field: value})
    form.get_by_role("button", name="Post comment").click()

    expect(error_beside(form, field)).to_contain_text(message)
    box = form.get_by_role("textbox", name=field)
    expect(box).to_be_focused()
    expect(box).to_have_attribute("aria-invalid", "true")
    expect(box).to_have_value(value)
    expect(form.locator(".ft-error:visible")).to_have_count(1)

    fill(form, **{field: "https://ada.example" if field == "Website" else "Ada"})
    form.get_by_role("button", name="Post comment").click()
    expect(tab.page.get_by_role("listitem", name="Comment by Ada")).to_be_visible()
    expect(form.locator(".ft-error:visible")).to_have_count(0)


def test_a_refused_text_is_restored_after_a_reload(server: str, open_tab: OpenTab) -> None:
    tab = open_tab(server)
    tab.expect_status(400)
    form = main_form(tab.page)
    fill(form, Comment="A long thought", Website="https://ada.example")
    form.get_by_role("button", name="Post comment").click()
    expect(error_beside(form, "Name")).to_be_visible()

    tab.page.reload()
    expect(form.get_by_role("textbox", name="Comment")).to_have_value("A long thought")
    expect(form.get_by_role("textbox", name="Website")).to_have_value("https://ada.example")


def test_an_unfinished_reply_reopens_after_a_reload(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    say("a question")
    page = open_tab(server).page
    page.get_by_role("button", name="Reply to Ada").click()
    form = page.get_by_role("form", name="Reply to Ada")
    fill(form, Comment="half an ans")

    page.reload()
    expect(form.get_by_role("textbox", name="Comment")).to_have_value("half an ans")
    form.get_by_role("button", name="Cancel").click()
    page.reload()
    expect(page.get_by_role("button", name="Reply to Ada")).to_be_visible()
    expect(form).to_have_count(0)


def test_a_sent_draft_is_not_restored(server: str, open_tab: OpenTab) -> None:
    page = open_tab(server).page
    form = main_form(page)
    fill(form, Comment="sent", Name="Ada")
    form.get_by_role("button", name="Post comment").click()
    expect(page.get_by_role("listitem", name="Comment by Ada")).to_be_visible()
    expect(form.get_by_role("textbox", name="Comment")).to_have_value("")

    page.reload()
    expect(page.get_by_role("listitem", name="Comment by Ada")).to_be_visible()
    expect(form.get_by_role("textbox", name="Comment")).to_have_value("")


@pytest.mark.parametrize("reloads", [False, True])
def test_a_retry_after_a_lost_answer_stores_one_comment(
    server: str, open_tab: OpenTab, reloads: bool
) -> None:
    tab = open_tab(server)
    tab.expected.append("net::ERR_FAILED")
    lost: list[str] = []

    def lose_the_first_answer(route: playwright.Route) -> None:
        if lost:
            route.fallback()
            return
        lost.append(route.request.headers["idempotency-key"])
        route.fetch()
        route.abort()

    on_posts(tab.page, lose_the_first_answer)
    form = main_form(tab.page)
    fill(form, Comment="once", Name="Ada")
    form.get_by_role("button", name="Post comment").click()
    expect(form.get_by_role("alert").filter(has_text="did not respond")).to_be_visible()
    expect(form.get_by_role("textbox", name="Comment")).to_have_value("once")

    if reloads:
        tab.page.reload()
    with tab.page.expect_response(lambda answer: answer.request.method == "POST") as answer:
        form.get_by_role("button", name="Post comment").click()

    assert answer.value.request.headers["idempotency-key"] == lost[0]
    expect(tab.page.get_by_role("listitem", name="Comment by Ada")).to_have_count(1)
    expect(tab.page.get_by_role("heading", name="1 comment")).to_be_visible()
    tab.page.reload()
    expect(tab.page.get_by_role("heading", name="1 comment")).to_be_visible()


def test_a_changed_text_after_a_lost_answer_is_another_comment(
    server: str, open_tab: OpenTab
) -> None:
    tab = open_tab(server)
    tab.expected.append("net::ERR_FAILED")
    keys: list[str] = []

    def lose_the_first_answer(route: playwright.Route) -> None:
        keys.append(route.request.headers["idempotency-key"])
        if len(keys) > 1:
            route.fallback()
            return
        route.fetch()
        route.abort()

    on_posts(tab.page, lose_the_first_answer)
    form = main_form(tab.page)
    fill(form, Comment="first words", Name="Ada")
    form.get_by_role("button", name="Post comment").click()
    expect(form.get_by_role("alert").filter(has_text="did not respond")).to_be_visible()
    fill(form, Comment="other words")
    form.get_by_role("button", name="Post comment").click()

    expect(tab.page.get_by_text("Your comment was posted.").first).to_be_visible()
    tab.page.reload()
    expect(tab.page.get_by_role("listitem", name="Comment by Ada")).to_have_count(2)
    assert len(set(keys)) == 2


@pytest.mark.parametrize("status", [429, 503])
def test_an_overloaded_servers_error_can_be_retried_by_hand(
    server: str, open_tab: OpenTab, status: int
) -> None:
    tab = open_tab(server)
    tab.expect_status(status)
    refusals: list[int] = []

    def refuse_once(route: playwright.Route) -> None:
        if refusals:
            route.fallback()
            return
        refusals.append(status)
        route.fulfill(
            status=status,
            headers={"Retry-After": "7", "Content-Type": "application/problem+json"},
            body='{"status": 503, "code": "overloaded", "title": "", "detail": ""}',
        )

    on_posts(tab.page, refuse_once)
    form = main_form(tab.page)
    fill(form, Comment="patience", Name="Ada")
    form.get_by_role("button", name="Post comment").click()
    expect(form.get_by_role("alert").filter(has_text="Try again in 7 seconds.")).to_be_visible()
    expect(form.get_by_role("textbox", name="Comment")).to_have_value("patience")

    form.get_by_role("button", name="Post comment").click()
    expect(tab.page.get_by_role("listitem", name="Comment by Ada")).to_be_visible()


def test_an_expired_token_does_not_prevent_posting(server: str, open_tab: OpenTab) -> None:
    tab = open_tab(server)
    form = main_form(tab.page)
    fill(form, Comment="first", Name="Ada")
    form.get_by_role("button", name="Post comment").click()
    expect(tab.page.get_by_role("listitem")).to_have_count(1)
    tab.page.evaluate("""() => {
        const kept = JSON.parse(localStorage.getItem("flatthread:guest:demo"));
        localStorage.setItem("flatthread:guest:demo", JSON.stringify({...kept, token: "stale"}));
    }""")

    tab.expect_status(401)
    fill(form, Comment="second")
    form.get_by_role("button", name="Post comment").click()
    expect(tab.page.get_by_role("listitem")).to_have_count(2)
    tab.page.reload()
    assert "Delete" in choices(comment(tab.page, "first"))
    assert "Delete" in choices(comment(tab.page, "second"))


def test_the_preview_equals_what_is_stored(server: str, open_tab: OpenTab) -> None:
    page = open_tab(server).page
    form = main_form(page)
    text = "**bold** <script>alert(1)</script> [link](https://ada.example)\n\n> quoted"
    fill(form, Comment=text, Name="Ada")
    form.get_by_role("button", name="Preview").click()
    glance = form.get_by_role("region", name="Preview of your comment")
    expect(glance.locator("strong")).to_have_text("bold")
    previewed = glance.inner_html()

    form.get_by_role("button", name="Post comment").click()
    expect(page.locator(".ft-body strong")).to_have_text("bold")
    assert page.locator(".ft-body").inner_html() == previewed
    expect(glance).to_be_hidden()


def test_letters_typed_here_do_not_trigger_the_pages_shortcuts(
    server: str, open_tab: OpenTab
) -> None:
    page = open_tab(server).page
    page.evaluate("""() => {
        window.heard = "";
        addEventListener("keydown", (event) => { window.heard += event.key; });
    }""")
    box = main_form(page).get_by_role("textbox", name="Comment")
    box.focus()
    page.keyboard.type("jk/")
    expect(box).to_have_value("jk/")
    assert page.evaluate("window.heard") == ""
