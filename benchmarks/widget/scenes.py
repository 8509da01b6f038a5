"""The scenes that `pictures` takes: themes, sizes, states of the widget, and host pages.

A scene's function receives a page that shows the comments, and brings the widget into a state.
Refusals are answered by this module in the server's form, because their causes (bans, rates,
outages) would take long to bring about; tests/browser drives the real ones.
"""

import dataclasses
import json
import re
from collections.abc import Callable
from typing import Any

import playwright.sync_api as playwright

from benchmarks.widget import host_pages
from benchmarks.widget.stage import Stage

DESKTOP = {"width": 820, "height": 900}
PHONE = {"width": 390, "height": 844}
_COMMENT = ".ft-body"
_TEXT = "The bell is louder than **anyone** expects.\n\nWe timed it with `stopwatch`, twice."
_API = "**/api/v1/**"
_POSTS = re.compile(r"/comments(\?|$)")

Act = Callable[[playwright.Page, Stage], None]


def _nothing(_page: playwright.Page, _stage: Stage) -> None:
    """Leave the page as it is after loading."""


@dataclasses.dataclass(frozen=True, slots=True)
class Scene:
    """A picture. `before` runs before the page loads; `options` are those of the tab.

    `waits_for` is the selector of an element without which the scene is not ready. `top` is the
    selector of the element at which the picture begins; empty: the top of the page.
    """

    name: str
    act: Act = _nothing
    before: Act = _nothing
    host: str = "bare"
    thread: str = ""
    attributes: str = ""
    path: str = ""
    waits_for: str = _COMMENT
    top: str = "#flatthread"
    viewport: dict[str, int] = dataclasses.field(default_factory=lambda: DESKTOP)
    options: dict[str, Any] = dataclasses.field(default_factory=dict)


def _write(page: playwright.Page, name: str = "Nora Lind") -> None:
    page.get_by_role("textbox", name="Comment").first.click()
    page.get_by_role("button", name="Post comment").wait_for()
    page.get_by_role("textbox", name="Comment").first.fill(_TEXT)
    if page.get_by_role("textbox", name="Name").count():
        page.get_by_role("textbox", name="Name").first.fill(name)


def _post(page: playwright.Page) -> None:
    _write(page)
    page.get_by_role("button", name="Post comment").click()


def _comment(page: playwright.Page, text: str) -> playwright.Locator:
    return page.locator(".ft-comment", has=page.locator(_COMMENT, has_text=text)).first


def composer(page: playwright.Page, _stage: Stage) -> None:
    _write(page)


def preview(page: playwright.Page, _stage: Stage) -> None:
    _write(page)
    page.get_by_role("button", name="Preview").click()
    page.locator(".ft-preview strong").wait_for()


def empty_name(page: playwright.Page, _stage: Stage) -> None:
    page.get_by_role("textbox", name="Comment").first.click()
    page.get_by_role("button", name="Post comment").click()
    page.locator("[aria-invalid]").first.wait_for()


def reply(page: playwright.Page, _stage: Stage) -> None:
    _comment(page, "Ours said the same").get_by_role("button", name="Reply to").click()
    page.get_by_role("form", name="Reply to").get_by_role("textbox", name="Comment").fill(_TEXT)
    page.wait_for_timeout(400)
    page.evaluate(
        "y => scrollBy(0, y)", (_comment(page, "I walked past").bounding_box() or {})["y"]
    )


def posted(page: playwright.Page, _stage: Stage) -> None:
    _post(page)
    page.locator(".ft-own").wait_for()


def menu(page: playwright.Page, stage: Stage) -> None:
    posted(page, stage)
    page.locator(".ft-own").get_by_role("button", name="More actions").click()
    page.get_by_role("menu").wait_for()


def sort_menu(page: playwright.Page, _stage: Stage) -> None:
    page.get_by_role("button", name="Sort").click()
    page.get_by_role("menu").wait_for()


def report(page: playwright.Page, _stage: Stage) -> None:
    line = _comment(page, "Three minutes? My phone")
    line.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Report").click()
    page.locator(".ft-report").wait_for()
    line.scroll_into_view_if_needed()
    page.evaluate("scrollBy(0, 300)")


def collapsed(page: playwright.Page, _stage: Stage) -> None:
    page.get_by_role("button", name="Collapse Tom Okafor's comment").first.click()
    page.get_by_role("button", name="Collapse Priya Raman's comment").click()


