"""Readers, even without third-party cookies, and moderators log in through a real provider."""

import dataclasses
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime

import flask
import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect
from werkzeug import serving

from comments import app as apps
from comments import config
from comments.accounts import accounts
from comments.accounts.oidc import providers
from comments.events import message_sender
from comments.sites import site_settings
from comments.store import connection
from tests.browser import conftest, moderator_page, route_holding, test_moderating, widget_form
from tests.browser.conftest import ARGUMENTS, PATIENCE, Tab, Website, whole_browser_path
from tests.browser.test_conversation import choices, comment, sign_out, signed_in
from tests.support.html import accessibility
from tests.support.people import account_holders, provider_process
from tests.support.people.account_holders import OWNER, PASSWORD, SECRET

pytestmark = pytest.mark.browser

# Chromium that blocks third-party cookies and storage, as Incognito mode and Safari do.
NO_THIRD_PARTIES = "--test-third-party-cookie-phaseout"


@dataclasses.dataclass
class Stage:
    """Three sites (a service, a provider, a website) in a browser without third-party cookies."""

    server: str
    issuer: str
    website: Website
    browser: playwright.Browser
    tabs: list[Tab] = dataclasses.field(default_factory=list)
    contexts: list[playwright.BrowserContext] = dataclasses.field(default_factory=list)

    @property
    def port(self) -> str:
        """The service's port, which its cookies' names contain."""
        return self.server.rpartition(":")[2]

    def open(self, url: str, *, fresh: bool = False) -> Tab:
        """Open a tab; with `fresh`, in another person's browser."""
        if fresh or not self.contexts:
            context = self.browser.new_context()
            context.set_default_timeout(PATIENCE)
            # The provider's own pages request fonts and an icon, which are not available.
            nothing = {"status": 200, "content_type": "text/css", "body": ""}
            context.route(re.compile("^https://"), lambda route: route.fulfill(**nothing))
            context.route(f"{self.issuer}/favicon.ico", lambda route: route.fulfill(**nothing))
            self.contexts.append(context)
        tab = Tab(self.contexts[-1].new_page())
        tab.watch()
        self.tabs.append(tab)
        tab.page.goto(url)
        return tab

    def page(self, name: str = "page", *, before: str = "", **headers: str) -> str:
        """Publish a page of the website with the widget."""
        return self.website.put(
            name,
            f"{before}<script type=module src='{self.server}/widget/flatthread.js' "
            "data-site=demo></script><div id=flatthread data-thread=demo></div>",
            **headers,
        )


@pytest.fixture(scope="module")
def browser(chromium: playwright.Browser) -> Iterator[playwright.Browser]:
    made = chromium.browser_type.launch(
        executable_path=whole_browser_path(), args=[*ARGUMENTS, NO_THIRD_PARTIES]
    )
    yield made
    made.close()


@pytest.fixture(scope="module")
def server() -> Iterator[serving.BaseWSGIServer]:
    """A server with a known address; each test passes it an application that knows the address."""
    made = serving.make_server("127.0.0.1", 0, flask.Flask("nothing"), threaded=True)
    with conftest.running(made):
        yield made


@pytest.fixture(scope="module")
def issuer(server: serving.BaseWSGIServer) -> Iterator[str]:
    with provider_process.answering(f"{_origin(server)}/sign-in/return") as issuer:
        yield issuer


def _origin(server: serving.BaseWSGIServer) -> str:
    return f"http://localhost:{server.server_port}"


@pytest.fixture
def stage(
    open_store: connection.Store,
    server: serving.BaseWSGIServer,
    issuer: str,
    browser: playwright.Browser,
    website: Website,
) -> Iterator[Stage]:
    settings = config.Settings(secret=SECRET, public_url=_origin(server))
    server.app = apps.create_app(settings, open_store)
    client = provider_process.reaching(issuer)
    message_sender.OUTBOUND.put(open_store, client)
    with open_store.context():
        now = datetime.now(UTC)
        site_settings.add("demo", [website.origin], scheme=settings.scheme, now=now)
        provider_process.register(issuer, at_desk=True)
    made = Stage(_origin(server), issuer, website, browser)
    yield made
    for tab in made.tabs:
        tab.assert_no_faults()
    for context in made.contexts:
        context.close()


