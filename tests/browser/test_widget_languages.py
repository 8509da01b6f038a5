"""The widget is in one language, and mirrored where that language is written from right to left."""

import datetime as dt
import json
import re
from typing import Any

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.domain.languages import catalogue
from comments.sites import site_settings
from comments.store import connection
from tests.browser.conftest import OpenTab, Say, Tab, Website
from tests.browser.test_widget_loading import element, script
from tests.browser.test_widget_strings import _translate, _unchecked
from tests.support.html import accessibility

pytestmark = [pytest.mark.browser, pytest.mark.settings(mail=True)]

DIRECTIONS = {"ar": "rtl"}
# The language of the page and that of the widget.
PAIRS = [("ar", "ar"), ("en", "ar"), ("ar", "en"), ("de", "de"), ("ja", "ja")]
# Return the texts and labels in the widget, except times and what people wrote.
TEXTS = """() => {
  const { shadowRoot } = document.querySelector("#flatthread");
  const found = [];
  for (const node of shadowRoot.querySelectorAll("*")) {
    if (node.closest("time, bdi, .ft-body, .ft-avatar, .ft-reader-name, style")) continue;
    for (const name of ["aria-label", "title", "placeholder", "alt"])
      found.push(node.getAttribute(name) ?? "");
    for (const child of node.childNodes)
      if (child.nodeType === Node.TEXT_NODE) found.push(child.data);
  }
  return found;
}"""
# Return the elements that are partly outside the viewport, unless they scroll in their own box.
OUTSIDE = """() => {
  const width = document.documentElement.clientWidth;
  const nodes = document.querySelector("#flatthread").shadowRoot.querySelectorAll("*");
  return Array.from(nodes).filter((node) => {
    const { left, right, width: own } = node.getBoundingClientRect();
    return own > 0 && (left < -1 || right > width + 1) && !node.closest("pre, table");
  }).map((node) => node.outerHTML.slice(0, 100));
}"""


def put(website: Website, server: str, page: str, attributes: str = "") -> str:
    """Publish a page in a language that embeds the widget."""
    direction = DIRECTIONS.get(page, "ltr")
    return website.put(
        "page",
        f'<html lang="{page}" dir="{direction}"><title>.</title>'
        '<meta name="viewport" content="width=device-width"><main><h1>.</h1>'
        f"{script(server)}{element(attributes)}</main>",
    )


def tree(say: Say) -> None:
    """Post a thread in several scripts."""
    parent = say("هذا تعليق، وفيه https://example.org وكلمة English.", name="أحمد علي")
    parent = say("```\nconst one = 1;\n```\n\nA long line with `code`", name="Ann", parent=parent)
    parent = say(f"{'w' * 200} 日本語", name="山田太郎", parent=parent)
    say("> اقتباس\n\n- نقطة", name="فاطمة", parent=parent)


def open_everything(page: playwright.Page) -> None:
    """Open the form, a reply and a comment's menu, in any language."""
    page.locator(".ft-stub textarea, .ft-form textarea").first.focus()
    expect(page.locator(".ft-toolbar").first).to_be_visible()
    page.locator(".ft-reply").nth(1).click()
    expect(page.locator(".ft-slot textarea")).to_be_visible()
    page.locator(".ft-form .ft-submit").first.click()
    expect(page.locator(".ft-error:not(:empty)").first).to_be_visible()
    page.locator(".ft-actions [aria-haspopup]").first.click()
    expect(page.locator(".ft-menu")).to_be_visible()


def x_of(locator: playwright.Locator) -> float:
    box = locator.first.bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2


def test_the_site_chooses_the_language(
    server: str, website: Website, open_tab: OpenTab, open_store: connection.Store, say: Say
) -> None:
    say("hello")
    with open_store.context():
        site_settings.change("demo", options={"language": "ja"})
    page = open_tab(put(website, server, "tlh"), locale="de").page
    expect(page.locator(".ft-title")).to_have_text("コメント1件")
    expect(page.locator(".ft-thread")).to_have_attribute("lang", "ja")


