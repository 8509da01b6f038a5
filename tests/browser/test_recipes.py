"""Run the snippets of docs/recipes.md, with sample values for the systems' placeholders."""

import re
import urllib.parse
from typing import NamedTuple

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import OpenTab, Say, Website
from tests.support import programs

pytestmark = pytest.mark.browser

RECIPES = (programs.ROOT / "docs" / "recipes.md").read_text()
SYSTEMS = ("Plain HTML", "WordPress", "Ghost", "Hugo", "Jekyll", "Astro", "Next.js", "Vue")
# Placeholders that print a value, and those that control what is printed.
CONTROLS = re.compile(
    r"\{%.*?%\}|\{\{ (?:with|end|range)\b.*?\}\}|<\?php\s(?!the_ID|echo).*?\?>|^\?>|^---$.*?^---$",
    re.DOTALL | re.MULTILINE,
)
VALUES = re.compile(
    r"""\{\{.*?\}\}|<\?php.*?\?>|' \. esc_attr\( \$thread \) \. '|(?<=-thread=)\{\w+\}"""
    r"""|(?<=-count=)\{[\w.]+\}|(?<=-thread=")thread(?=")|(?<=-count=")post\.id(?=")""",
    re.DOTALL,
)
ID = "42"


class Snippet(NamedTuple):
    """A block of code in a system's section."""

    system: str
    number: int
    code: str

    def __str__(self) -> str:
        return f"{self.system} {self.number}"

    def html(self, server: str) -> str:
        """Return the snippet as the system would print it for the page 42 of the site "demo"."""
        code = VALUES.sub(ID, CONTROLS.sub("", self.code))
        code = code.replace("https://comments.example", server).replace('"blog"', '"demo"')
        # The components of Next.js and Vue are HTML with a few differences.
        code = re.sub(r"<Script (.*?) />", r"<script \1></script>", code)
        code = re.sub(r"<(div|span)\b([^>]*?)/>", r"<\1 \2></\1>", code)
        return code.replace(" :data-", " data-")


def snippets() -> list[Snippet]:
    found = []
    for system in SYSTEMS:
        section = re.search(
            rf"^## {system}\n(.*?)(?=^## )", RECIPES, flags=re.DOTALL | re.MULTILINE
        )
        assert section is not None, system
        blocks = re.findall(r"^```\S+\n(.*?)^```$", section[1], flags=re.DOTALL | re.MULTILINE)
        found += [Snippet(system, number, code) for number, code in enumerate(blocks)]
    return found


SNIPPETS = snippets()
ELEMENTS = [each for each in SNIPPETS if 'id="flatthread"' in each.code]
COUNTS = [each for each in SNIPPETS if re.search(r"<span[^>]*data-flatthread-count", each.code)]


def element(html: str) -> str:
    found = re.search(r"<div\b[^>]*id=\"flatthread\"[^>]*>", html)
    assert found is not None, html
    return f"{found[0]}</div>"


def script(system: str, name: str, server: str) -> str:
    """Return the script element in the recipe of a system."""
    for each in SNIPPETS:
        found = re.search(rf"<script[^>]*{name}[^>]*>", each.html(server))
        if each.system == system and found is not None:
            return f"{found[0]}</script>"
    raise AssertionError(f"{system} has no {name}")


def test_each_system_has_the_widget_and_counts() -> None:
    assert {each.system for each in ELEMENTS} == set(SYSTEMS)
    assert {each.system for each in COUNTS} | {"Plain HTML"} == set(SYSTEMS)


@pytest.mark.parametrize("snippet", ELEMENTS, ids=str)
def test_the_element_of_a_recipe_shows_its_thread(
    snippet: Snippet, server: str, website: Website, open_tab: OpenTab
) -> None:
    html = script(snippet.system, "flatthread.js", server) + element(snippet.html(server))
    tab = open_tab("about:blank")
    with tab.page.expect_response(lambda answer: "/comments?" in answer.url) as asked:
        tab.page.goto(website.put("recipe", html))
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(asked.value.url).query)
    assert re.fullmatch(rf"(?:[a-z]+-)?{ID}|first-post", query["thread"][0]), query
    expect(tab.page.get_by_text("No comments yet.")).to_be_visible()


@pytest.mark.parametrize("snippet", COUNTS, ids=str)
def test_the_list_of_a_recipe_shows_its_counts(
    snippet: Snippet, server: str, website: Website, open_tab: OpenTab
) -> None:
    found = re.search(r"<span[^>]*data-flatthread-count[^>]*>", snippet.html(server))
    assert found is not None
    html = f"{script(snippet.system, 'count.js', server)}{found[0]}</span>"
    page = open_tab(website.put("list", html)).page
    expect(page.locator("span")).to_have_text("0")


def test_the_plain_pages_run_as_they_are(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    plain = [each.html(server) for each in SNIPPETS if each.system == "Plain HTML"]
    one, two, three = (each.replace("first-post", "demo") for each in plain)
    say("a first comment")
    page = open_tab(website.put("plain", one + two + three)).page
    expect(page.locator(".ft-body")).to_have_text("a first comment")
    expect(page.get_by_role("link", name="1 comment")).to_be_visible()
    page.get_by_role("button", name="Dark").click()
    expect(page.locator(".ft-thread")).to_have_css("background-color", "rgb(23, 24, 28)")


def test_a_router_may_replace_the_page_and_its_script(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    """Frameworks do so when a page changes without reloading."""
    say("a first comment")
    (astro,) = (each for each in ELEMENTS if each.system == "Astro")
    html = script("Astro", "flatthread.js", server) + element(astro.html(server))
    page = open_tab(website.put("routed", html)).page
    expect(page.get_by_text("No comments yet.")).to_be_visible()
    page.evaluate(
        """next => {
            const body = document.createElement("body");
            body.innerHTML = next;
            document.body.replaceWith(body);
        }""",
        element(astro.html(server)).replace(ID, "demo"),
    )
    expect(page.locator(".ft-body")).to_have_text("a first comment")


def test_a_component_counts_again_when_its_list_has_changed(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    say("a first comment")
    counts = script("Vue", "count.js", server)
    page = open_tab(
        website.put("counted", f"{counts}<ul></ul><b data-flatthread-count=x></b>")
    ).page
    expect(page.locator("b")).to_have_text("0")
    page.evaluate(
        """async server => {
            const list = document.querySelector("ul");
            list.innerHTML = '<li data-flatthread-count="demo"></li>';
            document.querySelector("b").textContent = "kept";
            const { refresh } = await import(`${server}/widget/count.js`);
            await refresh(list);
        }""",
        server,
    )
    expect(page.locator("li")).to_have_text("1")
    expect(page.locator("b")).to_have_text("kept")
