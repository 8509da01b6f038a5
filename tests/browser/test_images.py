"""Images of the origins that a site lists are shown in Chromium; all other images are links."""

import struct
import zlib
from collections.abc import Callable
from typing import Any

import flask
import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.domain import records
from comments.sites import site_settings
from comments.store import connection
from tests.browser import widget_form
from tests.browser.conftest import OpenTab, Say, Tab, Website

pytestmark = pytest.mark.browser

LISTED = "https://img.example"
PHONE = {"width": 320, "height": 640}
FOREIGN = (
    "https://img.example.evil.test/a.png",
    "https://evil.test/img.example/b.png",
    "https://img.example:444/c.png",
    "http://img.example/d.png",
    "https://sub.img.example/e.png",
    "https://\u0456mg.example/f.png",
)
SHIFT = """
    window.shift = 0;
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) window.shift += entry.value;
    }).observe({ type: "layout-shift", buffered: true });
"""
VIOLATED = """new Promise((done) => {
  const look = () => window.violations.length > 0 ? done() : setTimeout(look, 20);
  look();
})"""


def picture(width: int, height: int) -> bytes:
    """Return a gray PNG of a size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        check = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + check

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x80" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


class Pictures:
    """The image host. It answers each request when the test lets it, and records all requests."""

    def __init__(self) -> None:
        self.requests: list[playwright.Request] = []
        self.waiting: list[playwright.Route] = []
        self.is_slow = False
        self.answer: dict[str, Any] = {"body": picture(1600, 3000), "content_type": "image/png"}

    def serve(self, tab: Tab) -> None:
        tab.page.route("**/*.png", self._answer)

    def release(self) -> None:
        for route in self.waiting:
            route.fulfill(**self.answer)

    def _answer(self, route: playwright.Route) -> None:
        self.requests.append(route.request)
        self.waiting.append(route)
        if not self.is_slow:
            self.release()
            self.waiting.clear()


@pytest.fixture
def pictures() -> Pictures:
    return Pictures()


@pytest.fixture(autouse=True)
def listed(open_store: connection.Store, site: records.Site) -> None:
    with open_store.context():
        site_settings.change("demo", options={"images": [LISTED]})


@pytest.fixture
def show(
    server: str, website: Website, open_tab: OpenTab, pictures: Pictures
) -> Callable[..., playwright.Page]:
    """Return a function that opens a page of the website with the thread."""

    def opened(policy: str = "", **options: object) -> playwright.Page:
        script = f'<script type="module" src="{server}/widget/flatthread.js" data-site="demo">'
        body = f'{script}</script><div id="flatthread" data-thread="demo"></div>'
        headers = {"Content_Security_Policy": policy} if policy else {}
        tab = open_tab("about:blank", **options)
        tab.expected += ["ERR_FAILED", "violates the following", "img-src:"] if policy else []
        tab.page.add_init_script(SHIFT)
        pictures.serve(tab)
        tab.page.goto(website.put("article", body, **headers))
        expect(tab.page.locator(".ft-body").first).to_be_visible()
        return tab.page

    return opened


Show = Callable[..., playwright.Page]


def policy(server: str, images: str) -> str:
    return f"default-src 'none'; script-src {server}; connect-src {server}; img-src {images}"


def test_a_listed_image_is_shown_within_its_link_and_tells_its_host_nothing(
    show: Show, say: Say, pictures: Pictures
) -> None:
    say(f"Look: ![My *cat*]({LISTED}/cat.png)")
    page = show()
    image = page.get_by_role("link", name="My cat").get_by_role("img", name="My cat")
    expect(image).to_have_attribute("src", f"{LISTED}/cat.png")
    expect(image).to_have_attribute("loading", "lazy")
    expect(page.get_by_role("link", name="My cat")).to_have_attribute("href", f"{LISTED}/cat.png")
    image.evaluate("image => image.decode()")
    (request,) = pictures.requests
    headers = request.all_headers()
    assert "referer" not in headers
    assert "origin" not in headers


def test_a_host_that_images_are_redirected_to_does_not_learn_the_page(
    show: Show, say: Say, website: Website, pictures: Pictures
) -> None:
    say(f"![My cat]({LISTED}/cat.png)")
    found: list[str | None] = []

    def icon() -> flask.Response:
        found.append(flask.request.headers.get("Referer"))
        return flask.Response(picture(9, 9), content_type="image/png")

    website.app.add_url_rule("/elsewhere", "elsewhere", icon)
    target = f"{website.origin.replace('127.0.0.1', 'localhost')}/elsewhere"
    redirect = {"Location": target, "Referrer-Policy": "unsafe-url"}
    pictures.answer = {"status": 302, "headers": redirect}
    page = show()
    page.get_by_role("img", name="My cat").evaluate("image => image.decode()")
    assert found == [None]


def test_images_of_other_origins_stay_links(show: Show, say: Say, pictures: Pictures) -> None:
    for url in FOREIGN:
        say(f"![picture]({url})")
    page = show()
    expect(page.get_by_role("link", name="picture")).to_have_count(len(FOREIGN))
    assert page.locator("#flatthread img").count() == 0
    assert pictures.requests == []


@pytest.mark.parametrize("url", ["HTTPS://IMG.Example/a.png", "https://img.example:443/a.png"])
def test_other_spellings_of_a_listed_origin_are_shown(show: Show, say: Say, url: str) -> None:
    say(f"![picture]({url})")
    page = show()
    expect(page.get_by_role("img", name="picture")).to_be_visible()
    assert page.locator("#flatthread img").evaluate("image => image.src") == f"{LISTED}/a.png"


@pytest.mark.parametrize("viewport", [PHONE, {"width": 1000, "height": 900}])
@pytest.mark.parametrize("size", [(1600, 3000), (4000, 200), (16, 16)])
def test_nothing_moves_when_an_image_arrives(
    show: Show,
    say: Say,
    pictures: Pictures,
    viewport: dict[str, int],
    size: tuple[int, int],
) -> None:
    say(f"![a]({LISTED}/a.png) | ![b]({LISTED}/b.png)\n\n| t |\n|---|\n| ![c]({LISTED}/c.png) |")
    say("below")
    pictures.is_slow = True
    pictures.answer["body"] = picture(*size)
    page = show(viewport=viewport)
    images = page.locator("#flatthread img")
    expect(images).to_have_count(3)
    boxes = images.evaluate_all("all => all.map(each => each.getBoundingClientRect().toJSON())")
    page.evaluate("document.fonts.ready")
    page.evaluate("window.shift = 0")
    with page.expect_response("**/a.png"):
        pictures.release()
    images.first.evaluate("image => image.decode()")
    after = images.evaluate_all("all => all.map(each => each.getBoundingClientRect().toJSON())")
    assert after == boxes
    assert page.evaluate("window.shift") == 0
    first = boxes[0]
    assert abs(first["width"] / first["height"] - 1.5) < 0.01
    assert 200 <= first["width"] <= min(480, viewport["width"])
    assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]


def test_images_far_below_are_not_requested(show: Show, say: Say, pictures: Pictures) -> None:
    for number in range(30):
        say(f"comment {number}\n\n" + "\n\n".join("text" * 30 for _ in range(8)))
    say(f"![picture]({LISTED}/far.png)")
    page = show()
    expect(page.locator("#flatthread img")).to_have_count(1)
    page.wait_for_load_state("networkidle")
    assert pictures.requests == []
    with page.expect_request("**/far.png"):
        page.locator("#flatthread img").scroll_into_view_if_needed()


def test_the_draft_preview_shows_images_too(show: Show, say: Say) -> None:
    say("one")
    page = show()
    form = widget_form.opened(page)
    form.get_by_role("textbox", name="Comment").fill(f"![My cat]({LISTED}/cat.png)")
    form.get_by_role("button", name="Preview").click()
    expect(form.get_by_role("region").get_by_role("img", name="My cat")).to_be_visible()


def test_a_policy_with_the_origin_shows_the_image(show: Show, say: Say, server: str) -> None:
    say(f"![picture]({LISTED}/a.png)")
    page = show(policy(server, LISTED))
    page.get_by_role("img", name="picture").evaluate("image => image.decode()")
    assert page.evaluate("window.violations") == []


def test_without_the_origin_in_the_policy_the_link_stays(
    show: Show, say: Say, server: str, pictures: Pictures
) -> None:
    say(f"![A long description of the picture]({LISTED}/a.png)")
    page = show(policy(server, "'none'"))
    # The policy forbids `wait_for_function`, which evaluates a string.
    page.evaluate(VIOLATED)
    link = page.get_by_role("link", name="A long description of the picture")
    expect(link).to_be_visible()
    expect(link).to_have_attribute("href", f"{LISTED}/a.png")
    box = link.get_by_role("img").bounding_box()
    assert box is not None
    assert abs(box["width"] / box["height"] - 1.5) < 0.01
    link.focus()
    expect(link).to_be_focused()
    assert pictures.requests == []


def test_a_redirect_to_another_origin_is_stopped_by_the_policy(
    say: Say, server: str, open_tab: OpenTab
) -> None:
    say(f"![picture]({LISTED}/a.png)")
    tab = open_tab("about:blank")
    tab.expected += ["violates the following", "img-src:", "ERR_"]
    page = tab.page
    target = f"{server.replace('127.0.0.1', 'localhost')}/widget/icon.svg"
    page.route(
        f"{LISTED}/**", lambda route: route.fulfill(status=302, headers={"Location": target})
    )
    page.goto(f"{server}/embed/demo?thread=demo")
    page.evaluate(VIOLATED)
    assert page.evaluate("document.images[0].naturalWidth") == 0


@pytest.mark.parametrize("options", [{}, {"java_script_enabled": False}])
def test_the_page_without_javascript_shows_them(
    server: str, open_tab: OpenTab, say: Say, pictures: Pictures, options: dict[str, bool]
) -> None:
    say(f"![My cat]({LISTED}/cat.png)\n\n![fox](https://other.example/fox.png)")
    tab = open_tab("about:blank", viewport=PHONE, **options)
    pictures.serve(tab)
    page = tab.page
    page.goto(f"{server}/embed/demo?thread=demo")
    image = page.get_by_role("link", name="My cat").get_by_role("img", name="My cat")
    expect(image).to_be_visible()
    box = image.bounding_box()
    assert box is not None
    assert abs(box["width"] / box["height"] - 1.5) < 0.01
    expect(page.locator("img")).to_have_count(1)
    assert [request.url for request in pictures.requests] == [f"{LISTED}/cat.png"]
    assert "referer" not in pictures.requests[0].all_headers()


def test_a_picture_of_svg_runs_no_script_and_loads_nothing(
    show: Show, say: Say, pictures: Pictures
) -> None:
    say(f"![drawing]({LISTED}/a.png)")
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"><script>alert(2)</script>'
        '<image href="https://evil.test/track.png"/><rect width="9" height="9"/></svg>'
    )
    pictures.answer = {"body": svg, "content_type": "image/svg+xml"}
    page = show()
    image = page.get_by_role("img", name="drawing")
    image.evaluate("image => image.decode()")
    assert [request.url for request in pictures.requests] == [f"{LISTED}/a.png"]
