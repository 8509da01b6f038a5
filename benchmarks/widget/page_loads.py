"""Load pages with a widget in Chromium on a slow network, and measure how long a reader waits.

Each round opens a page in a new profile (cold), then another page of the same website (warm). The
network is emulated by Chromium: 150 ms for each request and 1.6 Mbit/s.

All times begin with the end of the host page's HTML (`responseEnd` of its navigation). A comment
counts as shown in the first frame in which its element has a size.
"""

import dataclasses
from collections.abc import Iterator

import playwright.sync_api as playwright

_NETWORK = {
    "offline": False,
    "latency": 150,  # Milliseconds
    "downloadThroughput": 1.6e6 / 8,
    "uploadThroughput": 750e3 / 8,
}
_VIEWPORT = {"width": 1000, "height": 900}
_REST = 1_500  # Milliseconds after the first comment, for what loads or moves later
_PATIENCE = 60_000  # Milliseconds
_SLOW = 4  # Times slower than this machine's processor
_PROBE = """
(() => {
    const found = (window.probe = { first: null, shift: 0, longest: 0 });
    new PerformanceObserver((list) => {
        for (const { hadRecentInput, value } of list.getEntries())
            if (!hadRecentInput) found.shift += value;
    }).observe({ type: "layout-shift", buffered: true });
    new PerformanceObserver((list) => {
        for (const { duration } of list.getEntries())
            found.longest = Math.max(found.longest, duration);
    }).observe({ type: "longtask", buffered: true });
    const look = () => {
        const host = document.getElementById("flatthread");
        const comment = (host?.shadowRoot ?? document).querySelector("SELECTOR");
        if (comment?.getClientRects().length) found.first = performance.now();
        else requestAnimationFrame(look);
    };
    if (WATCHES) requestAnimationFrame(look);
})()
"""


@dataclasses.dataclass(frozen=True, slots=True)
class Loaded:
    """A loaded page. Times are in milliseconds, sizes in bytes.

    `requests` are those sent before the first comment was shown, without the page itself and
    without answers from the browser's cache. `code` is the size of scripts and styles as sent.
    """

    first: float
    requests: int
    code: int
    shift: float


@dataclasses.dataclass(frozen=True, slots=True)
class Drawn:
    """Milliseconds of a page's main thread: processor time in all, and its longest task.

    Tasks below 50 ms count as 0.
    """

    work: float
    longest: float


def loads(browser: playwright.Browser, urls: list[str], selector: str) -> Iterator[Loaded]:
    """Yield the measured pages; all but the first find a filled cache."""
    context = browser.new_context(viewport=_VIEWPORT)
    page = context.new_page()
    page.add_init_script(_probe(selector, watches=True))
    session = context.new_cdp_session(page)
    session.send("Network.enable")
    session.send("Network.emulateNetworkConditions", _NETWORK)
    traffic = _Traffic(session)
    for url in urls:
        traffic.clear()
        page.goto(url, wait_until="commit")
        page.wait_for_function("window.probe?.first", timeout=_PATIENCE)
        page.wait_for_timeout(_REST)
        first, shift, start, end = page.evaluate(
            """() => [probe.first, probe.shift, performance.timeOrigin,
                performance.getEntriesByType("navigation")[0].responseEnd]"""
        )
        yield Loaded(first - end, traffic.requests((start + first) / 1000), traffic.code(), shift)
    context.close()


def drawn(browser: playwright.Browser, url: str, *, is_slow: bool = False) -> Drawn:
    """Load a page on a fast network, in a new profile, and return its main thread's work."""
    context = browser.new_context(viewport=_VIEWPORT)
    page = context.new_page()
    page.add_init_script(_probe("", watches=False))
    session = context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    if is_slow:
        session.send("Emulation.setCPUThrottlingRate", {"rate": _SLOW})
    page.goto(url)
    page.wait_for_timeout(_REST * (_SLOW if is_slow else 1))
    metrics = session.send("Performance.getMetrics")["metrics"]
    work = next(each["value"] for each in metrics if each["name"] == "TaskDuration")
    longest = page.evaluate("window.probe.longest")
    context.close()
    return Drawn(work * 1000, longest)


def _probe(selector: str, *, watches: bool) -> str:
    return _PROBE.replace("SELECTOR", selector).replace("WATCHES", str(watches).lower())


class _Traffic:
    """The requests of a page, by id."""

    def __init__(self, session: playwright.CDPSession) -> None:
        self._session = session
        self._sent: dict[str, tuple[float, str]] = {}
        self._sizes: dict[str, int] = {}
        self._cached: set[str] = set()
        session.on("Network.requestWillBeSent", self._send)
        session.on("Network.requestServedFromCache", lambda it: self._cached.add(it["requestId"]))
        session.on("Network.responseReceived", self._receive)
        session.on("Network.dataReceived", self._count)

    def clear(self) -> None:
        self._sent.clear()
        self._sizes.clear()
        self._cached.clear()

    def requests(self, until: float) -> int:
        """Return the number of requests before a moment, in seconds since 1970."""
        return sum(
            moment <= until and kind != "Document" and each not in self._cached
            for each, (moment, kind) in self._sent.items()
        )

    def code(self) -> int:
        """Return the bytes of scripts and styles as sent."""
        return sum(
            self._sizes.get(each, 0)
            for each, (_, kind) in self._sent.items()
            if kind in {"Script", "Stylesheet"} and each not in self._cached
        )

    def _send(self, event: dict) -> None:
        kind = event.get("type", "")
        if not event["request"]["url"].endswith("/favicon.ico"):
            self._sent[event["requestId"]] = (event["wallTime"], kind)

    def _receive(self, event: dict) -> None:
        if event["response"].get("fromDiskCache"):
            self._cached.add(event["requestId"])

    def _count(self, event: dict) -> None:
        each = event["requestId"]
        self._sizes[each] = self._sizes.get(each, 0) + event["encodedDataLength"]
