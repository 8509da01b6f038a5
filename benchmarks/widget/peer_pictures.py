"""Take the same pictures of Flatthread's widget and of its peers, to compare their looks.

    python -m benchmarks.widget.peer_pictures FOLDER

All show the same comments on the same bare page: on a wide screen, on a phone, and with the form
open. The names of the services are not in the pictures.
"""

import argparse
import contextlib
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import playwright.sync_api as playwright

from benchmarks.widget import host_pages, peers, sample_talks, stage

_DESKTOP = {"width": 900, "height": 1100}
_PHONE = {"width": 390, "height": 844}
_QUIET = 1_500  # milliseconds for pictures of authors and animations
_BELOW = 16  # pixels of the page that remain above the widget
_NAMES = ".wl-power { visibility: hidden }"  # a footer with the service's name
_OURS = peers.Peer("Flatthread", "", ".ft-body", "#flatthread textarea")


def main() -> None:
    parser = argparse.ArgumentParser(description="Take the same pictures of several widgets.")
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=stage.chromium(), args=stage.ARGUMENTS)
        with stage.prepared() as shown:
            _take(browser, folder, _OURS, shown.url())
        for name, programs in peers.installed().items():
            with _prepared(name, programs) as (peer, url):
                _take(browser, folder, peer, url)
        browser.close()


@contextlib.contextmanager
def _prepared(name: str, programs: Path) -> Iterator[tuple[peers.Peer, str]]:
    lines = sample_talks.written("english", datetime.now(UTC))
    with tempfile.TemporaryDirectory() as data, host_pages.website() as website:
        url = website.put("page.html", "")
        with peers.RUNS[name](programs, Path(data), website.origin, {url: lines}) as peer:
            article = sample_talks.article("english")
            yield peer, website.put("page.html", host_pages.page("bare", article, peer.widget))


def _take(browser: playwright.Browser, folder: Path, peer: peers.Peer, url: str) -> None:
    name = peer.name.lower()
    for size, viewport in (("desktop", _DESKTOP), ("phone", _PHONE)):
        page = browser.new_page(viewport=viewport, device_scale_factor=2)
        page.goto(url)
        page.locator(peer.comment).first.wait_for()
        page.add_style_tag(content=_NAMES)
        page.wait_for_timeout(_QUIET)
        page.screenshot(path=folder / f"{name}-{size}.png")
        page.screenshot(path=folder / f"{name}-{size}-whole.png", full_page=True)
        box = page.locator(peer.composer).first
        box.click()
        box.press_sequentially("The bell is louder than **anyone** expects.")
        page.wait_for_timeout(_QUIET)
        above = f"y => scrollBy(0, y - {_BELOW * 4})"
        page.evaluate(above, (box.bounding_box() or {"y": 0})["y"])
        page.screenshot(path=folder / f"{name}-{size}-composer.png")
        page.close()


if __name__ == "__main__":
    main()
