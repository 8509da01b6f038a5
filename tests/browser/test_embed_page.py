"""Readers can read and page through a thread in Chromium without JavaScript, even in a frame."""

import pytest
from flask.testing import FlaskClient
from playwright import sync_api as playwright
from playwright.sync_api import expect

from comments.domain import records
from comments.domain.text import cleaning
from comments.moderation import decisions
from comments.sites import site_settings
from comments.store import connection
from tests.browser.conftest import OpenTab, Say, Website
from tests.comments.web.public.test_avatars import GOLDEN
from tests.support.html import accessibility
from tests.support.threads import sample_threads

pytestmark = pytest.mark.browser

PHONE = {"width": 360, "height": 740}


WIDE = "```\n" + "wide " * 60 + "\n```\n\n" + "| head " * 20 + "|\n" + "|-" * 20 + "|"
SHOWN = """(node) => {
    const style = getComputedStyle(node);
    const text = [...node.childNodes].map((each) => each.textContent).join("").trim();
    return [text, node.dataset.shade, style.backgroundColor, style.width, style.fontSize];
}"""


def scroll_width(page: playwright.Page) -> int:
    return page.evaluate("document.documentElement.scrollWidth")


@pytest.fixture
def said(say: Say) -> list[str]:
    """Post discussions of three comments each; return the comments' texts in reading order."""
    texts = []
    for number in range(4):
        top = say(f"root {number}", name="Ada")
        middle = say(f"reply {number}", name="Bob", parent=top)
        say(f"answer {number}", name="Cyd", parent=middle)
        texts += [f"root {number}", f"reply {number}", f"answer {number}"]
    return texts


def test_a_reader_without_javascript_pages_to_the_end(
    server: str, open_tab: OpenTab, said: list[str]
) -> None:
    url = f"{server}/embed/demo?thread=demo&limit=5"
    page = open_tab(url, java_script_enabled=False).page
    found = page.locator(".ft-body").all_inner_texts()
    while page.get_by_role("link", name="Next page").count():
        page.get_by_role("link", name="Next page").click()
        page.wait_for_load_state()
        found += page.locator(".ft-body").all_inner_texts()
    assert found == said
    page.get_by_role("link", name="First page").click()
    expect(page.locator(".ft-body").first).to_have_text("root 0")
    page.get_by_text("Sort: Oldest").click()
    page.get_by_role("link", name="Newest", exact=True).click()
    expect(page.locator(".ft-body").first).to_have_text("root 3")
    page.get_by_text("Sort: Newest").click()
    expect(page.get_by_role("link", name="Newest", exact=True)).to_have_attribute(
        "aria-current", "true"
    )


def test_the_demo_page_links_to_it(server: str, open_tab: OpenTab, said: list[str]) -> None:
    page = open_tab(f"{server}/?site=demo&thread=demo", java_script_enabled=False).page
    page.get_by_role("link", name="read the comments").click()
    expect(page.locator(".ft-body").first).to_have_text("root 0")


def test_a_permalink_points_to_its_comment(server: str, open_tab: OpenTab, said: list[str]) -> None:
    page = open_tab(f"{server}/embed/demo?thread=demo", java_script_enabled=False).page
    comment = page.get_by_role("article", name="Cyd").last
    expect(comment).to_contain_text("answer 3")
    comment.locator(".ft-time").click()
    page.wait_for_url("**#comment-*")
    expect(page.locator(".ft-comment:target")).to_contain_text("answer 3")
    expect(page.locator(".ft-comment:target")).to_be_in_viewport()


def test_landmarks_and_headings_structure_the_page(
    server: str, open_tab: OpenTab, said: list[str]
) -> None:
    page = open_tab(f"{server}/embed/demo?thread=demo&limit=5", java_script_enabled=False).page
    expect(page.get_by_role("main")).to_have_count(1)
    expect(page.get_by_role("heading", level=1)).to_have_text("Comments")
    expect(page.get_by_role("heading", level=2)).to_have_text("12 comments")
    expect(page.get_by_role("navigation", name="Order")).to_be_visible()
    expect(page.get_by_role("navigation", name="Pages")).to_be_visible()
    assert page.get_by_role("article").count() == 5