def at_provider(page: playwright.Page, who: str, issuer: str) -> None:
    """Sign in at the provider, and consent."""
    page.wait_for_url(f"{issuer}/interaction/**")
    page.locator("input[name=login]").fill(who)
    page.locator("input[name=password]").fill("any")
    page.locator("button[type=submit]").click()
    page.get_by_role("button", name="Continue").click()


def write(page: playwright.Page, body: str = "Typed before", name: str = "") -> None:
    form = page.get_by_role("form", name="Write a comment")
    form.get_by_role("textbox", name="Comment").fill(body)
    if name:
        form.get_by_role("textbox", name="Name").fill(name)


def open_window(page: playwright.Page) -> playwright.Page:
    with page.expect_popup() as opened:
        page.get_by_role("button", name="Continue with Acme").click()
    return opened.value


def test_a_reader_signs_in_on_another_site_posts_returns_and_signs_out(stage: Stage) -> None:
    addresses: list[str] = []
    page = stage.open(stage.page()).page
    page.context.on("request", lambda request: addresses.append(request.url))
    write(page)
    window = open_window(page)
    expect(window.get_by_text(stage.website.origin)).to_be_visible()
    assert accessibility.complaints(window) == []
    closed = []
    window.on("close", lambda _: closed.append(True))
    window.get_by_role("button", name="Continue with Acme").click()
    at_provider(window, "ann", stage.issuer)
    # The name comes from the provider's ID token, so the reader does not type one.
    signed_in(page, "Ann")
    expect(page.get_by_role("textbox", name="Comment")).to_have_value("Typed before")
    page.get_by_role("button", name="Post comment").click()
    expect(comment(page, "Typed before")).to_be_visible()
    assert closed == [True]
    # B11: the page stores the token for its own site, and the token is in no URL.
    kept = json.loads(page.evaluate("localStorage['flatthread:member:demo']"))
    assert kept["token"].startswith("a.")
    assert not any(kept["token"] in each for each in addresses)
    assert page.evaluate("document.cookie") == ""
    names = {each["name"] for each in page.context.cookies(stage.server)}
    assert names == {f"__Host-flatthread-journey-{stage.port}"}

    page.reload()
    signed_in(page, "Ann")
    assert "Edit" in choices(comment(page, "Typed before"))
    sign_out(page)
    expect(widget_form.opened(page).get_by_role("textbox", name="Name")).to_be_visible()
    assert '"a.' not in page.evaluate("JSON.stringify(localStorage)")


def test_a_reader_signs_in_from_the_top_of_the_comments(
    stage: Stage, open_store: connection.Store
) -> None:
    page = stage.open(stage.page()).page
    page.get_by_role("button", name="Sign in", exact=True).click()
    window = open_window(page)
    window.get_by_role("button", name="Continue with Acme").click()
    at_provider(window, "ann", stage.issuer)
    signed_in(page, "Ann")
    expect(page.get_by_role("button", name="Sign in", exact=True)).to_have_count(0)
    with open_store.context():
        providers.withdraw("acme", ("demo",), at_desk=False)
    page = stage.open(stage.page("another"), fresh=True).page
    expect(page.locator(".ft-header")).to_be_visible()
    expect(page.get_by_role("button", name="Sign in", exact=True)).to_have_count(0)


def test_our_cookies_are_unavailable_in_another_sites_frame(stage: Stage) -> None:
    """This proves that the test browser blocks third-party cookies, as the other tests assume."""
    framed = stage.website.put("inner", "<p>inner", Set_Cookie="k=v; SameSite=None; Secure")
    inner = framed.replace("127.0.0.1", "localhost")
    tab = stage.open(inner)
    assert [each["name"] for each in tab.page.context.cookies()] == ["k"]
    seen = stage.open(stage.website.put("outer", f"<iframe src='{inner}'></iframe>")).page
    expect(seen.frame_locator("iframe").get_by_text("inner")).to_be_visible()
    assert seen.frames[1].evaluate("document.cookie") == ""
    assert tab.page.evaluate("document.cookie") == "k=v"


