"""The scenes of docs/pictures.md: themes, sizes, states of the widget, and host pages.

A scene's function receives a page that shows the comments, and brings the widget into a state.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import playwright.sync_api as playwright

from benchmarks.widget import website
from benchmarks.widget.stage import Stage

DESKTOP = {"width": 820, "height": 900}
PHONE = {"width": 390, "height": 844}
_COMMENT = ".ft-body"
_TEXT = "The bell is louder than **anyone** expects.\n\nWe timed it with `stopwatch`, twice."
_API = "**/api/v1/**"

Act = Callable[[playwright.Page, Stage], None]


def _nothing(_page: playwright.Page, _stage: Stage) -> None:
    """Leave the page as it is after loading."""


@dataclasses.dataclass(frozen=True, slots=True)
class Scene:
    """A picture, cut at a height. `before` runs before the page loads; `options` are the tab's.

    `waits_for` is the selector of an element without which the scene is not ready. `top` is the
    selector of the element at which the picture begins; empty: the top of the page.
    """

    name: str
    height: int
    act: Act = _nothing
    before: Act = _nothing
    host: str = "bare"
    thread: str = ""
    path: str = ""
    waits_for: str = _COMMENT
    top: str = "#flatthread"
    viewport: dict[str, int] = dataclasses.field(default_factory=lambda: DESKTOP)
    options: dict[str, Any] = dataclasses.field(default_factory=dict)


def _write(page: playwright.Page) -> None:
    page.get_by_role("textbox", name="Comment").first.click()
    page.get_by_role("button", name="Post comment").wait_for()
    page.get_by_role("textbox", name="Comment").first.fill(_TEXT)
    if page.get_by_role("textbox", name="Name").count():
        page.get_by_role("textbox", name="Name").first.fill("Nora Lind")


def _comment(page: playwright.Page, text: str) -> playwright.Locator:
    return page.locator(".ft-comment", has=page.locator(_COMMENT, has_text=text)).first


def composer(page: playwright.Page, _stage: Stage) -> None:
    _write(page)


def preview(page: playwright.Page, _stage: Stage) -> None:
    _write(page)
    page.get_by_role("button", name="Preview").click()
    page.locator(".ft-preview strong").wait_for()


def reply(page: playwright.Page, _stage: Stage) -> None:
    _comment(page, "Ours said the same").get_by_role("button", name="Reply to").click()
    page.get_by_role("form", name="Reply to").get_by_role("textbox", name="Comment").fill(_TEXT)
    page.wait_for_timeout(400)
    page.evaluate(
        "y => scrollBy(0, y)", (_comment(page, "I walked past").bounding_box() or {})["y"]
    )


def posted(page: playwright.Page, _stage: Stage) -> None:
    _write(page)
    page.get_by_role("button", name="Post comment").click()
    page.locator(".ft-own").wait_for()


def menu(page: playwright.Page, stage: Stage) -> None:
    posted(page, stage)
    page.locator(".ft-own").get_by_role("button", name="More actions").click()
    page.get_by_role("menu").wait_for()


def offline(page: playwright.Page, _stage: Stage) -> None:
    _write(page)
    page.context.set_offline(offline=True)
    page.get_by_role("button", name="Post comment").click()
    page.wait_for_timeout(1_000)


def skeleton(page: playwright.Page, _stage: Stage) -> None:
    page.route(_API, lambda _route: None)


def away(page: playwright.Page, _stage: Stage) -> None:
    page.route(_API, lambda route: route.abort())


def close(page: playwright.Page, _stage: Stage) -> None:
    """Let the server say that the thread is closed."""

    def answer(route: playwright.Route) -> None:
        answer = route.fetch()
        content = answer.json()
        content["thread"] = {"state": "closed"}
        route.fulfill(response=answer, json=content)

    page.route("**/comments?*", answer)


def news(page: playwright.Page, stage: Stage) -> None:
    """Show what others wrote since the page was loaded."""
    stage.say("I have a photo of the bell, from 1962.", name="Ada Brandt", thread="live")
    stage.say("So have I!", name="Jo", thread="live")
    page.locator(".ft-show-new").wait_for(timeout=40_000)


SCENES = (
    Scene("desktop", 900),
    Scene("phone", 844, viewport=PHONE),
    Scene("dark", 700, host="dark"),
    Scene("forced-colors", 700, options={"forced_colors": "active"}),
    Scene("right-to-left", 700, host="right-to-left"),
    Scene("composer", 420, composer),
    Scene("preview", 420, preview),
    Scene("reply", 640, reply),
    Scene("posted", 560, posted, thread="posted"),
    Scene("menu", 560, menu, thread="menu"),
    Scene("news", 480, news, thread="live"),
    Scene("skeleton", 420, before=skeleton, waits_for="#flatthread[aria-busy]"),
    Scene("empty", 420, thread="empty", waits_for=".ft-header"),
    Scene("closed", 420, before=close),
    Scene("offline", 420, offline),
    Scene("server-away", 300, before=away, waits_for="[role=alert]"),
    *(Scene(f"host-{host}", 900, host=host, top="") for host in website.HOSTS),
    Scene("demo", 900, path="/?site=demo&thread=english", top=""),
    Scene("embed", 900, path="/embed/demo?thread=english", top=""),
)
