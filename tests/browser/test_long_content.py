"""Long words, deep threads and wide code keep the layout, also when they are zoomed.

The keyboard reaches all of them.
"""

import re

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.domain.ids import sorthash
from tests.browser import widget_form
from tests.browser.conftest import OpenTab, Say, Website
from tests.browser.test_conversation import comment
from tests.support.html import accessibility

LEVELS = 14
pytestmark = [
    pytest.mark.browser,
    pytest.mark.settings(scheme=sorthash.Scheme(levels=LEVELS)),
]

PHONE = {"width": 320, "height": 640}
SCRIPTS = {
    "Latin": "Straßenbahnhaltestelle naïve façade, " * 4,
    "Arabic": "تعليق طويل باللغة العربية يملأ أكثر من سطر واحد على الهاتف. " * 3,
    "Hebrew": "תגובה ארוכה בעברית שממלאת יותר משורה אחת בטלפון. " * 3,
    "Japanese": "電話の画面で一行に収まらない長い日本語のコメントです。" * 4,
    "Devanagari": "फ़ोन पर एक पंक्ति से अधिक लंबी हिंदी टिप्पणी 👩‍👩‍👧‍👦🏳️‍🌈👍🏽 " * 4,
}
WIDE = (
    "```\n" + "wide " * 60 + "\n```\n\n"
    "| " + " | ".join(["a heading"] * 12) + " |\n" + "|---" * 12 + "|\n"
)
# Everything that the widget shows and that reaches over the edge of the page, unless it is inside a
# block that scrolls or is hidden from sight.
OUTSIDE = """() => {
    const root = document.querySelector("#flatthread").shadowRoot;
    const isCut = (node) => node.closest("pre, table, .ft-hidden, .ft-status");
    return Array.from(root.querySelectorAll("*"))
        .filter((node) => !isCut(node) && node.getClientRects().length)
        .filter((node) => {
            const { left, right } = node.getBoundingClientRect();
            return left < -0.5 || right > innerWidth + 0.5;
        })
        .map((node) => node.outerHTML.slice(0, 120));
}"""
SMALL = """() => {
    const root = document.querySelector("#flatthread").shadowRoot;
    return Array.from(root.querySelectorAll("button, input:not([type=checkbox]), textarea"))
        .map((node) => [node, node.getBoundingClientRect()])
        .filter(([, box]) => box.width && (box.width < 24 || box.height < 24))
        .map(([node, box]) => `${node.className}: ${box.width} x ${box.height}`);
}"""


def article(server: str, website: Website, style: str = "", language: str = "en") -> str:
    """Publish a page with the widget; return its URL."""
    return website.put(
        "article",
        f"""<html lang="{language}"><title>An article</title>
        <meta name="viewport" content="width=device-width">
        <style>:root {{ color-scheme: light dark }} body {{ margin: 0.5rem }} {style}</style>
        <script type="module" src="{server}/widget/flatthread.js" data-site="demo"></script>
        <main><h1>An article</h1>
        <div id="flatthread" data-thread="demo" data-load="now"></div></main>""",
    )


@pytest.fixture
def full(say: Say) -> None:
    """A thread with a long word, many levels, five scripts, wide code and a wide table."""
    parent = None
    for level in range(LEVELS):
        parent = say(f"{'w' * 200} level {level}", name="N" * 60, parent=parent)
    for name, text in SCRIPTS.items():
        say(text, name=name)
    say(WIDE)


def assert_within(page: playwright.Page) -> None:
    expect(comment(page, SCRIPTS["Latin"].strip())).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(OUTSIDE) == []