def test_the_code_is_typed_if_the_window_loses_its_opener(stage: Stage) -> None:
    # Such a page has no connection to the windows that it opens.
    page = stage.open(stage.page(Cross_Origin_Opener_Policy="same-origin")).page
    write(page, name="Bea")
    window = open_window(page)
    window.get_by_role("button", name="Continue with Acme").click()
    at_provider(window, "bob", stage.issuer)
    code = window.locator(".ft-key").inner_text()
    window.wait_for_url(f"{stage.server}/sign-in/return")  # Without its query
    assert accessibility.complaints(window) == []
    panel = page.get_by_role("group", name="Sign in")
    panel.get_by_label("Code").fill("aaaa aaaa")
    stage.tabs[0].expect_status(401)
    panel.get_by_role("button", name="Sign in").click()
    expect(panel.get_by_text("This code is wrong.")).to_be_visible()
    panel.get_by_label("Code").fill(code)
    panel.get_by_role("button", name="Sign in").click()
    signed_in(page, "Bea")


def test_the_reader_opens_the_window_by_a_link_if_pop_ups_are_blocked(stage: Stage) -> None:
    page = stage.open(stage.page(before="<script>window.open = () => null</script>")).page
    write(page, name="Bea")
    page.get_by_role("button", name="Continue with Acme").click()
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Open sign-in window").click()
    window = opened.value
    window.get_by_role("button", name="Continue with Acme").click()
    at_provider(window, "cat", stage.issuer)
    panel = page.get_by_role("group", name="Sign in")
    panel.get_by_label("Code").fill(window.locator(".ft-key").inner_text())
    page.keyboard.press("Enter")
    signed_in(page, "Bea")


def go_on(window: playwright.Page, address: str) -> None:
    """Navigate by script, because the driver's `goto` would separate the window from its opener."""
    window.evaluate("(address) => { location.href = address }", address)
    window.wait_for_url(address)


FUZZ = """
    [
      null, undefined, 0, NaN, true, "", "code", "aaaa aaaa", [], ["aaaa aaaa"], {}, {code: null},
      {code: {}}, {code: ["aaaa aaaa"]}, {code: "aaaa aaaa "}, {code: "aaaaaaaa"}, {code: 7},
      {code: "<img src=x onerror=alert(1)>"}, {flatthread: "code"}, {flatthread: "sign-out"},
      {flatthread: "code", code: "AAAA AAAA"}, {__proto__: {code: "aaaa aaaa"}},
      JSON.parse('{"__proto__": {"code": "aaaa aaaa"}}'), new Map([["code", "aaaa aaaa"]]),
      new Date(), new ArrayBuffer(8), {code: "a".repeat(1e6)}, {location: "https://evil.example"},
      JSON.stringify({flatthread: "code", code: "aaaa aaaa"}),
    ]
"""
# Messages arrive in order: when this one has arrived, so have all earlier ones.
LAST = """
    () => new Promise((done) => {
        addEventListener("message", ({ data }) => data === "last" && done());
        postMessage("last", "*");
    })
"""
FRAME = """
    async (src) => {
        const frame = document.createElement("iframe");
        frame.src = src;
        document.body.append(frame);
        await new Promise((done) => frame.addEventListener("load", done));
    }
"""
RIGHT = '{flatthread: "code", code: "aaaa aaaa"}'


