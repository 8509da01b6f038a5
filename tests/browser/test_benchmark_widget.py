"""The benchmark of the widget measures what it says; its pictures are those of the documents."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import playwright.sync_api as playwright
import pytest

from benchmarks.widget import (
    host_pages,
    page_loads,
    pictures,
    sample_talks,
    scenes,
    widget_loading,
)

DOCS = Path(__file__).parents[2] / "docs"
MOST, MOST_BYTES = 25, 3_000_000
PAGE = """<!doctype html><title>page</title><div id="flatthread"></div>
<footer>in view</footer><script src="/code.html"></script>"""
# A comment that moves the footer, after one more request.
CODE = """fetch("/more.html").then(() => {
    const comment = document.createElement("p");
    comment.className = "ft-body";
    comment.style.height = "300px";
    comment.textContent = "a comment";
    document.getElementById("flatthread").append(comment);
});"""


@pytest.fixture
def website() -> Iterator[host_pages.Website]:
    with host_pages.website() as website:
        yield website


@pytest.mark.browser
def test_a_load_counts_requests_bytes_and_shift(
    chromium: playwright.Browser, website: host_pages.Website
) -> None:
    website.put("code.html", CODE)
    website.put("more.html", "")
    urls = [website.put(f"{name}.html", PAGE) for name in ("first", "second")]
    cold, _ = page_loads.loads(chromium, urls, ".ft-body")
    assert cold.requests == 2
    assert cold.code == len(CODE)
    assert cold.first > 2 * 150
    assert cold.shift > 0.1


@pytest.mark.browser
def test_a_page_without_comments_needs_less_of_the_main_thread(
    chromium: playwright.Browser, website: host_pages.Website
) -> None:
    lines = "<p class=ft-body>a comment</p>" * 5_000
    website.put("code.html", "")
    empty = page_loads.drawn(chromium, website.put("empty.html", PAGE), ".ft-body")
    full = page_loads.drawn(chromium, website.put("full.html", PAGE + lines), ".ft-body")
    assert (empty.shown, full.shown) == (0, 5_000)
    assert empty.work < full.work


def test_the_table_has_a_row_for_each_figure() -> None:
    loaded = page_loads.Loaded(first=612.4, requests=4, code=19_500, packed=19_500, shift=0.0)
    drawn = page_loads.Drawn(work=44.6, longest=0, shown=50)
    measured = widget_loading.Measured([loaded], [loaded], [drawn], [drawn])
    table = widget_loading.table({"Flatthread": measured})
    assert "| first comment, cold, ms | 612 |" in table
    assert "| script and style, bytes as sent | 19,500 |" in table
    assert "| comments shown at first | 50 |" in table


@pytest.mark.parametrize("language", ["english", "arabic"])
def test_written_comments_answer_earlier_ones(language: str) -> None:
    lines = sample_talks.written(language, datetime.now(UTC))
    assert all(each.parent is None or each.parent < place for place, each in enumerate(lines))
    assert [each.created for each in lines] == sorted(each.created for each in lines)
    assert sum(each.is_pinned for each in lines) == 1


def test_scenes_have_different_names() -> None:
    names = [each.name for each in scenes.SCENES]
    assert sorted(names) == sorted(set(names))


def test_the_documents_have_few_small_pictures_and_show_each() -> None:
    files = {each.stem: each.stat().st_size for each in (DOCS / "pictures").glob("*.webp")}
    assert set(files) == set(pictures.CHOSEN)
    assert set(files) <= {each.name for each in scenes.SCENES}
    assert len(files) <= MOST
    assert sum(files.values()) <= MOST_BYTES
    texts = [*DOCS.glob("*.md"), DOCS.parent / "README.md"]
    said = "\n".join(each.read_text(encoding="utf-8") for each in texts)
    assert set(re.findall(r"pictures/([\w-]+)\.webp", said)) == set(files)
