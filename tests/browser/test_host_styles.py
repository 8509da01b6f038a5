"""The widget stays usable, and can be printed, whatever the styles of the page around it."""

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from tests.browser import widget_form
from tests.browser.conftest import OpenTab, Say, Website
from tests.browser.test_conversation import choose, comment

pytestmark = pytest.mark.browser

STYLES = {
    "bootstrap": """*, ::before, ::after { box-sizing: border-box; }
        body { margin: 0; font: 400 1rem/1.5 system-ui; -webkit-text-size-adjust: 100%; }
        button, input, select, textarea { font: inherit; margin: 0; border-radius: 0; }
        a { color: #0d6efd; } p { margin: 0 0 1rem; } ol, ul { padding-left: 2rem; }
        textarea { resize: vertical; } [role=button] { cursor: pointer; }""",
    "all unset": "* { all: unset; }",
    "all initial": "* { all: initial !important; } #flatthread { display: block !important; }",
    "inherited": """body { text-transform: uppercase; letter-spacing: 9px; white-space: pre;
        text-indent: 80px; text-align: right; line-height: 0.5; word-spacing: 40px; }""",
    "important": """button { display: none !important; } textarea { height: 0 !important; }
        div, section, p, li { margin: 90px !important; position: absolute !important; }
        #flatthread { position: static !important; margin: 0 !important; }""",
    "flex": "body, #flatthread { display: flex; }",
}


def script(server: str) -> str:
    return f'<script type=module src="{server}/widget/flatthread.js" data-site=demo></script>'


def element() -> str:
    return '<div id="flatthread" data-thread="demo"></div>'


def pixels(locator: playwright.Locator, name: str) -> float:
    return float(locator.evaluate(f"node => parseFloat(getComputedStyle(node).{name})"))


@pytest.mark.parametrize("name", STYLES)
def test_rules_of_the_page_leave_the_widget_usable(
    server: str, website: Website, open_tab: OpenTab, say: Say, name: str
) -> None:
    one = say("some words in one line", name="Bob")
    say("an answer", parent=one)
    page_styles = f"<style>{STYLES[name]}</style>"
    url = website.put("styled", f"{page_styles}{script(server)}{element()}")
    page = open_tab(url, viewport={"width": 700, "height": 800}).page
    body = comment(page, "some words in one line").locator(".ft-body")
    expect(body).to_be_visible()
    expect(body).to_have_css("text-transform", "none")
    expect(body).to_have_css("letter-spacing", "normal")
    expect(body).to_have_css("text-indent", "0px")
    expect(body).to_have_css("white-space-collapse", "collapse")
    assert pixels(body, "lineHeight") >= 1.2 * pixels(body, "fontSize")
    thread = page.locator(".ft-thread").bounding_box()
    reply = page.get_by_role("button", name="Reply to Bob").bounding_box()
    assert thread is not None
    assert reply is not None
    assert thread["width"] >= 600
    assert reply["height"] >= 24
    assert page.evaluate("document.documentElement.scrollWidth") <= 700
    form = widget_form.opened(page)
    widget_form.fill(form, "mine", "Ada")
    form.get_by_role("button", name="Post comment").click()
    choose(comment(page, "mine"), "Delete")
    page.get_by_role("button", name="Delete comment").click()
    expect(comment(page, "mine")).to_have_count(0)


@pytest.mark.parametrize("root", ["62.5%", "40px"])
def test_a_root_font_size_for_other_purposes_does_not_scale_the_widget(
    server: str, website: Website, open_tab: OpenTab, say: Say, root: str
) -> None:
    say("words", name="Bob")
    styles = f"<style>html {{ font-size: {root}; }} body {{ font-size: 16px; }}</style>"
    url = website.put("scaled", f"{styles}{script(server)}{element()}")
    page = open_tab(url, viewport={"width": 700, "height": 800}).page
    box = page.get_by_role("button", name="Reply to Bob").bounding_box()
    assert box is not None
    assert 24 <= box["height"] <= 40
    line = comment(page, "words").locator(".ft-body p").bounding_box()
    assert line is not None
    assert 18 <= line["height"] <= 30
    thread, title = (page.locator(each).bounding_box() for each in (".ft-thread", ".ft-title"))
    assert thread is not None
    assert title is not None
    assert 650 <= thread["width"] <= 700
    assert 16 <= title["height"] <= 36


def test_a_printed_page_shows_the_whole_text_without_controls(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    say("\n\n".join(f"paragraph {number}" for number in range(60)), name="Bob")
    say("short")
    page = open_tab(website.put("printed", f"{script(server)}{element()}")).page
    expect(page.get_by_role("button", name="Show more")).to_be_visible()
    page.emulate_media(media="print")
    expect(comment(page, "short")).to_be_visible()
    expect(page.locator("button:visible, textarea:visible, input:visible")).to_have_count(0)
    body = page.locator(".ft-body").first
    assert body.evaluate("node => node.clientHeight >= node.scrollHeight")
    expect(page.get_by_text("paragraph 59")).to_be_visible()
    expect(page.get_by_text("Bob", exact=True)).to_be_visible()
