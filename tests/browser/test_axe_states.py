"""The accessibility checker finds nothing in any state of the widget, theme or direction.

To add a state, write a function that leads a page to it, with the decorator `state`.
"""

import dataclasses
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.domain import records
from comments.domain.records import Policy, Verb
from comments.moderation import decisions
from comments.moderation.policy import policy_changes
from comments.sites import site_deletion, site_settings
from comments.store import connection
from tests.browser import widget_form
from tests.browser.conftest import OpenTab, Say, Tab, Website
from tests.browser.test_conversation import choose, comment, signed_in, write
from tests.support.html import accessibility
from tests.support.people import site_tokens

pytestmark = [pytest.mark.browser, pytest.mark.settings(mail=True)]

ADA = records.Actor("cli", "Ada")
PAGE = """<html lang="en"><title>An article</title>
  <meta name="viewport" content="width=device-width">
  <style>
    :root {{ color-scheme: light dark; }}
    /* Many pages have text that is lighter than black. */
    body {{ background: Canvas; color: light-dark(#334155, CanvasText); }}
  </style>
  <script type="module" src="{server}/widget/flatthread.js" data-site="demo"></script>
  <main><h1>An article</h1><div id="flatthread" data-thread="demo" {attributes}></div></main>"""
# The reader's color scheme, the direction, and the theme that the page sets.
VARIANTS = [("light", "ltr", ""), ("dark", "rtl", "")]
# A theme that the page sets chooses the same colors, which one state with all parts shows.
CHOSEN = [("light", "rtl", "dark"), ("dark", "ltr", "light")]
CHANGE = """([direction, theme]) => {
    const host = document.querySelector("#flatthread");
    if (theme) host.dataset.theme = theme; else delete host.dataset.theme;
    document.documentElement.dir = direction;
    const thread = host.shadowRoot.querySelector(".ft-thread");
    if (thread) thread.dir = direction;
    // Transitions between the colors of two themes would be measured half-way.
    return Promise.all(host.shadowRoot.getAnimations().map((each) => each.finish()));
}"""


@dataclasses.dataclass(frozen=True)
class Scene:
    """A page with the widget, and the means to lead it to a state."""

    tab: Tab
    server: str
    website: Website
    store: connection.Store
    say: Say

    @property
    def page(self) -> playwright.Page:
        return self.tab.page

    def visit(self, attributes: str = "") -> playwright.Page:
        html = PAGE.format(server=self.server, attributes=attributes)
        self.page.goto(self.website.put("article", html))
        return self.page

    def read(self, *texts: str, **options: object) -> playwright.Page:
        """Open the page with some comments, and with options of the site."""
        if options:
            with self.store.context():
                site_settings.change("demo", options=options)
        for text in texts:
            self.say(text)
        page = self.visit()
        expect(page.locator(".ft-thread")).to_be_visible()
        return page

    def policy(self, policy: Policy) -> None:
        with self.store.context():
            policy_changes.set_policy("demo", ADA, now=datetime.now(UTC), policy=policy)

    def refuse(self, pattern: str, status: int, code: str) -> None:
        """Answer requests to the service with an error."""
        self.tab.expect_status(status)
        problem = {"title": "", "status": status, "code": code, "detail": "Refused."}

        def answer(route: playwright.Route) -> None:
            route.fulfill(
                status=status, body=json.dumps(problem), content_type="application/problem+json",
                headers={"Access-Control-Allow-Origin": "*", "Retry-After": "7"},
            )  # fmt: skip

        self.page.route(pattern, answer)


States = dict[str, Callable[[Scene], None]]
STATES: States = {}


def state(lead: Callable[[Scene], None]) -> Callable[[Scene], None]:
    STATES[lead.__name__.removeprefix("lead_to_")] = lead
    return lead


@state
def lead_to_loading(scene: Scene) -> None:
    held: list[playwright.Route] = []
    scene.page.route("**/comments?*", lambda route: held.append(route))  # noqa: PLW0108 - plain function
    page = scene.visit()
    expect(page.locator("#flatthread")).to_have_attribute("aria-busy", "true")