@pytest.mark.parametrize("language", [each for each in catalogue.languages() if each != "en"])
def test_a_widget_has_only_texts_of_its_language(
    server: str, website: Website, open_tab: OpenTab, say: Say, language: str
) -> None:
    """Put brackets around the language's texts; names may be outside, but no other text."""
    tree(say)
    page = open_tab("about:blank", locale="en").page
    page.route(f"**/widget/*-{language}-*.json", _translate)
    page.route("**/widget/flatthread.js", _unchecked)
    page.goto(put(website, server, language))
    open_everything(page)
    page.keyboard.press("Escape")
    page.locator(".ft-sort").click()
    expect(page.locator(".ft-menu")).to_be_visible()
    found = [text for text in page.evaluate(TEXTS) if text.strip()]
    assert len([text for text in found if "[" in text]) > 60
    while found != (found := [re.sub(r"\[[^][]*\]", "", text) for text in found]):
        pass
    assert [text for text in found if re.search(r"[^\W\d_]", text.replace("https://", ""))] == []


@pytest.mark.parametrize("language", catalogue.languages())
def test_times_and_numbers_are_those_of_the_language(
    server: str, website: Website, open_tab: OpenTab, say: Say, language: str
) -> None:
    said = {
        "ar": ("قبل 5 دقائق", "1,234"),
        "de": ("vor 5 Minuten", "1.234"),
        "en": ("5 minutes ago", "1,234"),
        "fr": ("il y a 5 minutes", "1\u202f234"),
        "ja": ("5分前", "1,234"),
    }
    say("hello")
    page = open_tab("about:blank").page
    page.route("**/comments?*", lambda route: _answer(route, age=330))
    page.goto(put(website, server, language))
    expect(page.locator(".ft-time time")).to_have_text(said[language][0])
    expect(page.locator(".ft-score")).to_have_text(said[language][1])


MINUTE, HOUR, DAY = 60, 3600, 86400  # Seconds


