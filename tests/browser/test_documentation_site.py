"""The site that scripts/docs builds with Sphinx works in Chromium, on a phone too.

A warning of Sphinx fails the build: a dead link, or a page that docs/README.md does not list.
"""

import subprocess
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


def build(folder: Path) -> None:
    sphinx = programs.ROOT / ".venv-docs" / "bin" / "sphinx-build"
    optional_tools.require(sphinx.exists(), "scripts/test installs Sphinx for this test")
    built = subprocess.run(
        [programs.ROOT / "scripts" / "docs", folder],
        env=programs.environment(),
        check=False,
        capture_output=True,
        text=True,
        timeout=5 * programs.PATIENCE,
    )
    assert built.returncode == 0, built.stderr


# One test, because each worker of pytest would build the site again.
def test_every_page_opens_on_a_phone_without_faults_and_search_finds_pages(
    tmp_path: Path, open_tab: OpenTab
) -> None:
    folder = tmp_path / "site"
    build(folder)
    names = sorted(str(each.relative_to(folder)) for each in folder.rglob("*.html"))
    assert {"index.html", "SECURITY.html", "emulator/index.html", "docs/api.html"} <= set(names)
    with served(flask.Flask("site", static_folder=folder, static_url_path="")) as origin:
        page = open_tab(f"{origin}/index.html", viewport={"width": 390, "height": 844}).page
        shown = page.locator(".sidebar-tree .caption").all_text_contents()
        assert shown[1:] == [
            line.removeprefix("## ") for line in INDEX.splitlines() if line.startswith("## ")
        ]
        faults = {}
        for name in names:
            page.goto(f"{origin}/{name}")
            if found := page.evaluate(FAULTS):
                faults[name] = found
        assert faults == {}
        page.goto(f"{origin}/search.html?q=tombstone")
        playwright.expect(page.locator("#search-results li").first).to_be_visible()
        page.wait_for_load_state("networkidle")  # Excerpts of the results