@state
def lead_to_empty(scene: Scene) -> None:
    expect(scene.read().get_by_text("No comments yet.")).to_be_visible()


@state
def lead_to_comments(scene: Scene) -> None:
    first = scene.say("one [link](https://x.example), `code`\n\n> quoted\n\n- item")
    scene.say("one.one", name="Bob", parent=first)
    scene.say("```\n" + "wide " * 60 + "\n```\n\n| a | b |\n|---|---|\n| " + "c" * 200 + " | d |")
    expect(scene.read().get_by_role("listitem")).to_have_count(4)


@state
def lead_to_closed(scene: Scene) -> None:
    scene.say("one")
    scene.policy(Policy.CLOSED)
    expect(scene.read().get_by_text("Comments are closed.")).to_be_visible()


@state
def lead_to_closed_before_the_first_comment(scene: Scene) -> None:
    scene.policy(Policy.CLOSED)
    page = scene.read()
    expect(page.get_by_text("Comments are closed.")).to_be_visible()
    expect(page.get_by_text("Be the first.")).to_be_hidden()


@state
def lead_to_read_only(scene: Scene) -> None:
    scene.say("one")
    scene.policy(Policy.READ_ONLY)
    expect(scene.read().get_by_text("New comments are paused.")).to_be_visible()


@state
def lead_to_members_only(scene: Scene) -> None:
    page = scene.read("one", guests=False)
    page.get_by_role("button", name="Sign in to comment").click()
    page.get_by_role("button", name="Sign in by e-mail").click()
    expect(page.get_by_role("textbox", name="E-mail")).to_be_visible()


@state
def lead_to_banned(scene: Scene) -> None:
    page = scene.read("one")
    form = widget_form.opened(page)
    widget_form.fill(form, "hello", "Eve")
    scene.refuse("**/sites/demo/comments?*", 403, "author-banned")
    form.get_by_role("button", name="Post comment").click()
    expect(page.locator(".ft-notice")).to_have_text("You can't comment on this site.")


@state
def lead_to_awaiting_approval(scene: Scene) -> None:
    scene.policy(Policy.ALL)
    page = scene.read()
    write(page, "mine", name="Grace")
    expect(page.get_by_text("Only you can see this.").last).to_be_visible()


@state
def lead_to_over_the_limit(scene: Scene) -> None:
    form = widget_form.opened(scene.read("one"))
    widget_form.fill(form, "hello", "Eve")
    scene.refuse("**/sites/demo/comments?*", 429, "rate-limited")
    form.get_by_role("button", name="Post comment").click()
    expect(form.get_by_role("alert").filter(has_text=re.compile("[a-z]"))).to_be_visible()


@state
def lead_to_offline(scene: Scene) -> None:
    scene.tab.expected.append("net::ERR_INTERNET_DISCONNECTED")
    page = scene.read("one")
    form = widget_form.opened(page)
    widget_form.fill(form, "hello", "Eve")
    page.context.set_offline(True)
    form.get_by_role("button", name="Post comment").click()
    expect(form.get_by_role("alert").filter(has_text="You are offline.")).to_be_visible()


@state
def lead_to_failure(scene: Scene) -> None:
    scene.refuse("**/comments?*", 500, "internal")
    expect(scene.visit().get_by_role("button", name="Try again")).to_be_visible()


@state
def lead_to_deleted_site(scene: Scene) -> None:
    scene.tab.expect_status(404)
    scene.tab.expected.append("Flatthread: ")  # Advice for the owner, in the console
    scene.say("one")
    with scene.store.context():
        site_deletion.delete("demo", ADA, now=datetime.now(UTC))
    page = scene.visit()
    expect(page.get_by_text("Comments are not available on this page")).to_be_visible()
    expect(page.get_by_role("alert").or_(page.get_by_role("button"))).to_have_count(0)


