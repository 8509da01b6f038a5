"""The widget fills in texts as the server does and shows only texts from the catalogue."""

import itertools
import json
import re

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.domain.languages import catalogue
from tests.browser import widget_form
from tests.browser.conftest import OpenTab, Say, Website, built

pytestmark = [pytest.mark.browser, pytest.mark.settings(mail=True)]

FILL = """async ([reader, language, entries, values]) => {
  const { prepare, texts } = await import(reader);
  prepare(language, entries, null);
  const { t } = texts(entries);
  return Object.fromEntries(Object.keys(entries).map((name) => [name, t(name, values)]));
}"""
# Return every visible text and label in the widget.
TEXTS = """() => {
  const { shadowRoot } = document.querySelector("#flatthread");
  const walker = document.createTreeWalker(shadowRoot, NodeFilter.SHOW_ALL);
  const found = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.nodeType === Node.TEXT_NODE) found.push(node.data);
    else found.push(node.getAttribute("aria-label") ?? "", node.getAttribute("title") ?? "");
  }
  return found;
}"""


@pytest.mark.parametrize("language", catalogue.languages())
def test_the_widget_fills_texts_as_the_server_does(
    server: str, website: Website, open_tab: OpenTab, language: str
) -> None:
    page, texts = open_tab(website.put("empty", "")).page, catalogue.of(language)
    cases = itertools.product(("widget", "widget-writing", "errors"), (0, 1, 2, 3, 11, 1145, 10**6))
    for surface, count in cases:
        entries = texts.entries[surface]
        names = set(re.findall(r"\{(\w+)\}", json.dumps(entries)))
        values = {name: f"{{{name}}} $& <b>" for name in names} | {"count": count}
        expected = {name: texts.text(f"{surface}.{name}", **values) for name in entries}
        reader = f"{server}/widget/{built('widget')}"
        filled = page.evaluate(FILL, [reader, language, entries, values])
        assert filled == expected, (surface, count)


def _bracketed(text: str) -> str:
    return f"[{text}]"


def _with_brackets(entry: catalogue.Entry) -> catalogue.Entry:
    if isinstance(entry, str):
        return _bracketed(entry)
    return {form: _bracketed(text) for form, text in entry.items()}


def _translate(route: playwright.Route) -> None:
    surfaces = json.loads(route.fetch().text())
    made = {
        surface: {key: _with_brackets(entry) for key, entry in entries.items()}
        for surface, entries in surfaces.items()
        if surface != "writing"  # The digest of the later texts
    }
    route.fulfill(json={**surfaces, **made})


def _unchecked(route: playwright.Route) -> None:
    """Send the entry without the check that would refuse the changed texts."""
    response = route.fetch()
    assert "integrity:" in response.text()
    route.fulfill(response=response, body=response.text().replace("integrity:", "unchecked:"))


def test_the_widget_shows_only_texts_of_the_catalogue(
    server: str, open_tab: OpenTab, say: Say
) -> None:
    """Put brackets around catalogue texts; only dates and people's own texts may be outside."""

    say("1", parent=say("2", name="3"), name="4")
    tab = open_tab("about:blank")
    page = tab.page
    page.route("**/widget/*.json", _translate)
    page.route("**/widget/flatthread.js", _unchecked)
    page.goto(server)
    form = page.get_by_role("form").first
    form.get_by_role("textbox", name="Comment").fill("5")
    form.get_by_role("textbox", name="Name").fill("6")
    expect(form.get_by_role("checkbox")).to_have_count(2)
    form.get_by_role("button", name="Post comment").click()
    expect(page.get_by_role("heading", name="3 comments")).to_be_visible()
    page.get_by_role("button", name="Reply to").last.click()
    page.get_by_role("button", name="More actions").first.click()
    page.get_by_role("menuitem", name="Delete").click()
    expect(page.get_by_role("button", name="Keep comment")).to_be_visible()
    shown = [text for text in page.evaluate(TEXTS) if text]
    assert len(shown) > 60
    outside = [re.sub(r"\[[^][]*\]", "", re.sub(r"\[[^][]*\]", "", text)) for text in shown]
    dates = re.compile(r"\w+ \d+, \d{4} at \d+:\d+\s[AP]M")
    assert [text for text in outside if re.search("[a-z]", dates.sub("", text))] == []


UNKNOWN = {"code": "of-a-later-release", "detail": "a sentence of the server"}
TOO_LONG = {"code": "too-long", "field": "body", "detail": "a sentence of the server"}


@pytest.mark.parametrize(
    ("status", "problem", "shown"),
    [
        (400, {**TOO_LONG, "params": {"limit": 1234}}, "must have at most 1,234 characters."),
        (400, TOO_LONG, "A sentence of the server"),
        (400, {"code": "required", "field": "body"}, "Write a comment first."),
        (400, UNKNOWN, "A sentence of the server"),
        (429, {"code": "too-fast", "params": {"seconds": 61}}, "fast. Try again in 2 minutes."),
        (503, UNKNOWN, "The server is busy. Try again in 7 seconds."),
        (500, {"code": "internal"}, "Something went wrong on the server."),
        (502, None, "The server did not respond."),
    ],
)  # fmt: skip
def test_an_error_is_translated_by_its_code(
    server: str, open_tab: OpenTab, status: int, problem: object, shown: str
) -> None:
    tab = open_tab(server)
    tab.expect_status(status)
    headers = {"Retry-After": "7", "Access-Control-Expose-Headers": "Retry-After"}
    answer = {"status": status, "headers": headers, "body": json.dumps(problem)}
    tab.page.route("**/preview", lambda route: route.fulfill(**answer))
    form = widget_form.opened(tab.page)
    form.get_by_role("textbox", name="Comment").fill("a text")
    form.get_by_role("button", name="Preview").click()
    expect(form.get_by_role("alert").filter(has_text=shown)).to_be_visible()
