"""The widget stays safe on broken, tampered or strict pages, and behind an attacker's link.

A test fails if one of its tabs opens a dialog, violates a policy, or logs an error or a warning.
Each payload tries to open a dialog.
"""

import html
import json
import re
from urllib.parse import quote

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from tests.browser import widget_form
from tests.browser.conftest import OpenTab, Say, Website
from tests.browser.test_conversation import choose, comment

pytestmark = pytest.mark.browser

PAYLOAD = "\"'><img src=x onerror=alert(1)></script><svg onload=alert(1)>javascript:alert(1)"
# An attacker's page can set the window name of a page that it opens.
NAMED = f"window.name = {json.dumps(PAYLOAD)}"
PAGES = (
    "/?site={0}&thread={0}", "/?url={0}", "/examples/events?url={0}#{0}", "/embed/demo?page={0}",
    "/embed/demo?thread={0}", "/embed/demo?thread=demo&url={0}", "/embed/{0}",
    "/subscriptions/confirm?token={0}", "/subscriptions/unsubscribe?token={0}",
    "/decisions?token={0}", "/sign-in?next={0}#{0}", "/admin/sign-in?next={0}#{0}",
    "/admin/welcome?from={0}#{0}", "/admin/reset#{0}", "/admin/{0}", "/widget/{0}", "/feeds/{0}",
)  # fmt: skip
STRANGE = """host => Array.from(
    host.shadowRoot.querySelectorAll("img, script, svg:not(.ft-icon), iframe, [onload], [onerror]"),
    (node) => node.outerHTML)"""

LEADING = """Array.from(document.querySelectorAll("a[href], form[action]"),
    (node) => node.href ?? node.action)"""


def script(server: str, attributes: str = "") -> str:
    source = f"{server}/widget/flatthread.js"
    return f'<script type="module" src="{source}" data-site="demo" async {attributes}></script>'


def write(page: playwright.Page | playwright.Locator, body: str, name: str = "Ada") -> None:
    form = widget_form.opened(page)
    widget_form.fill(form, body, name)
    form.get_by_role("button", name="Post comment").click()
    expect(page.locator(".ft-body", has_text=body)).to_be_visible()


def change(page: playwright.Page, old: str, body: str) -> None:
    choose(comment(page, old), "Edit")
    form = page.get_by_role("form", name="Edit your comment")
    form.get_by_role("textbox", name="Comment").fill(body)
    form.get_by_role("button", name="Save changes").click()


def reply(page: playwright.Page, to: str, body: str) -> None:
    page.get_by_role("button", name=f"Reply to {to}").click()
    form = page.get_by_role("form", name=f"Reply to {to}")
    form.get_by_role("textbox", name="Comment").fill(body)
    form.get_by_role("button", name="Post reply").click()
    expect(page.locator(".ft-body", has_text=body)).to_be_visible()


@pytest.mark.parametrize("payload", [PAYLOAD, "javascript:alert(1)", "//evil.example"])
def test_no_payload_in_a_url_or_the_window_name_runs_or_redirects(
    server: str, open_tab: OpenTab, payload: str
) -> None:
    tab = open_tab("about:blank")
    tab.expected += [f"responded with a status of {status}" for status in (400, 404)]
    page = tab.page
    for path in PAGES:
        page.evaluate(NAMED)
        page.goto(server + path.format(quote(payload, safe="")))
        assert page.url.startswith(f"{server}/"), path
        # Pages with an opener policy get an empty window name from the browser.
        assert page.evaluate("window.name") in {PAYLOAD, ""}
        assert page.locator("img[src=x], svg[onload], iframe").count() == 0
        for where in page.evaluate(LEADING):
            assert where.startswith(f"{server}/"), (path, where)