def test_eight_levels_and_long_words_fit_a_phone(server: str, open_tab: OpenTab, say: Say) -> None:
    parent = None
    for level in range(9):
        parent = say(f"{'long' * 60} {level}", name="N" * cleaning.MAX_NAME, parent=parent)
    say("```\n" + "wide " * 60 + "\n```")
    url = f"{server}/embed/demo?thread=demo"
    page = open_tab(url, java_script_enabled=False, viewport=PHONE).page
    assert scroll_width(page) == PHONE["width"]
    narrowest = page.locator(".ft-body").evaluate_all(
        "nodes => Math.min(...nodes.map(node => node.clientWidth))"
    )
    assert narrowest > PHONE["width"] * 0.6


@pytest.mark.parametrize(("scheme", "is_dark"), [("light", False), ("dark", True)])
def test_colors_follow_the_readers_preference(
    server: str, open_tab: OpenTab, said: list[str], scheme: str, is_dark: bool
) -> None:
    page = open_tab(f"{server}/embed/demo?thread=demo", color_scheme=scheme).page
    background = page.locator("body").evaluate("node => getComputedStyle(node).backgroundColor")
    red = int(background.removeprefix("rgb(").split(",")[0])
    assert (red < 128) is is_dark


def test_a_page_does_not_violate_its_own_policy(
    server: str, open_tab: OpenTab, said: list[str]
) -> None:
    # With JavaScript on, the monitored tab fails this test if anything violates the policy,
    # including the data block.
    page = open_tab(f"{server}/embed/demo?thread=demo").page
    assert page.locator('script[type="application/ld+json"]').count() == 1
    assert page.evaluate("document.scripts.length") == 1


def test_only_a_page_of_the_site_may_frame_a_thread(
    server: str, website: Website, open_tab: OpenTab, said: list[str]
) -> None:
    frame = f'<iframe src="{server}/embed/demo?thread=demo&limit=5"></iframe>'
    page = open_tab(website.put("article", frame)).page
    inside = page.frame_locator("iframe")
    expect(inside.locator(".ft-body").first).to_have_text("root 0")
    # Links to our own pages open in the same frame.
    inside.get_by_role("link", name="Next page").click()
    expect(inside.locator(".ft-body").last).to_have_text("root 3")
    assert page.url == f"{website.origin}/article"

    foreign = website.origin.replace("127.0.0.1", "localhost")
    tab = open_tab("about:blank")
    tab.expected += ["frame-ancestors", "ERR_BLOCKED_BY_RESPONSE"]
    tab.page.goto(f"{foreign}/article")
    expect(tab.page.frame_locator("iframe").locator(".ft-body")).to_have_count(0)
    assert not any("root 0" in frame.content() for frame in tab.page.frames)


def test_avatars_are_the_widgets(server: str, open_tab: OpenTab, say: Say) -> None:
    for name in GOLDEN:
        say(f"by {len(name)}", name=name)
    widget = open_tab(f"{server}/?site=demo&thread=demo").page
    expect(widget.locator(".ft-list .ft-avatar")).to_have_count(len(GOLDEN))
    page = open_tab(f"{server}/embed/demo?thread=demo", java_script_enabled=False).page
    drawn, expected = (
        [each.evaluate(SHOWN) for each in every.locator(".ft-list .ft-avatar").all()]
        for every in (page, widget)
    )
    assert drawn == expected


def test_a_comment_is_set_as_in_the_widget(server: str, open_tab: OpenTab, say: Say) -> None:
    say("# head\n\ntext `code`\n\n> quote\n\n- list", name="Ada")
    widget = open_tab(f"{server}/?site=demo&thread=demo").page
    page = open_tab(f"{server}/embed/demo?thread=demo").page
    for selector in (
        ".ft-title", ".ft-author", ".ft-time", ".ft-body", ".ft-body h3", ".ft-body code",
        ".ft-body blockquote", ".ft-body ul", ".ft-item",
    ):  # fmt: skip
        drawn, expected = (
            every.locator(selector).first.evaluate(
                """(node) => {
                    const style = getComputedStyle(node);
                    return ["fontFamily", "fontSize", "fontWeight", "lineHeight", "marginTop",
                        "marginBottom", "paddingInlineStart", "gap"].map((each) => style[each]);
                }"""
            )
            for every in (page, widget)
        )
        assert drawn == expected, selector