@state
def lead_to_failed_file(scene: Scene) -> None:
    scene.tab.expected.append("net::ERR_FAILED")
    scene.page.route("**/widget/widget-*", lambda route: route.abort())
    expect(scene.visit().get_by_role("button", name="Try again")).to_be_visible()


@state
def lead_to_signed_in(scene: Scene) -> None:
    scene.say("one")
    with scene.store.context():
        token = site_tokens.token(site_tokens.share())
    page = scene.visit(f'data-account="{token}"')
    signed_in(page, "Ann")
    expect(widget_form.opened(page).get_by_text("Commenting as Ann")).to_be_visible()


@state
def lead_to_open_form(scene: Scene) -> None:
    page = scene.read("one")
    form = widget_form.opened(page)
    expect(page.get_by_role("button", name="Sign in by e-mail")).to_be_visible()
    form.get_by_role("checkbox").first.check()


@state
def lead_to_errors(scene: Scene) -> None:
    form = widget_form.opened(scene.read("one"))
    form.get_by_role("textbox", name="Comment").fill("hello")
    form.get_by_role("textbox", name="Website").fill("https://")
    form.get_by_role("button", name="Post comment").click()
    expect(form.get_by_role("textbox", name="Name")).to_have_attribute("aria-invalid", "true")


@state
def lead_to_preview(scene: Scene) -> None:
    form = widget_form.opened(scene.read("one"))
    form.get_by_role("textbox", name="Comment").fill("# Hello\n\n```\ncode\n```")
    form.get_by_role("button", name="Preview").click()
    expect(form.get_by_role("region").get_by_role("heading")).to_be_visible()


@state
def lead_to_reply_form(scene: Scene) -> None:
    page = scene.read("one")
    page.get_by_role("button", name="Reply to Ada").click()
    expect(page.get_by_role("form", name="Reply to Ada").get_by_text("Quote")).to_be_visible()


@state
def lead_to_sort_menu(scene: Scene) -> None:
    page = scene.read("one", "two")
    page.get_by_role("button", name="Sort").click()
    expect(page.get_by_role("menu")).to_be_visible()


@state
def lead_to_comment_menu(scene: Scene) -> None:
    page = scene.read("one", "two")
    comment(page, "one").get_by_role("button", name="More actions").click()
    expect(page.get_by_role("menu")).to_be_visible()


@state
def lead_to_own_menu(scene: Scene) -> None:
    page = scene.read("one")
    write(page, "mine", name="Grace")
    comment(page, "mine").get_by_role("button", name="More actions").click()
    expect(page.get_by_role("menuitem", name="Edit")).to_be_visible()


@state
def lead_to_reader_menu(scene: Scene) -> None:
    page = scene.read("one")
    write(page, "mine", name="Grace")
    page.get_by_role("button", name="Your menu, Grace").click()
    expect(page.get_by_role("menu")).to_be_visible()


@state
def lead_to_edit_form(scene: Scene) -> None:
    page = scene.read("one")
    write(page, "mine", name="Grace")
    choose(comment(page, "mine"), "Edit")
    expect(page.get_by_role("form", name="Edit your comment")).to_be_visible()


@state
def lead_to_question(scene: Scene) -> None:
    page = scene.read("one")
    write(page, "mine", name="Grace")
    choose(comment(page, "mine"), "Delete")
    expect(page.get_by_role("button", name="Keep comment")).to_be_visible()


@state
def lead_to_erasure(scene: Scene) -> None:
    page = scene.read("one")
    write(page, "mine", name="Grace")
    page.get_by_role("button", name="Your menu, Grace").click()
    page.get_by_role("menuitem", name="Delete my comments and data").click()
    expect(page.get_by_role("button", name="Keep everything")).to_be_visible()


@state
def lead_to_report_form(scene: Scene) -> None:
    page = scene.read("buy pills")
    choose(comment(page, "buy pills"), "Report")
    page.get_by_role("button", name="Report comment").click()
    expect(page.get_by_text("Choose a reason first.")).to_be_visible()