def pending(page: playwright.Page, _stage: Stage) -> None:
    """Post a comment that a moderator has to approve."""

    def hold(route: playwright.Route) -> None:
        if route.request.method != "POST":
            route.fallback()
            return
        answer = route.fetch()
        content = answer.json()
        content["comment"]["status"] = "pending"
        route.fulfill(response=answer, json=content)

    page.route(_POSTS, hold)
    _post(page)
    page.locator(".ft-pending").wait_for()


def _refuse(status: int, code: str, detail: str, **params: object) -> Act:
    """Return an act that posts a comment, which the server refuses."""

    def act(page: playwright.Page, _stage: Stage) -> None:
        def answer(route: playwright.Route) -> None:
            if route.request.method != "POST":
                route.fallback()
                return
            content = {"status": status, "code": code, "detail": detail, "params": params}
            route.fulfill(
                status=status,
                headers={"Access-Control-Allow-Origin": "*"},
                content_type="application/problem+json",
                body=json.dumps(content),
            )

        page.route(_POSTS, answer)
        _post(page)
        page.wait_for_timeout(800)

    return act


def offline(page: playwright.Page, _stage: Stage) -> None:
    _write(page)
    page.context.set_offline(offline=True)
    page.get_by_role("button", name="Post comment").click()
    page.wait_for_timeout(1_000)


def skeleton(page: playwright.Page, _stage: Stage) -> None:
    page.route(_API, lambda _route: None)


def away(page: playwright.Page, _stage: Stage) -> None:
    page.route(_API, lambda route: route.abort())


def _thread_state(state: str) -> Act:
    """Return an act before the page loads: the server says that the thread has this state."""

    def before(page: playwright.Page, _stage: Stage) -> None:
        def answer(route: playwright.Route) -> None:
            answer = route.fetch()
            content = answer.json()
            content["thread"] = {"state": state}
            route.fulfill(response=answer, json=content)

        page.route("**/comments?*", answer)

    return before


def news(page: playwright.Page, stage: Stage) -> None:
    """Show what others wrote since the page was loaded."""
    stage.say("I have a photo of the bell, from 1962.", name="Ada Brandt", thread="live")
    stage.say("So have I!", name="Jo", thread="live")
    page.locator(".ft-show-new").wait_for(timeout=40_000)


_WAITS = ".ft-header"
_FAILED = "[role=alert]"
_DARK = {"color_scheme": "dark"}
_FORCED = {"forced_colors": "active"}

SCENES = (
    Scene("desktop"),
    Scene("phone", viewport=PHONE),
    Scene("dark", host="dark"),
    Scene("forced-colors", options=_FORCED),
    Scene("right-to-left", host="right-to-left"),
    Scene("right-to-left-phone", host="right-to-left", viewport=PHONE),
    Scene("theme-dark", attributes='data-theme="dark"'),
    Scene("composer", composer),
    Scene("composer-phone", composer, viewport=PHONE),
    Scene("composer-dark", composer, host="dark"),
    Scene("composer-forced-colors", composer, options=_FORCED),
    Scene("preview", preview),
    Scene("invalid", empty_name),
    Scene("reply", reply),
    Scene("posted", posted, thread="posted"),
    Scene("menu", menu, thread="menu"),
    Scene("sort", sort_menu),
    Scene("sort-dark", sort_menu, host="dark"),
    Scene("report", report),
    Scene("collapsed", collapsed),
    Scene("skeleton", before=skeleton, waits_for="#flatthread[aria-busy]"),
    Scene("empty", thread="empty", waits_for=_WAITS),
    Scene("closed", before=_thread_state("closed")),
    Scene("read-only", before=_thread_state("read-only")),
    Scene("banned", _refuse(403, "author-banned", "You can't comment on this site.")),
    Scene("pending", pending, thread="pending"),
    Scene("limit", _refuse(429, "too-many-posts", "You're posting too fast.", seconds=40)),
    Scene("offline", offline),
    Scene("server-away", before=away, waits_for=_FAILED),
    Scene("misconfigured", attributes='data-site="nobody"', waits_for=_FAILED),
    Scene("news", news, thread="live"),
    *(Scene(f"host-{host}", host=host, top="") for host in host_pages.HOSTS),
    *(Scene(f"host-{host}-phone", host=host, top="", viewport=PHONE) for host in host_pages.HOSTS),
    Scene("demo", path="/?site=demo&thread=english", top=""),
    Scene("embed", path="/embed/demo?thread=english", top=""),
    Scene("embed-dark", path="/embed/demo?thread=english", top="", options=_DARK),
)
