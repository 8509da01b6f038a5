"""Readers can read and page through a thread in Chromium without JavaScript, even in a frame."""

import pytest
from playwright import sync_api as playwright
from playwright.sync_api import expect

from comments.domain.text import cleaning
from tests.browser.conftest import OpenTab, Say, Website

pytestmark = pytest.mark.browser

PHONE = {"width": 360, "height": 740}


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
    page.get_by_role("link", name="From the beginning").click()
    expect(page.locator(".ft-body").first).to_have_text("root 0")
    page.get_by_role("link", name="Newest discussions").click()
    expect(page.locator(".ft-body").first).to_have_text("root 3")
    expect(page.get_by_role("link", name="Newest discussions")).to_have_attribute(
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
