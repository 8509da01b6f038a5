"""Measure the widget in a browser: requests, bytes, waiting, layout shift and main-thread time.

A page on another origin contains an article, the snippet of docs/embedding.md and a footer that is
in view. Its thread has 315 comments. Flatthread runs as in production.
"""

import contextlib
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import playwright.sync_api as playwright

from benchmarks import measuring, servers
from benchmarks.bars import Bar
from benchmarks.widget import page_loads, stage, talks, website
from comments.sites import site_settings

ROUNDS = 7
_PAGES = ("first", "second")
_COMMENT = ".ft-body"
_FOOTER = "<footer><hr><p>The Harbor Gazette, printed on the quay since 1874</p></footer>"
_ARTICLE = "<h1>Harbor time</h1><p>Everybody in town sets their watch by the tower.</p>"


def bars(*, quick: bool) -> Iterator[Bar]:
    """Load the pages in turns."""
    cold: list[page_loads.Loaded] = []
    warm: list[page_loads.Loaded] = []
    work, longest = [], []
    with _served() as urls, playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=stage.chromium(), args=list(stage.ARGUMENTS)
        )
        for _ in range(1 if quick else ROUNDS):
            first, second = page_loads.loads(browser, urls, _COMMENT)
            cold.append(first)
            warm.append(second)
            bare = page_loads.drawn(browser, f"{urls[0]}?bare")
            work.append(page_loads.drawn(browser, urls[0]).work - bare.work)
            longest.append(page_loads.drawn(browser, urls[0], is_slow=True).longest)
        browser.close()
    yield Bar("widget: requests", _median(cold, "requests"), 4, unit="requests")
    yield Bar("widget: script and style", _median(cold, "code") / 1000, 20, unit="kB")
    yield Bar("widget: cold", _median(cold, "first"), 700, unit="ms")
    yield Bar("widget: next page", _median(warm, "first"), 350, unit="ms")
    yield Bar("widget: layout shift", max(each.shift for each in cold), 0.01, unit="")
    yield Bar("widget: drawing", statistics.median(work), 50, unit="ms")
    yield Bar("widget: longest slow task", max(longest), 200, unit="ms")


def _median(loads: Sequence[page_loads.Loaded], name: str) -> float:
    return statistics.median(getattr(each, name) for each in loads)


@contextlib.contextmanager
def _served() -> Iterator[list[str]]:
    """Serve the product and pages that embed it. With the query `bare`, they do not."""
    now = datetime.now(UTC)
    with tempfile.TemporaryDirectory() as folder, website.opened() as pages:
        with measuring.stored(Path(folder) / "flatthread.db", durability="fast"):
            site_settings.add(stage.SITE, [pages.origin], scheme=stage.SCHEME, now=now)
            for page in _PAGES:
                stage.store_talk(page, talks.generated(), now)
        first = f"/api/v1/sites/{stage.SITE}/comments?thread={_PAGES[0]}"
        with servers.product(Path(folder), first) as server:
            server.settle()
            yield [_page(pages, f"http://127.0.0.1:{server.port}", page) for page in _PAGES]


def _page(pages: website.Website, product: str, thread: str) -> str:
    widget = stage.snippet(product, thread)
    bare = website.page("bare", _ARTICLE, _FOOTER)
    return pages.put(f"{thread}.html", website.page("bare", _ARTICLE, widget + _FOOTER), bare=bare)
