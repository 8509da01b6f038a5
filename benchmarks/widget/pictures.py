"""Take pictures of the widget in every state, theme and size, and on six host pages.

    python -m benchmarks.widget.pictures [NAME ...] [--docs]

Writes PNG files to `pictures/`, which git ignores. `--docs` writes the pictures that the documents
show to `docs/pictures/`, as WebP. Without a name, all scenes are taken. The pictures need Debian's
packages fonts-noto-core, fonts-noto-cjk and fonts-liberation: without them, Japanese and Arabic
letters are empty boxes.
"""

import argparse
import base64
import sys
from pathlib import Path

import playwright.sync_api as playwright

from benchmarks.serving import gunicorn_process
from benchmarks.widget import scenes, stage

_FOLDER = gunicorn_process.ROOT / "pictures"
_DOCS = gunicorn_process.ROOT / "docs" / "pictures"
_MARGIN = 16  # pixels above the element at which a picture begins
_REST = 400  # milliseconds for animations and fonts
_PATIENCE = 30_000  # milliseconds
_SCALE = 2  # pixels of the file for each pixel of the page
_QUALITY = 82  # of WebP; below 75, gray text gets blurred edges

# The pictures in the documents, with the height at which each is cut.
CHOSEN: dict[str, int] = {
    "desktop": 900,
    "phone": 844,
    "dark": 700,
    "forced-colors": 700,
    "right-to-left": 700,
    "composer": 420,
    "preview": 420,
    "reply": 640,
    "posted": 560,
    "menu": 560,
    "news": 480,
    "skeleton": 420,
    "empty": 420,
    "closed": 420,
    "offline": 420,
    "server-away": 300,
    "host-bare": 900,
    "host-bootstrap": 900,
    "host-tailwind": 900,
    "host-dark": 900,
    "host-serif": 900,
    "host-right-to-left": 900,
    "embed": 900,
    "demo": 900,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Take pictures of the widget.")
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--docs", action="store_true", help="write the documents' pictures")
    chosen = parser.parse_args()
    wanted = chosen.names or (list(CHOSEN) if chosen.docs else [it.name for it in scenes.SCENES])
    folder = _DOCS if chosen.docs else _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with stage.prepared() as shown, playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=stage.chromium(), args=list(stage.ARGUMENTS)
        )
        failed = 0
        for scene in scenes.SCENES:
            if scene.name in wanted:
                try:
                    _take(browser, shown, scene, folder, is_document=chosen.docs)
                except playwright.Error as error:
                    print(f"{scene.name} failed: {error}")
                    failed += 1
        browser.close()
    sys.exit(1 if failed else 0)


def _take(
    browser: playwright.Browser,
    shown: stage.Stage,
    scene: scenes.Scene,
    folder: Path,
    *,
    is_document: bool,
) -> None:
    context = browser.new_context(viewport=scene.viewport, device_scale_factor=2, **scene.options)
    page = context.new_page()
    page.set_default_timeout(_PATIENCE)
    scene.before(page, shown)
    if scene.thread and scene.thread != "empty":
        shown.copy(scene.thread)
    where = shown.product + scene.path if scene.path else ""
    page.goto(where or shown.url(scene.host, scene.thread, scene.attributes))
    page.locator(scene.waits_for).first.wait_for()
    scene.act(page, shown)
    if scene.top and not page.evaluate("scrollY"):
        top = (page.locator(scene.top).bounding_box() or {"y": 0})["y"]
        page.evaluate("y => scrollTo(0, y)", top - _MARGIN)
    page.wait_for_timeout(_REST)
    if is_document:
        _write_webp(page, folder / f"{scene.name}.webp", CHOSEN[scene.name])
    else:
        page.screenshot(path=folder / f"{scene.name}.png")
    context.close()


def _write_webp(page: playwright.Page, file: Path, height: int) -> None:
    """Write the upper part of the window; playwright itself writes only PNG and JPEG."""
    width, left, top = page.evaluate("[innerWidth, scrollX, scrollY]")
    clip = {"x": left, "y": top, "width": width, "height": height, "scale": _SCALE}
    session = page.context.new_cdp_session(page)
    options = {"format": "webp", "quality": _QUALITY, "clip": clip}
    shot = session.send("Page.captureScreenshot", options)
    file.write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    main()