def test_times_use_the_largest_unit_and_the_title_is_the_full_date(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    said = {
        -HOUR: "just now",  # The server's clock is ahead
        50: "just now",
        61: "1 minute ago",
        HOUR - 30: "59 minutes ago",
        HOUR + 1: "1 hour ago",
        DAY + 1: "yesterday",
        29 * DAY + 1: "29 days ago",
        30 * DAY + 1: "1 month ago",
        364 * DAY + 1: "12 months ago",
        366 * DAY: "1 year ago",
        800 * DAY: "2 years ago",
    }
    say("hello")
    page = open_tab("about:blank").page
    url = put(website, server, "en")
    shown = [0]
    page.route("**/comments?*", lambda route: _answer(route, age=shown[0]))
    for age, text in said.items():
        shown[0] = age
        page.goto(url)
        expect(page.locator(".ft-time time")).to_have_text(text)
    moment = page.locator(".ft-time time")
    assert moment.get_attribute("title") is None
    moment.hover()
    year = (dt.datetime.now(dt.UTC) - dt.timedelta(days=800)).year
    expect(moment).to_have_attribute("title", re.compile(rf"\w+ \d+, {year} at \d+:\d\d"))


def _answer(route: playwright.Route, *, age: int) -> None:
    """Let a page's only comment be that many seconds old, with a score of 1234."""
    answer: Any = route.fetch().json()
    (row,) = answer["comments"]
    moment = dt.datetime.now(dt.UTC) - dt.timedelta(seconds=age)
    row["created"] = moment.isoformat().replace("+00:00", "Z")
    row["score"] = 1234
    route.fulfill(json=answer, headers={"Access-Control-Allow-Origin": "*"})


@pytest.mark.parametrize(("of_page", "of_widget"), PAIRS[:3])
def test_the_widget_sets_its_own_language_and_direction(
    server: str, website: Website, open_tab: OpenTab, say: Say, of_page: str, of_widget: str
) -> None:
    tree(say)
    page = open_tab(put(website, server, of_page, f'data-lang="{of_widget}"')).page
    open_everything(page)
    root, host = page.locator(".ft-thread"), page.locator("#flatthread")
    direction = DIRECTIONS.get(of_widget, "ltr")
    expect(root).to_have_attribute("lang", of_widget)
    expect(root).to_have_attribute("dir", direction)
    assert host.get_attribute("lang") is None
    assert host.get_attribute("dir") is None
    # What begins a line is on the right in Arabic, and everything else is mirrored too.
    sign = -1 if direction == "rtl" else 1
    for before, after in (
        (".ft-item > .ft-avatar", ".ft-author"),
        (".ft-title", ".ft-sort"),
        (".ft-author", ".ft-toggle"),
        (".ft-reply", ".ft-actions [aria-haspopup]"),
        (".ft-tab", ".ft-toolbar"),
    ):
        assert sign * (x_of(page.locator(after)) - x_of(page.locator(before))) > 0, (before, after)
    levels = [x_of(page.locator(".ft-author").nth(number)) for number in range(3)]
    assert sorted(levels, reverse=direction == "rtl") == levels
    # An Arabic comment, a form's hint and code have their own directions.
    directions = "node => getComputedStyle(node).direction"
    assert page.locator(".ft-body").first.evaluate(directions) == "rtl"
    assert page.locator("pre").first.evaluate(directions) == "ltr"
    assert page.locator(".ft-input-body").first.evaluate(directions) == direction
    assert page.locator("[placeholder='https://']").first.evaluate(directions) == "ltr"
    page.keyboard.press("Escape")
    page.locator(".ft-input-body").first.fill("שלום" if direction == "ltr" else "hello")
    assert page.locator(".ft-input-body").first.evaluate(directions) != direction


@pytest.mark.parametrize(("of_page", "of_widget"), PAIRS)
def test_nothing_is_wider_than_a_phone(
    server: str, website: Website, open_tab: OpenTab, say: Say, of_page: str, of_widget: str
) -> None:
    tree(say)
    page = open_tab("about:blank", viewport={"width": 320, "height": 800}).page
    page.goto(put(website, server, of_page, f'data-lang="{of_widget}"'))
    open_everything(page)
    for opener in page.locator(".ft-actions [aria-haspopup], .ft-sort").all():
        page.keyboard.press("Escape")
        opener.click()
        expect(page.locator(".ft-menu")).to_be_visible()
        assert page.evaluate("document.scrollingElement.scrollWidth") == 320
        assert page.evaluate(OUTSIDE) == []


@pytest.mark.parametrize(("of_page", "of_widget"), [("ar", "ar"), ("en", "ar"), ("ar", "en")])
def test_the_widget_is_accessible_in_both_directions(
    server: str, website: Website, open_tab: OpenTab, say: Say, of_page: str, of_widget: str
) -> None:
    tree(say)
    page = open_tab(put(website, server, of_page, f'data-lang="{of_widget}"')).page
    expect(page.locator(".ft-body")).to_have_count(4)
    assert accessibility.complaints(page) == []
    open_everything(page)
    assert accessibility.complaints(page) == []


def test_an_error_is_in_the_language_of_the_widget(
    server: str, website: Website, open_tab: OpenTab
) -> None:
    tab: Tab = open_tab(put(website, server, "de"))
    tab.expect_status(429)
    problem = {"code": "too-many-previews", "detail": "English", "params": {"seconds": 61}}
    headers = {"Access-Control-Allow-Origin": "*"}
    tab.page.route(
        "**/preview",
        lambda route: route.fulfill(status=429, body=json.dumps(problem), headers=headers),
    )
    form = tab.page.get_by_role("form", name="Kommentar schreiben")
    form.get_by_role("textbox", name="Kommentar").fill("a text")
    form.get_by_role("button", name="Vorschau").click()
    said = "Zu viele Vorschauen. Versuch es in 2 Minuten noch einmal."
    expect(form.get_by_role("alert").filter(has_text=said)).to_be_visible()


@pytest.mark.parametrize("attribute", ['data-lang="en"', ""])
def test_the_thread_names_its_language_and_direction(
    server: str, website: Website, open_tab: OpenTab, attribute: str
) -> None:
    """A page in a language without strings gets the next language in the list, finally English."""
    tab = open_tab("about:blank")
    body = f'<html lang="tlh" dir="rtl">{script(server)}{element(attribute)}'
    tab.page.goto(website.put("klingon", body))
    expect(tab.page.locator(".ft-thread")).to_have_attribute("lang", "en")
    expect(tab.page.locator(".ft-thread")).to_have_attribute("dir", "ltr")


@pytest.mark.parametrize(
    ("languages", "title"),
    [
        (("de", "en", "en", "en"), "1 Kommentar"),
        (("", "de-AT", "en", "en"), "1 Kommentar"),
        (("tlh", "DE", "en", "en"), "1 Kommentar"),
        (("", "tlh", "de", "en"), "1 Kommentar"),
        (("", "tlh", "", "de-CH"), "1 Kommentar"),
        (("ja-JP", "en", "en", "en"), "コメント1件"),
        (("", "zh", "", "fr-CA"), "1 commentaire"),
        (("", "en", "de", "de"), "1 comment"),
        (("", "tlh", "en", "de"), "1 comment"),
        (("", "tlh", "", "tlh"), "1 comment"),
    ],
)
def test_the_language_is_the_elements_the_pages_the_sites_or_the_browsers(
    server: str,
    website: Website,
    open_tab: OpenTab,
    say: Say,
    languages: tuple[str, str, str, str],
    title: str,
) -> None:
    say("hello")
    of_element, of_page, site_language, of_browser = languages
    tab = open_tab("about:blank", locale=of_browser)

    def of_site(route: playwright.Route) -> None:
        answer = route.fetch().json()
        answer["options"]["language"] = site_language
        route.fulfill(json=answer, headers={"Access-Control-Allow-Origin": "*"})

    tab.page.route("**/comments?*", of_site)
    body = f'<html lang="{of_page}">{script(server)}{element(f"data-lang={of_element}")}'
    tab.page.goto(website.put("language", body))
    expect(tab.page.locator(".ft-title")).to_have_text(title)


def _answer_late(route: playwright.Route) -> None:
    """Let the strings arrive after the failure of the bundle."""
    route.request.frame.page.wait_for_timeout(300)
    route.continue_()


@pytest.mark.parametrize(
    ("blocked", "told"),
    [
        ("widget", ("de", "Die Kommentare konnten nicht geladen werden.", "Erneut versuchen")),
        # Without its strings, the widget knows only these two texts.
        ("strings-de", ("en", "The comments could not be loaded.", "Try again")),
    ],
)
def test_a_failure_is_told_in_the_pages_language(
    server: str, website: Website, open_tab: OpenTab, blocked: str, told: tuple[str, str, str]
) -> None:
    language, sentence, again = told
    tab = open_tab("about:blank")
    tab.expected.append("net::ERR_FAILED")
    tab.page.route(f"**/widget/{blocked}-*", lambda route: route.abort())
    if blocked == "widget":
        tab.page.route("**/widget/strings-de-*", _answer_late)
    tab.page.goto(website.put("german", f'<html lang="de">{script(server)}{element()}'))
    message = tab.page.get_by_role("alert")
    expect(message).to_contain_text(sentence)
    expect(message).to_have_attribute("lang", language)
    expect(tab.page.get_by_role("button", name=again)).to_be_visible()