@pytest.mark.parametrize(
    "name", ["site", "thread", "page", "categories", "theme", "account", "other"]
)
def test_no_option_of_the_widget_is_parsed_as_markup(
    server: str, website: Website, open_tab: OpenTab, name: str
) -> None:
    options = {"thread": "demo"} | {name: PAYLOAD}
    attributes = " ".join(f'data-{key}="{html.escape(each)}"' for key, each in options.items())
    body = f'{script(server)}<div id="flatthread" {attributes}>shown meanwhile</div>'
    tab = open_tab("about:blank")
    tab.expected += [f"responded with a status of {status}" for status in (400, 401, 404)]
    tab.page.goto(website.put("options", body))
    host = tab.page.locator("#flatthread")
    expect(host.locator("section, [role=alert]").first).to_be_visible()
    assert host.evaluate(STRANGE) == []
    if name == "site":
        # The site in the element overrides the site in the script's URL.
        expect(tab.page.get_by_role("alert")).to_contain_text("comments could not be loaded")
        return
    form = tab.page.get_by_role("form", name="Write a comment")
    form.get_by_role("textbox", name="Comment").fill("as text")
    form.get_by_role("textbox", name="Name").fill("Ada")
    form.get_by_role("button", name="Post comment").click()
    # The form shows a message when it refuses an invalid URL or category.
    told = form.get_by_role("alert").filter(has_text=re.compile("Url must be|name of a category"))
    expect(tab.page.locator(".ft-body", has_text="as text").or_(told).first).to_be_visible()
    assert told.count() == (name in {"page", "categories"})
    assert host.evaluate(STRANGE) == []


def test_the_servers_messages_are_shown_as_text(
    server: str, website: Website, open_tab: OpenTab
) -> None:
    """Put the payload into error messages and into a comment's fields except its sanitized HTML."""
    tab = open_tab("about:blank")
    tab.expect_status(400)
    problem = {"title": "x", "status": 400, "code": "x", "detail": PAYLOAD, "field": "name"}

    def refuse(route: playwright.Route) -> None:
        route.fulfill(
            status=400, body=json.dumps(problem), content_type="application/problem+json",
            headers={"Access-Control-Allow-Origin": "*"},
        )  # fmt: skip

    tab.page.route("**/preview", refuse)
    body = f'{script(server)}<div id="flatthread" data-thread="demo"></div>'
    tab.page.goto(website.put("said", body))
    form = tab.page.get_by_role("form", name="Write a comment")
    form.get_by_role("textbox", name="Comment").fill("hello")
    form.get_by_role("button", name="Preview").click()
    expect(form.get_by_role("alert").filter(has_text="onerror=alert(1)").first).to_be_visible()
    assert tab.page.locator("#flatthread").evaluate(STRANGE) == []


SPOILED = """<script>
  for (const name of ["junk", "token", "query", "cursor", "account", "thread", "page", "site",
      "credentials", "headers", "method", "mode", "around", "key", "code", "stays", "signal",
      "replies", "votes", "comments", "categories", "proof", "isFinal", "status"])
    Object.prototype[name] = "spoiled";
  for (const type of [Object, Array, String, Number, Map, Date]) {
    Object.defineProperty(type.prototype, "toJSON",
      { configurable: true, writable: true, value() { return "spoiled"; } });
  }
  Array.prototype.junk = "spoiled";
  window.leaked = [];
  Object.defineProperty(Object.prototype, "expires",
    { configurable: true, get() { return undefined; }, set(value) { window.leaked.push(value); } });
</script>"""
CLOBBERED = """<a id="fetch"></a><a id="URL"></a><a id="location"></a><a id="api"></a>
  <a id="crypto"></a><a id="customElements"></a><a id="Flatthread"></a><a id="threads"></a>
  <a id="CSSStyleSheet"></a><form id="sessionStorage"><input name="getItem"></form>
  <img name="title"><img name="cookie"><img name="domain"><form name="forms"></form>
  <form name="body"></form><object name="scripts"></object>"""