def test_messages_from_other_windows_do_nothing(stage: Stage) -> None:
    """D4, on the page's side: the page accepts nothing except the code from our own window."""
    tab = stage.open(stage.page())
    page = tab.page
    write(page, name="Ann")
    window = open_window(page)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(f"{request.method} {request.url}"))
    before = page.evaluate("[location.href, document.body.innerHTML, history.length]")
    # The window and the origin are right, but the messages are not a code.
    window.evaluate(f"for (const each of {FUZZ}) opener.postMessage(each, '*')")
    # The message and the origin are right, but it comes from other windows: the page itself, and a
    # frame.
    page.evaluate(f"postMessage({RIGHT}, '*')")
    page.evaluate(FRAME, f"{stage.server}/embed/demo?thread=demo")
    page.frames[1].evaluate(f"parent.postMessage({RIGHT}, '*')")
    page.evaluate("document.querySelector('iframe').remove()")
    # The window and the message are right, but the window has navigated to the provider's origin or
    # another one.
    window.get_by_role("button", name="Continue with Acme").click()
    window.wait_for_url(f"{stage.issuer}/interaction/**")
    window.evaluate(f"opener.postMessage({RIGHT}, '*')")
    evil = stage.website.put("evil", "<p>evil").replace("127.0.0.1", "evil.localhost")
    go_on(window, evil)
    window.evaluate(f"for (const each of [{RIGHT}, ...{FUZZ}]) opener.postMessage(each, '*')")
    page.evaluate(LAST)
    assert [each for each in sent if "sign-in/provider" in each] == []
    assert page.evaluate("[location.href, document.body.innerHTML, history.length]") == before
    expect(page.get_by_role("group", name="Sign in").get_by_label("Code")).to_have_value("")
    expect(page.get_by_role("textbox", name="Name").first).to_have_value("Ann")
    # Then the code from our own window works, which proves that the page listens.
    go_on(window, f"{stage.server}/")
    with page.expect_request("**/sign-in/provider") as asked:
        window.evaluate(f"opener.postMessage({RIGHT}, '*')")
    assert asked.value.post_data_json["code"] == "aaaa aaaa"
    tab.expect_status(401)
    expect(page.get_by_text("has expired or was already used")).to_be_visible()


def test_our_window_ignores_messages_and_sends_only_to_one_origin(stage: Stage) -> None:
    """D4, on the window's side: it ignores all messages; only the site's origin gets the code."""
    keeping = "const open = window.open; window.open = (...all) => (window.mine = open(...all))"
    page = stage.open(stage.page(before=f"<script>{keeping}</script>")).page
    write(page, name="Ann")
    window = open_window(page)
    address = window.url
    window.wait_for_load_state()
    text = window.content()
    # A foreign page to which an attacker lured the reader opens the same window, and gets no code.
    evil = stage.website.put(
        "evil",
        "<p>evil<script>window.heard = [];"
        "addEventListener('message', ({data}) => heard.push(data))</script>",
    ).replace("127.0.0.1", "evil.localhost")
    other = stage.open(evil)
    with other.page.expect_popup() as opened:
        other.page.evaluate("(url) => { window.mine = window.open(url) }", address)
    stolen = opened.value
    for opener, target in ((page, window), (other.page, stolen)):
        target.wait_for_load_state()
        opener.evaluate(f"for (const each of {FUZZ}) mine.postMessage(each, '*')")
    assert (window.url, window.content()) == (address, text)
    stolen.get_by_role("button", name="Continue with Acme").click()
    at_provider(stolen, "ann", stage.issuer)
    code = stolen.locator(".ft-key")
    expect(code).to_be_visible()
    shown = stolen.content()
    other.page.evaluate(f"for (const each of {FUZZ}) mine.postMessage(each, '*')")
    assert stolen.content() == shown
    assert other.page.evaluate("heard") == []
    # A page on an unregistered origin gets no sign-in buttons.
    refused = stage.open(address.replace("127.0.0.1", "evil.localhost"), fresh=True)
    refused.expect_status(403)


def test_a_moderator_links_a_provider_signs_in_with_it_and_unlinks_it(
    stage: Stage, open_store: connection.Store
) -> None:
    with open_store.context():
        account_holders.account("ann", OWNER)
    page = stage.open(f"{stage.server}/admin/sign-in").page
    page.get_by_label("Name or e-mail address").fill("ann")
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Your sites")).to_be_visible()
    page.get_by_role("link", name="Ann").click()
    panel = page.locator("form", has=page.get_by_role("button", name="Link Acme"))
    panel.get_by_label("Current password").fill(PASSWORD)
    panel.get_by_role("button").click()
    at_provider(page, "ann", stage.issuer)
    # The browser sends the session cookie even though another site redirected it here.
    expect(page.get_by_role("button", name="Unlink Acme")).to_be_visible()
    assert accessibility.complaints(page) == []
    page.get_by_role("button", name="Sign out", exact=True).click()

    expect(page.get_by_role("heading", name="Sign in without a password")).to_be_visible()
    assert accessibility.complaints(page) == []
    page.get_by_role("button", name="Continue with Acme").click()
    expect(page.get_by_text("You own this service")).to_be_visible()
    assert page.url == f"{stage.server}/admin"
    cookies = {each["name"]: each for each in page.context.cookies(stage.server)}
    assert cookies[f"__Host-flatthread-{stage.port}"]["sameSite"] == "Strict"
    assert cookies[f"__Host-flatthread-journey-{stage.port}"]["sameSite"] == "Lax"
    assert all(each["httpOnly"] and each["secure"] for each in cookies.values())


