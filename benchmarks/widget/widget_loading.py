"""Measure the widget in a browser: requests, bytes, waiting, layout shift and main-thread time.

A page on another origin contains an article, the snippet of docs/embedding.md and a footer that is
in view. Its thread has 315 comments. Flatthread runs as in production. The peers that are installed
(benchmarks/README.md) show the same comments, in turn with Flatthread in each round.

    python -m benchmarks.widget.widget_loading [--rounds 7]

Prints a table in Markdown.
"""

import argparse
import contextlib
import dataclasses
import statistics
import tempfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import playwright.sync_api as playwright

from benchmarks.bars import Bar
from benchmarks.serving import gunicorn_process
from benchmarks.threads import loading
from benchmarks.widget import host_pages, page_loads, peers, product_site, sample_talks, stage
from comments.store import connection
from emulator import inprocess

ROUNDS = 7
_PAGES = ("first", "second")
_NAME = "Flatthread"
_FOOTER = "<footer><hr><p>The Harbor Gazette, printed on the quay since 1874</p></footer>"
_ARTICLE = "<h1>Harbor time</h1><p>Everybody in town sets their watch by the tower.</p>"


@dataclasses.dataclass(slots=True)
class Measured:
    """The figures of a service: one for each round."""

    cold: list[page_loads.Loaded] = dataclasses.field(default_factory=list)
    warm: list[page_loads.Loaded] = dataclasses.field(default_factory=list)
    drawn: list[page_loads.Drawn] = dataclasses.field(default_factory=list)
    slow: list[page_loads.Drawn] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(frozen=True, slots=True)
class _Subject:
    """Pages to load, and the selector of a comment in them."""

    urls: list[str]
    selector: str


def bars(*, quick: bool) -> Iterator[Bar]:
    """Measure the widget, and print the table with the peers' figures."""
    found = measure(1 if quick else ROUNDS)
    print(table(found))
    ours = found[_NAME]
    most = max(each.longest for each in ours.slow)
    yield Bar("widget: requests", median(ours.cold, "requests"), 4, unit="requests")
    yield Bar("widget: script and style", median(ours.cold, "code") / 1000, 20, unit="kB")
    yield Bar("widget: cold", median(ours.cold, "first"), 700, unit="ms")
    yield Bar("widget: next page", median(ours.warm, "first"), 350, unit="ms")
    yield Bar("widget: layout shift", max(each.shift for each in ours.cold), 0.01, unit="")
    yield Bar("widget: drawing", median(ours.drawn, "work"), 50, unit="ms")
    yield Bar("widget: longest slow task", most, 200, unit="ms")


def measure(rounds: int) -> dict[str, Measured]:
    """Return the figures of Flatthread and of each installed peer."""
    with contextlib.ExitStack() as stack:
        driver = stack.enter_context(playwright.sync_playwright())
        browser = driver.chromium.launch(
            executable_path=stage.chromium(), args=list(stage.ARGUMENTS)
        )
        subjects = {_NAME: stack.enter_context(_flatthread())}
        for name, programs in peers.installed().items():
            peer, subject = stack.enter_context(_peer(name, programs))
            subjects[peer.name] = subject
        found = {name: Measured() for name in subjects}
        for _ in range(rounds):
            for name, subject in subjects.items():
                _round(browser, subject, found[name])
        browser.close()
    return found


def _round(browser: playwright.Browser, subject: _Subject, found: Measured) -> None:
    cold, warm = page_loads.loads(browser, subject.urls, subject.selector)
    found.cold.append(cold)
    found.warm.append(warm)
    bare = page_loads.drawn(browser, subject.urls[0] + "?bare", subject.selector)
    whole = page_loads.drawn(browser, subject.urls[0], subject.selector)
    found.drawn.append(dataclasses.replace(whole, work=whole.work - bare.work))
    found.slow.append(page_loads.drawn(browser, subject.urls[0], subject.selector, is_slow=True))


@contextlib.contextmanager
def _flatthread() -> Iterator[_Subject]:
    lines, now = sample_talks.generated(), datetime.now(UTC)
    with tempfile.TemporaryDirectory() as folder, host_pages.website() as website:
        data = Path(folder)
        with inprocess.open_engine(
            data / "flatthread.db",
            indexes=gunicorn_process.ROOT / "index.yaml",
            durability="fast",
            concurrency="pessimistic",
            history=0,
        ) as engine:
            store = connection.Store(inprocess.Channel(engine), project=loading.PROJECT)
            with store.context():
                product_site.add([website.origin], now)
                for page in _PAGES:
                    product_site.store(page, lines, now)
        first = f"/api/v1/sites/{product_site.SITE}/comments?thread={_PAGES[0]}"
        with gunicorn_process.product(data, first) as server:
            server.settle()
            yield _subject(
                website,
                lambda page: stage.snippet(f"http://127.0.0.1:{server.port}", page),
                ".ft-body",
            )


@contextlib.contextmanager
def _peer(name: str, programs: Path) -> Iterator[tuple[peers.Peer, _Subject]]:
    lines = sample_talks.generated()
    with tempfile.TemporaryDirectory() as data, host_pages.website() as website:
        pages = {website.put(f"{each}.html", ""): lines for each in _PAGES}
        with peers.RUNS[name](programs, Path(data), website.origin, pages) as peer:
            yield peer, _subject(website, lambda _page: peer.widget, peer.comment)


def _subject(website: host_pages.Website, widget: Callable[[str], str], selector: str) -> _Subject:
    """Publish two pages with a widget. With the query `bare`, they have none."""
    urls = []
    for each in _PAGES:
        bare = host_pages.page("bare", _ARTICLE, _FOOTER)
        whole = host_pages.page("bare", _ARTICLE, widget(each) + _FOOTER)
        urls.append(website.put(f"{each}.html", whole, bare=bare))
    return _Subject(urls, selector)


def median(values: list[page_loads.Loaded] | list[page_loads.Drawn], name: str) -> float:
    """Return the median of a figure."""
    return statistics.median(getattr(each, name) for each in values)


def table(found: dict[str, Measured]) -> str:
    """Return a table in Markdown, with a column for each service."""
    rows: list[tuple[str, list[str]]] = []
    every = list(found.values())
    rows.append(("comments shown at first", [f"{median(it.drawn, 'shown'):.0f}" for it in every]))
    for label, part, name, form in _ROWS:
        rows.append((label, [format(median(getattr(it, part), name), form) for it in every]))
    head = ["| |", *(f" {name} |" for name in found)]
    lines = ["".join(head), "|---|" + "---:|" * len(found)]
    lines += [f"| {label} | " + " | ".join(cells) + " |" for label, cells in rows]
    return "\n".join(lines)


_ROWS = (
    ("requests before the first comment, cold", "cold", "requests", ".0f"),
    ("the same on the next page", "warm", "requests", ".0f"),
    ("script and style, bytes as sent", "cold", "code", ",.0f"),
    ("script and style, bytes compressed", "cold", "packed", ",.0f"),
    ("first comment, cold, ms", "cold", "first", ",.0f"),
    ("first comment on the next page, ms", "warm", "first", ",.0f"),
    ("layout shift", "cold", "shift", ".3f"),
    ("main thread, ms", "drawn", "work", ",.0f"),
    ("longest task with a processor 4 times slower, ms", "slow", "longest", ",.0f"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the widget and its peers.")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    print(table(measure(parser.parse_args().rounds)))


if __name__ == "__main__":
    main()