TWO = """<div id="one"></div><div id="two"></div>
  <script type="module">
    const before = new Set(Object.getOwnPropertyNames(window));
    const flatthread = await import("{server}/widget/flatthread.js");
    const hosts = [document.querySelector("#one"), document.querySelector("#two")];
    window.show = (...threads) => Promise.all(
      threads.map((thread, n) => flatthread.mount(hosts[n], {{ site: "demo", thread }})));
    window.leave = () => hosts.forEach((host) => flatthread.destroy(host));
    await show("first", "second");
    window.added = Object.getOwnPropertyNames(window)
      .filter((name) => !before.has(name) && !["show", "leave", "added"].includes(name));
  </script>"""


def test_tampered_prototypes_and_clobbered_names_change_and_learn_nothing(
    server: str, website: Website, open_tab: OpenTab
) -> None:
    body = f'{SPOILED}{CLOBBERED}{script(server)}<div id="flatthread"></div>'
    tab = open_tab("about:blank")
    asked = []
    tab.page.on("request", lambda request: asked.append((request.url, request.post_data or "")))
    page = tab.page
    page.goto(website.put("host", body))
    write(page, "as it was")
    change(page, "as it was", "mended")
    expect(page.locator(".ft-body")).to_have_text("mended")
    reply(page, "Ada", "an answer")
    page.reload()
    expect(page.locator(".ft-body")).to_have_text(["mended", "an answer"])
    choose(comment(page, "an answer"), "Delete")
    page.get_by_role("button", name="Delete comment").click()
    expect(page.locator(".ft-body")).to_have_text(["mended"])
    for url, sent in asked:
        assert "spoiled" not in url
        assert "spoiled" not in sent
    assert page.evaluate("window.leaked") == []