@state
def lead_to_muted(scene: Scene) -> None:
    page = scene.read("one", "two")
    choose(comment(page, "one"), "Mute Ada")
    expect(page.get_by_text("You muted Ada.")).to_have_count(2)


@state
def lead_to_removed(scene: Scene) -> None:
    page = scene.read("one")
    write(page, "mine", name="Grace")
    mine = comment(page, "mine").get_attribute("data-id")
    scene.say("answer", parent=mine)
    page.reload()
    choose(comment(page, "mine"), "Delete")
    page.get_by_role("button", name="Delete comment").click()
    expect(page.get_by_text("This comment was removed.")).to_be_visible()


@state
def lead_to_pinned(scene: Scene) -> None:
    pinned = scene.say("pinned")
    with scene.store.context():
        decisions.decide("demo", pinned, Verb.PIN, ADA, now=datetime.now(UTC))
    expect(scene.read("one").get_by_role("article", name="Pinned comment by Ada")).to_be_visible()


@state
def lead_to_collapsed(scene: Scene) -> None:
    first = scene.say("one")
    scene.say("one.one", parent=first)
    page = scene.read("two")
    page.get_by_role("button", name="Collapse Ada's comment").click()
    expect(page.get_by_role("button", name="Expand Ada's comment")).to_be_visible()


@state
def lead_to_deep_thread(scene: Scene) -> None:
    parent = None
    for level in range(12):
        parent = scene.say(f"level {level}", parent=parent)
    scene.page.set_viewport_size({"width": 375, "height": 800})
    page = scene.read()
    page.get_by_role("button", name="Continue this thread").click()
    expect(page.get_by_role("button", name="Back to all comments")).to_be_visible()


@state
def lead_to_long_comment(scene: Scene) -> None:
    page = scene.read("\n\n".join(f"paragraph {number}" for number in range(60)))
    expect(page.get_by_role("button", name="Show more")).to_be_visible()


@state
def lead_to_new_comments(scene: Scene) -> None:
    scene.page.clock.install()
    first = scene.say("one")
    page = scene.read("two", live=10)
    scene.say("three", name="Bob")
    scene.say("one.one", name="Bob", parent=first)
    with page.expect_response("**/comments?*"):
        page.clock.fast_forward(11_000)
    expect(page.get_by_role("button", name="2 new comments")).to_be_visible()
    expect(page.get_by_role("button", name="1 new reply")).to_be_visible()


@state
def lead_to_refused_vote(scene: Scene) -> None:
    page = scene.read("one")
    scene.refuse("**/vote", 429, "rate-limited")
    page.get_by_role("button", name="Upvote Ada's comment").click()
    expect(page.get_by_role("alert").filter(has_text=re.compile("[a-z]"))).to_be_visible()


@state
def lead_to_toast(scene: Scene) -> None:
    page = scene.read("one")
    page.evaluate("delete Navigator.prototype.clipboard")
    comment(page, "one").get_by_role("button", name="Share Ada's comment").click()
    expect(page.locator(".ft-toast")).to_be_visible()


@state
def lead_to_more_pages(scene: Scene) -> None:
    page = scene.read(*(f"comment {number}" for number in range(51)))
    expect(page.get_by_role("button", name="Load more comments")).to_be_visible()


@pytest.fixture
def scene(
    server: str, website: Website, open_tab: OpenTab, open_store: connection.Store, say: Say
) -> Scene:
    return Scene(open_tab("about:blank"), server, website, open_store, say)


@pytest.mark.parametrize("name", STATES)
def test_axe_finds_nothing(scene: Scene, name: str) -> None:
    STATES[name](scene)
    found = {}
    for scheme, direction, theme in VARIANTS + (CHOSEN if name == "comments" else []):
        scene.page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        scene.page.evaluate(CHANGE, [direction, theme])
        complaints = accessibility.complaints(scene.page, also=["target-size"])
        if complaints:
            found[scheme, direction, theme] = complaints
    assert found == {}
