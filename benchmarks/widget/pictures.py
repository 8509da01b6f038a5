"""Take the pictures of docs/pictures.md, as WebP.

They need Debian's packages fonts-noto-core, fonts-noto-cjk and fonts-liberation: without them,
Japanese and Arabic letters are empty boxes.
"""

import base64
from pathlib import Path

import playwright.sync_api as playwright

from benchmarks.widget import scenes, stage

_MARGIN = 16  # Pixels above the element at which a picture begins
_REST = 400  # Milliseconds for animations and fonts
_PATIENCE = 30_000  # Milliseconds
_SCALE = 2  # Pixels of the file for each pixel of the page
_QUALITY = 82  # Of WebP; below 75, gray text gets blurred edges


def draw(folder: Path, *, quick: bool) -> None:
    """Take all pictures, or only the first two if `quick`."""
    with stage.prepared() as shown, playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=stage.chromium(), args=list(stage.ARGUMENTS)
        )
        for scene in scenes.SCENES[: 2 if quick else None]:
            _take(browser, shown, scene, folder)
        browser.close()


def _take(
    browser: playwright.Browser, shown: stage.Stage, scene: scenes.Scene, folder: Path
) -> None:
    context = browser.new_context(viewport=scene.viewport, device_scale_factor=2, **scene.options)
    page = context.new_page()
    page.set_default_timeout(_PATIENCE)
    scene.before(page, shown)
    if scene.thread and scene.thread != "empty":
        shown.copy(scene.thread)
    where = shown.product + scene.path if scene.path else ""
    page.goto(where or shown.url(scene.host, scene.thread))
    page.locator(scene.waits_for).first.wait_for()
    scene.act(page, shown)
    if scene.top and not page.evaluate("scrollY"):
        top = (page.locator(scene.top).bounding_box() or {"y": 0})["y"]
        page.evaluate("y => scrollTo(0, y)", top - _MARGIN)
    page.wait_for_timeout(_REST)
    _write_webp(page, folder / f"{scene.name}.webp", scene.height)
    context.close()


def _write_webp(page: playwright.Page, file: Path, height: int) -> None:
    """Write the upper part of the window; playwright itself writes only PNG and JPEG."""
    width, left, top = page.evaluate("[innerWidth, scrollX, scrollY]")
    clip = {"x": left, "y": top, "width": width, "height": height, "scale": _SCALE}
    session = page.context.new_cdp_session(page)
    options = {"format": "webp", "quality": _QUALITY, "clip": clip}
    shot = session.send("Page.captureScreenshot", options)
    file.write_bytes(base64.b64decode(shot["data"]))