def test_pins_and_badges_are_shown(
    server: str, open_tab: OpenTab, say: Say, open_store: connection.Store
) -> None:
    say("first")
    below = say("second", name="Bob")
    with open_store.context():
        decisions.decide(
            "demo", below, records.Verb.PIN, records.Actor("cli", "Ann"), now=sample_threads.START
        )
    page = open_tab(f"{server}/embed/demo?thread=demo", java_script_enabled=False).page
    pin = page.get_by_role("article", name="Pinned comment by Bob")
    expect(pin).to_contain_text("second")
    assert page.locator(".ft-body").all_inner_texts() == ["second", "first", "second"]
    expect(page.get_by_role("article", name="Bob", exact=True)).to_contain_text("Pinned")
    pin.get_by_role("link", name="View in thread").click()
    page.wait_for_url("**#comment-*")
    expect(page.locator(".ft-comment:target")).to_contain_text("second")


def test_wide_code_and_tables_scroll_with_the_keyboard(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    say(WIDE)
    url = f"{server}/embed/demo?thread=demo"
    # The page's policy would also forbid that the test waits for a condition.
    page = open_tab(url, viewport=PHONE, bypass_csp=True).page
    assert scroll_width(page) == PHONE["width"]
    for tag in ("pre", "table"):
        block = page.locator(f".ft-body {tag}")
        block.focus()
        expect(block).to_be_focused()
        page.keyboard.press("ArrowRight")
        page.wait_for_function(f"document.querySelector('.ft-body {tag}').scrollLeft > 0")


def test_the_columns_of_a_table_are_aligned(server: str, open_tab: OpenTab, say: Say) -> None:
    say("| a | b | c | d |\n|---|:--|:-:|--:|\n| 1 | 2 | 3 | 4 |")
    page = open_tab(f"{server}/embed/demo?thread=demo").page
    for cells in ("th", "td"):
        found = page.locator(f".ft-body {cells}").evaluate_all(
            "cells => cells.map((cell) => getComputedStyle(cell).textAlign)"
        )
        assert found == ["start", "left", "center", "right"]


@pytest.mark.parametrize(("theme", "is_dark"), [("light", False), ("dark", True)])
def test_the_sites_theme_overrides_the_readers_preference(
    server: str, open_tab: OpenTab, open_store: connection.Store, theme: str, is_dark: bool
) -> None:
    with open_store.context():
        site_settings.change("demo", options={"theme": theme})
    scheme = "light" if is_dark else "dark"
    page = open_tab(f"{server}/embed/demo?thread=demo", color_scheme=scheme).page
    background = page.locator("body").evaluate("node => getComputedStyle(node).backgroundColor")
    red = int(background.removeprefix("rgb(").split(",")[0])
    assert (red < 128) is is_dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_is_accessible(
    server: str, open_tab: OpenTab, say: Say, said: list[str], scheme: str
) -> None:
    say(f"{WIDE}\n\n> quote\n\nhttps://example.org/", name="Dora")
    page = open_tab(f"{server}/embed/demo?thread=demo&limit=5", color_scheme=scheme).page
    page.get_by_text("Sort: Oldest").click()
    assert accessibility.complaints(page) == []


def test_a_fragment_looks_alike_with_its_style_sheet(
    server: str, website: Website, open_tab: OpenTab, said: list[str], client: FlaskClient
) -> None:
    part = client.get("/embed/demo/fragment?thread=demo").text
    head = (
        f'<html lang="en"><title>t</title><link rel="stylesheet" href="{server}/widget/thread.css">'
    )
    page = open_tab(website.put("article", f"{head}<main><h1>Post</h1>{part}</main>")).page
    expect(page.locator(".ft-avatar").first).to_have_css("border-radius", "50%")
    assert accessibility.complaints(page) == []