def test_two_threads_on_a_page_stay_separate_after_repeated_mounts(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    page = open_tab(website.put("two", TWO.format(server=server))).page
    page.wait_for_function("window.added")
    assert page.evaluate("window.added") == []
    one, two = page.locator("#one"), page.locator("#two")
    write(one, "in the first", "Ada")
    write(two, "in the second", "Bob")
    for _ in range(5):
        page.evaluate("show('second', 'first')")
        expect(one.locator(".ft-body")).to_have_text("in the second")
        expect(two.locator(".ft-body")).to_have_text("in the first")
        page.evaluate("leave()")
        expect(page.locator(".ft-thread")).to_have_count(0)
        page.evaluate("show('first', 'second')")
        expect(one.locator(".ft-body")).to_have_text("in the first")
        expect(two.locator(".ft-body")).to_have_text("in the second")
    # Both threads look for the comment named in the URL's fragment, and only one contains it.
    page.evaluate("show('first', 'first')")
    expect(page.locator(".ft-body")).to_have_text(["in the first", "in the first"])
    choose(two.get_by_role("listitem"), "Delete")
    two.get_by_role("button", name="Delete comment").click()
    expect(two.locator(".ft-body")).to_have_count(0)
    write(one, "still there", "Ada")


def strictest(server: str, website: Website) -> str:
    """Publish a page with the strictest policy that lets the widget run; return its URL."""
    policy = (
        "default-src 'none'; script-src 'nonce-abc' 'strict-dynamic'; "
        f"connect-src {server}; style-src 'none'; img-src 'none'; font-src 'none'; "
        "object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'; trusted-types flatthread"
    )
    nonced = script(server, 'nonce="abc"')
    body = f'{nonced}<div id="flatthread" data-thread="demo"></div>'
    return website.put("strictest", body, Content_Security_Policy=policy)


def test_the_strictest_policy_is_not_violated_by_writing(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    other = say("of somebody else", name="Bob")
    page = open_tab(strictest(server, website)).page
    expect(page.locator(".ft-body")).to_have_text("of somebody else")
    assert page.locator(".ft-title").evaluate("node => getComputedStyle(node).fontWeight") != "400"
    form = page.get_by_role("form", name="Write a comment")
    form.get_by_role("textbox", name="Comment").fill("**mine** [x](https://x.example)")
    form.get_by_role("textbox", name="Name").fill("Ada")
    form.get_by_role("button", name="Preview").click()
    expect(form.get_by_role("region").locator("strong")).to_have_text("mine")
    form.get_by_role("button", name="Post comment").click()
    expect(page.locator(".ft-body strong")).to_have_text("mine")
    with page.expect_response(lambda answer: answer.url.endswith(f"{other}/vote")) as voted:
        page.get_by_role("button", name="Upvote Bob's comment").click()
    assert voted.value.status == 200
    reply(page, "Bob", "an answer")
    page.reload()
    expect(page.locator(".ft-body", has_text="an answer")).to_be_visible()
    change(page, "mine x", "*edited*")
    expect(page.locator(".ft-body em")).to_have_text("edited")
    choose(comment(page, "edited"), "Delete")
    page.get_by_role("button", name="Delete comment").click()
    expect(page.locator(".ft-body em")).to_have_count(0)
    assert page.evaluate("window.violations") == []


def test_the_strictest_policy_is_not_violated_by_sorting_reporting_muting_and_erasing(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    say("of somebody else", name="Bob")
    page = open_tab(strictest(server, website)).page
    write(page, "mine")
    page.get_by_role("button", name="Sort").click()
    with page.expect_response("**/comments?*order=recent*") as sorted_:
        page.get_by_role("menuitemradio", name="Newest").click()
    assert sorted_.value.status == 200
    choose(comment(page, "of somebody else"), "Report")
    page.get_by_role("radio", name="Spam").check()
    with page.expect_response("**/report") as reported:
        page.get_by_role("button", name="Report comment").click()
    assert reported.value.status == 202
    choose(comment(page, "of somebody else"), "Mute Bob")
    expect(page.get_by_text("You muted Bob.")).to_be_visible()
    page.get_by_role("button", name="Your menu, Ada").click()
    page.get_by_role("menuitem", name="Delete my comments and data").click()
    page.get_by_role("button", name="Delete everything").click()
    expect(page.get_by_text("mine")).to_have_count(0)
    assert page.evaluate("window.violations") == []


def test_a_token_is_in_no_url_no_referrer_and_no_post_body(
    server: str, website: Website, open_tab: OpenTab, say: Say
) -> None:
    """The widget sends the token only in the Authorization header of requests to the service."""
    say("of somebody else", name="Bob")
    body = f'{script(server)}<div id="flatthread" data-thread="demo"></div>'
    tab = open_tab("about:blank")
    asked: list[playwright.Request] = []
    tab.page.on("request", lambda request: asked.append(request))  # noqa: PLW0108 - Playwright needs a function
    page = tab.page
    page.goto(website.put("watched", body))
    write(page, "mine")
    page.get_by_role("button", name="Upvote Bob's comment").click()
    page.reload()
    expect(page.locator(".ft-body", has_text="mine")).to_be_visible()
    choose(comment(page, "mine"), "Delete")
    page.get_by_role("button", name="Delete comment").click()
    expect(page.locator(".ft-body", has_text="mine")).to_have_count(0)
    kept = page.evaluate("JSON.stringify(localStorage)")
    tokens = set(re.findall(r'token\\*":\\*"([A-Za-z0-9._-]{40,})', kept))
    assert tokens
    carried = 0
    for request in asked:
        headers = request.all_headers()
        for token in tokens:
            assert token not in request.url
            assert token not in headers.get("referer", "")
            assert token not in (request.post_data or "")
            named = {name for name, value in headers.items() if token in value}
            assert named <= {"authorization"}
            carried += bool(named)
            assert not named or request.url.startswith(f"{server}/api/v1/")
    assert carried
    assert all(token not in page.url for token in tokens)
    assert page.evaluate("document.cookie") == ""