@pytest.mark.parametrize("direction", ["ltr", "rtl"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_reaches_over_the_edge_of_a_small_phone(
    server: str, website: Website, open_tab: OpenTab, full: None, direction: str, scheme: str
) -> None:
    language = {"ltr": "en", "rtl": "ar"}[direction]
    page = open_tab(
        article(server, website, language=language), viewport=PHONE, color_scheme=scheme
    ).page
    expect(page.locator(".ft-thread")).to_have_attribute("dir", direction)
    assert_within(page)
    narrowest = page.locator(".ft-body:visible").evaluate_all(
        "nodes => Math.min(...nodes.map((node) => node.clientWidth))"
    )
    assert narrowest > PHONE["width"] * 0.55
    # The deep end of the thread is shown on its own.
    page.locator(".ft-continue").first.click()
    expect(page.locator(".ft-back")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate(OUTSIDE) == []


@pytest.mark.parametrize(
    ("width", "style"),
    [(640, ""), (320, ""), (640, "html { font-size: 200% }")],
    ids=["200 %", "400 %", "text of 200 %"],
)
def test_a_zoomed_page_needs_no_scrolling_sideways(
    server: str, website: Website, open_tab: OpenTab, full: None, width: int, style: str
) -> None:
    """Zooming in makes the viewport narrower: at 400 %, a 1280-pixel window has 320 pixels."""
    options = {"viewport": {"width": width, "height": 400}, "device_scale_factor": 1280 / width}
    page = open_tab(article(server, website, style), **options).page
    assert_within(page)
    form = widget_form.opened(page)
    assert page.evaluate(OUTSIDE) == []
    form.get_by_role("button", name="Post comment").scroll_into_view_if_needed()
    expect(form.get_by_role("button", name="Post comment")).to_be_in_viewport()


@pytest.mark.parametrize("is_embedded", [False, True])
def test_wide_code_and_tables_scroll_with_the_keyboard(
    server: str, website: Website, open_tab: OpenTab, say: Say, is_embedded: bool
) -> None:
    say(WIDE)
    url = f"{server}/embed/demo?thread=demo" if is_embedded else article(server, website)
    page = open_tab(url, viewport=PHONE).page
    for block in (page.get_by_role("group", name="Code"), page.get_by_role("table", name="Table")):
        expect(block).to_be_visible()
        block.focus()
        expect(block).to_be_focused()
        for _ in range(3):
            page.keyboard.press("ArrowRight")
        page.wait_for_function("node => node.scrollLeft > 0", arg=block.element_handle())
    page.keyboard.press("Shift+Tab")
    expect(page.get_by_role("group", name="Code")).to_be_focused()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert accessibility.complaints(page, rules=["scrollable-region-focusable"]) == []


@pytest.mark.parametrize("language", ["en", "ar"])
@pytest.mark.parametrize("is_embedded", [False, True])
def test_wide_code_and_tables_fade_at_the_edges_that_hide_content(
    server: str, website: Website, open_tab: OpenTab, say: Say, is_embedded: bool, language: str
) -> None:
    say(f"{'مرحبا' if language == 'ar' else 'hello'}\n\n```\nshort\n```\n\n{WIDE}")
    pages = f"{server}/embed/demo?thread=demo&lang={language}"
    url = pages if is_embedded else article(server, website, language=language)
    page = open_tab(url, viewport=PHONE).page
    # The mask fades at both of its ends and is wider than the block.
    position = "Math.round(parseFloat(getComputedStyle(node).maskPosition))"
    expect(page.locator("pre")).to_have_count(2)
    short, code = page.locator("pre").all()
    assert short.evaluate("node => getComputedStyle(node).maskImage") == "none"
    for block, is_mirrored in ((code, False), (page.locator("table"), language == "ar")):
        expect(block).to_have_css("mask-image", re.compile("gradient"))
        begin, end = (0, 100) if is_mirrored else (100, 0)
        node = block.element_handle()
        page.wait_for_function(f"node => {position} === {begin}", arg=node)
        block.evaluate(f"node => node.scrollBy({'-' if is_mirrored else ''}node.scrollWidth, 0)")
        page.wait_for_function(f"node => {position} === {end}", arg=node)
        block.evaluate("node => { node.scrollLeft /= 2 }")
        page.wait_for_function(f"node => {position} % 100 !== 0", arg=node)


def test_a_shortened_text_says_so_and_opens_by_button_or_when_focus_enters_it(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    text = "\n\n".join(f"paragraph {number}" for number in range(60))
    say(text)
    say(f"{text}\n\n[the last link](https://x.example)", name="Bob")
    page = open_tab(article(server, website)).page
    more = page.get_by_role("button", name="Show more: Comment by Ada")
    expect(more).to_have_attribute("aria-expanded", "false")
    expect(more).to_have_text("Show more")
    more.focus()
    page.keyboard.press("Enter")
    expect(more).to_have_count(0)
    expect(page.get_by_role("listitem", name="Comment by Ada")).to_be_focused()

    other = page.get_by_role("button", name="Show more: Comment by Bob")
    expect(other).to_be_visible()
    other.focus()
    page.keyboard.press("Shift+Tab")
    expect(page.get_by_role("link", name="the last link")).to_be_focused()
    expect(page.get_by_role("link", name="the last link")).to_be_in_viewport()
    expect(other).to_have_count(0)


def test_nothing_moves_when_a_long_comment_gets_its_button(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    """Before a comment is measured, it takes as much space as with the button."""
    say("\n\n".join(f"paragraph {number}" for number in range(60)))
    say("next", name="Bob")
    url = article(server, website)
    measured = open_tab(url).page
    expect(measured.get_by_role("button", name="Show more")).to_be_visible()
    unmeasured = open_tab("about:blank").page
    unmeasured.add_init_script("IntersectionObserver.prototype.observe = () => {}")
    unmeasured.goto(url)
    places = []
    for page in (measured, unmeasured):
        box = page.get_by_role("listitem", name="Comment by Bob").bounding_box()
        assert box is not None
        places.append(box["y"])
    assert unmeasured.get_by_role("button", name="Show more").count() == 0
    assert abs(places[0] - places[1]) < 1


def test_long_comments_are_measured_when_they_come_near(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    names = "ABCDEFGHIJ"
    for name in names:
        say("\n\n".join(f"paragraph {number}" for number in range(60)), name=name)
    page = open_tab(article(server, website)).page
    more = page.get_by_role("button", name="Show more")
    expect(more.first).to_be_visible()
    assert more.count() < len(names)
    page.get_by_role("listitem", name=f"Comment by {names[-1]}").scroll_into_view_if_needed()
    expect(page.get_by_role("button", name=f"Show more: Comment by {names[-1]}")).to_be_visible()
    assert page.get_by_role("listitem").count() == len(names)


def test_readers_who_want_less_motion_get_none(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    say("one")
    page = open_tab(article(server, website), reduced_motion="reduce").page
    form = widget_form.opened(page)
    widget_form.fill(form, "mine", "Grace")
    form.get_by_role("button", name="Post comment").click()
    expect(comment(page, "mine")).to_be_focused()
    moving = page.locator(".ft-thread").evaluate(
        """node => node.getRootNode().getAnimations()
            .flatMap((each) => each.effect.getKeyframes())
            .filter(({ easing }) => !easing.startsWith("step"))"""
    )
    assert moving == []
    durations = page.locator(".ft-comment").evaluate_all(
        """nodes => nodes.flatMap((node) => [node, ...node.querySelectorAll("*")])
            .flatMap((node) => ["", "::after", "::before"].map((part) =>
                getComputedStyle(node, part || null).transitionDuration))"""
    )
    assert set(durations) == {"0s"}


def test_forced_colors_show_the_focus_and_all_buttons(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    say("one")
    page = open_tab(article(server, website), forced_colors="active").page
    form = widget_form.opened(page)
    for name in ("Post comment", "Preview"):
        button = form.get_by_role("button", name=name)
        border = button.evaluate(
            "node => [getComputedStyle(node).borderStyle, getComputedStyle(node).borderWidth]"
        )
        assert border == ["solid", "1px"], name
    page.get_by_role("button", name="Reply to Ada").focus()
    page.keyboard.press("Tab")
    share = page.get_by_role("button", name="Share Ada's comment")
    expect(share).to_be_focused()
    ring = "node => [getComputedStyle(node).outlineStyle, getComputedStyle(node).outlineWidth]"
    assert share.evaluate(ring) == ["solid", "2px"]
    item = page.get_by_role("listitem", name="Comment by Ada")
    item.focus()
    assert item.evaluate(ring) == ["solid", "2px"]
    page.get_by_role("button", name="Upvote Ada's comment").click()
    expect(page.get_by_role("button", name="Upvote Ada's comment")).to_have_attribute(
        "aria-pressed", "true"
    )
    pressed = page.get_by_role("button", name="Upvote Ada's comment").evaluate(ring)
    assert pressed == ["solid", "2px"]


@pytest.mark.parametrize("width", [320, 1000])
def test_every_control_is_large_enough_to_hit(
    server: str, website: Website, open_tab: OpenTab, say: Say, width: int
) -> None:
    first = say("one")
    say("one.one", name="Bob", parent=first)
    say("\n\n".join(f"paragraph {number}" for number in range(60)), name="Cy")
    page = open_tab(article(server, website), viewport={"width": width, "height": 800}).page
    widget_form.opened(page)
    page.get_by_role("button", name="Collapse Ada's comment").click()
    page.get_by_role("button", name="Sort").click()
    expect(page.get_by_role("menu")).to_be_visible()
    assert page.evaluate(SMALL) == []
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Reply to Cy").click()
    expect(page.get_by_role("form", name="Reply to Cy")).to_be_visible()
    page.get_by_role("button", name=re.compile("More actions for Cy")).click()
    expect(page.get_by_role("menu")).to_be_visible()
    assert page.evaluate(SMALL) == []