def test_an_unlinked_provider_identity_is_refused_with_an_explanation(
    stage: Stage, open_store: connection.Store
) -> None:
    tab = stage.open(f"{stage.server}/admin/sign-in")
    tab.expect_status(403)
    tab.page.get_by_role("button", name="Continue with Acme").click()
    at_provider(tab.page, "eve", stage.issuer)
    expect(tab.page.get_by_text("Use it to accept an invitation")).to_be_visible()
    names = {each["name"] for each in tab.page.context.cookies(stage.server)}
    assert names == {f"__Host-flatthread-journey-{stage.port}"}
    with open_store.context():
        assert accounts.staff() == []


def test_an_invitation_is_accepted_by_a_provider_without_a_password(
    stage: Stage, open_store: connection.Store
) -> None:
    with open_store.context():
        token = account_holders.invite(account_holders.moderator(), now=account_holders.here())
    page = stage.open(f"{stage.server}/admin/welcome#{token}").page
    expect(page.get_by_label(re.compile("^Key")).nth(1)).to_have_value(token)
    page.get_by_role("button", name="Continue with Acme").click()
    at_provider(page, "dora", stage.issuer)
    expect(page.get_by_role("cell", name="Moderator")).to_be_visible()
    expect(page.get_by_role("link", name="Dora")).to_be_visible()
    with open_store.context():
        (made,) = accounts.staff()
        assert (made.name, made.has_password) == ("Dora", False)
        assert accounts.address_of(made, SECRET, now=account_holders.here()) == ""


@pytest.mark.usefixtures("quick_passwords")
@pytest.mark.parametrize("policy", ["unsafe-none", "same-origin"])
def test_a_moderator_moderates_without_third_party_cookies(
    stage: Stage, open_store: connection.Store, policy: str
) -> None:
    """With `same-origin`, the page also loses its window, and the moderator types the code."""
    with open_store.context():
        account_holders.account("bob", account_holders.moderator())
    page = stage.open(stage.page(Cross_Origin_Opener_Policy=policy)).page
    waiting: list[playwright.Route] = []  # The list of held comments arrives after the menu opened
    page.route("**/moderation/comments?**", lambda route: waiting.append(route))  # noqa: PLW0108 - Playwright needs a function
    write(page, "to be hidden", name="Ann")
    page.get_by_role("button", name="Post comment").click()
    with page.expect_popup() as opened:
        moderator_page.offer(page).click()
    window = opened.value
    # The window is on another site than the page, so its first request has no cookie.
    test_moderating.sign_in(window)
    window.get_by_role("button", name="Moderate here").click()
    if policy == "same-origin":
        page.get_by_role("textbox", name="Code").fill(window.locator(".ft-key").inner_text())
        page.keyboard.press("Enter")
    expect(test_moderating.bar(page)).to_contain_text("Moderating as Bob until")
    said = comment(page, "to be hidden")
    said.get_by_role("button", name="More actions").click()
    route_holding.wait_until_sent(page, waiting)
    with page.expect_response("**/moderation/comments?**"):
        waiting.pop().continue_()
    said.get_by_role("menuitem", name="Hide").click()
    expect(page.locator(".ft-said", has_text="You hid Ann's comment.")).to_be_visible()
    names = {each["name"] for each in page.context.cookies(stage.server)}
    assert names == {f"__Host-flatthread-{stage.port}"}
