"""The site that scripts/docs builds with Sphinx works in Chromium, on a phone too.

A warning of Sphinx fails the build: a dead link, or a page that docs/README.md does not list.
"""

from collections.abc import Iterator
from pathlib import Path

import flask
import playwright.sync_api as playwright
import pytest

from tests.browser.conftest import OpenTab, served
from tests.support import optional_tools, programs

pytestmark = pytest.mark.slow

INDEX = (programs.ROOT / "docs" / "README.md").read_text()
# Missing pictures, requests to other servers, and horizontal scrolling of the whole page.
FAULTS = """() => [
    ...[...document.images].filter((each) => !each.naturalWidth).map((each) => each.src),
    ...performance.getEntriesByType("resource").map((each) => each.name)
        .filter((name) => !name.startsWith(location.origin)),
    ...(document.documentElement.scrollWidth > innerWidth ? ["too wide"] : []),
]"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    sphinx = programs.ROOT / ".venv-release" / "bin" / "sphinx-build"
    optional_tools.require(sphinx.exists(), "scripts/test installs Sphinx for this test")
    folder = tmp_path_factory.mktemp("documentation") / "site"
    built = programs.run([programs.ROOT / "scripts" / "docs", folder], cwd="/")
    assert built.returncode == 0, built.stderr
    return folder


@pytest.fixture(scope="module")
def origin(folder: Path) -> Iterator[str]:
    app = flask.Flask("documentation", static_folder=folder, static_url_path="")
    with served(app) as origin:
        yield origin


def test_every_page_opens_on_a_phone_without_errors_or_requests_to_others(
    folder: Path, origin: str, open_tab: OpenTab
) -> None:
    tab = open_tab(f"{origin}/index.html", viewport={"width": 390, "height": 844})
    pages = sorted(str(each.relative_to(folder)) for each in folder.rglob("*.html"))
    assert {"index.html", "SECURITY.html", "emulator/index.html", "docs/api.html"} <= set(pages)
    faults = {}
    for name in pages:
        tab.page.goto(f"{origin}/{name}")
        if found := tab.page.evaluate(FAULTS):
            faults[name] = found
    assert faults == {}


def test_the_navigation_has_the_roles_of_the_index_and_search_finds_a_page(
    origin: str, open_tab: OpenTab
) -> None:
    page = open_tab(f"{origin}/index.html").page
    roles = [line.removeprefix("## ") for line in INDEX.splitlines() if line.startswith("## ")]
    shown = page.locator(".sidebar-tree .caption").all_inner_texts()
    assert [each.lower() for each in shown[1:]] == [each.lower() for each in roles]
    page.get_by_placeholder("Search").fill("tombstone")
    page.keyboard.press("Enter")
    playwright.expect(page.locator("#search-results li").first).to_be_visible()
    page.wait_for_load_state("networkidle")  # excerpts of the results
