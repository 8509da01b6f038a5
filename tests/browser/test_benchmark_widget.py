"""The benchmark of the widget measures what it says; its pictures are those of the documents."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import playwright.sync_api as playwright
import pytest

from benchmarks.widget import page_loads, scenes, talks, website

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
def pages() -> Iterator[website.Website]:
    with website.opened() as pages:
        yield pages


@pytest.mark.browser
def test_a_load_counts_requests_bytes_and_shift(
    chromium: playwright.Browser, pages: website.Website
) -> None:
    pages.put("code.html", CODE)
    pages.put("more.html", "")
    urls = [pages.put(f"{name}.html", PAGE) for name in ("first", "second")]
    cold, _ = page_loads.loads(chromium, urls, ".ft-body")
    assert cold.requests == 2
    assert cold.code == len(CODE)
    assert cold.first > 2 * 150
    assert cold.shift > 0.1


@pytest.mark.browser
def test_a_page_without_comments_needs_less_of_the_main_thread(
    chromium: playwright.Browser, pages: website.Website
) -> None:
    lines = "<p class=ft-body>a comment</p>" * 5_000
    pages.put("code.html", "")
    empty = page_loads.drawn(chromium, pages.put("empty.html", PAGE))
    full = page_loads.drawn(chromium, pages.put("full.html", PAGE + lines))
    assert empty.work < full.work


@pytest.mark.parametrize("language", ["english", "arabic"])
def test_written_comments_answer_earlier_ones(language: str) -> None:
    lines = talks.written(language, datetime.now(UTC))
    assert all(each.parent is None or each.parent < place for place, each in enumerate(lines))
    assert [each.created for each in lines] == sorted(each.created for each in lines)
    assert sum(each.is_pinned for each in lines) == 1


def test_the_documents_have_few_small_pictures_and_show_each() -> None:
    files = {each.stem: each.stat().st_size for each in (DOCS / "pictures").glob("*.webp")}
    assert sorted(files) == sorted(each.name for each in scenes.SCENES)
    assert len(files) <= MOST
    assert sum(files.values()) <= MOST_BYTES
    texts = [*DOCS.glob("*.md"), DOCS.parent / "README.md"]
    said = "\n".join(each.read_text(encoding="utf-8") for each in texts)
    assert set(re.findall(r"pictures/([\w-]+)\.webp", said)) == set(files)
