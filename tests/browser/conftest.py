"""Run a real Chromium, serve the application, and serve a website that embeds its widget.

Every tab is monitored. A test fails if one of its tabs raises an uncaught error, logs an error or a
warning, violates a policy or opens a dialog (as an attacker's script would).
"""

import contextlib
import dataclasses
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import flask
import playwright.sync_api as playwright
import pytest
from werkzeug import serving

from comments import config
from comments.accounts import accounts
from comments.domain import records
from comments.domain.records import Verb
from comments.limits.site_request import SiteRequest
from comments.moderation import decisions
from comments.posting import admission, new_comment
from comments.sites import site_settings
from comments.store import connection
from comments.upkeep import scheduler, wiring
from comments.web.service import service_pages
from tests.browser.moderator_page import ROOT, Hold, widget
from tests.support import optional_tools
from tests.support.histories import counter_oracle
from tests.support.people import account_holders, moderators
from tests.support.people.account_holders import moderator

WHOLE_BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# Chromium without its windows, toolbars and profiles, in a package of its own in Debian. It needs a
# third of the processor time for each tab.
HEADLESS_SHELL = "chromium-headless-shell"
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
# Maximum wait for a condition, in milliseconds. Only a failing test waits the full time.
PATIENCE = 60_000
WATCH = """
    window.violations = [];
    addEventListener("securitypolicyviolation", (event) =>
        window.violations.push(`${event.effectiveDirective}: ${event.blockedURI}`));
"""

playwright.expect.set_options(timeout=PATIENCE)


def browser_path(*names: str) -> str | None:
    """Return the path of the first of these programs that is installed."""
    return next(filter(None, map(shutil.which, names)), None)


def whole_browser_path() -> str | None:
    """Return the path of a browser for tests of cookie policies and of history, or of the shell."""
    return browser_path(*WHOLE_BROWSERS, HEADLESS_SHELL)


@pytest.fixture(scope="session")
def chromium() -> Iterator[playwright.Browser]:
    path = browser_path(HEADLESS_SHELL, *WHOLE_BROWSERS)
    optional_tools.require(
        path, "no Chromium: install Debian's package chromium to run browser tests"
    )
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


@dataclasses.dataclass
class Tab:
    """A tab and its faults. `expected` contains fragments of the messages that the test permits."""

    page: playwright.Page
    faults: list[str] = dataclasses.field(default_factory=list)
    expected: list[str] = dataclasses.field(default_factory=list)

    def watch(self) -> None:
        self.page.add_init_script(WATCH)
        self.page.on("pageerror", lambda error: self.faults.append(f"uncaught: {error}"))
        self.page.on("console", self._hear)
        self.page.on("dialog", self._refuse)

    def expect_status(self, status: int) -> None:
        """Permit responses with this status. (Chromium logs every refused request as an error.)"""
        self.expected.append(f"responded with a status of {status}")

    def assert_no_faults(self) -> None:
        self.faults += self.page.evaluate("window.violations ?? []")
        expected = list(self.expected)
        if any("net::ERR_" in part for part in expected):
            expected.append("Flatthread: A call to ")  # Advice for the owner of the site
        unexpected = [fault for fault in self.faults if not any(part in fault for part in expected)]
        assert unexpected == []

    def _hear(self, message: playwright.ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.faults.append(f"console: {message.text}")

    def _refuse(self, dialog: playwright.Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()


OpenTab = Callable[..., Tab]


@pytest.fixture
def open_tab(chromium: playwright.Browser) -> Iterator[OpenTab]:
    """Open a URL in a new tab. By default, all tabs of a test share one profile."""
    with contextlib.ExitStack() as stack:
        contexts: list[playwright.BrowserContext] = []
        tabs: list[Tab] = []

        def context(**options: Any) -> playwright.BrowserContext:
            made = stack.enter_context(chromium.new_context(**options))
            made.set_default_timeout(PATIENCE)
            contexts.append(made)
            return made

        def opened(url: str, **options: Any) -> Tab:
            where = context(**options) if options or not contexts else contexts[0]
            tab = Tab(where.new_page())
            tab.watch()
            tabs.append(tab)
            tab.page.goto(url)
            return tab

        yield opened
        for tab in tabs:
            tab.assert_no_faults()


def built(stem: str) -> str:
    """Return the name, including a digest, of one of the widget's built files."""
    return next(name for name in service_pages._files() if name.startswith(f"{stem}-"))


@contextlib.contextmanager
def running(server: serving.BaseWSGIServer) -> Iterator[None]:
    """Run a server until the block ends."""
    # A shutdown waits for the next poll.
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def served(app: flask.Flask) -> Iterator[str]:
    """Serve an application on a free port; yield its origin."""
    server = serving.make_server("127.0.0.1", 0, app, threaded=True)
    with running(server):
        yield f"http://127.0.0.1:{server.server_port}"


class Website:
    """A website on its own origin. Tests publish pages by path."""

    def __init__(self) -> None:
        self.origin = ""
        self.app = flask.Flask("website", static_folder=None)
        self.app.add_url_rule("/<name>", view_func=self._page)
        # Chromium requests a favicon from every site and logs an error if it is missing.
        self.app.add_url_rule("/favicon.ico", "icon", lambda: ("", 204))
        self._pages: dict[str, tuple[str, dict[str, str]]] = {}

    def put(self, name: str, html: str, **headers: str) -> str:
        """Publish a page; return its URL."""
        named = {key.replace("_", "-"): value for key, value in headers.items()}
        self._pages[name] = (f"<!doctype html><meta charset=utf-8>{html}", named)
        return f"{self.origin}/{name}"

    def _page(self, name: str) -> flask.Response:
        if name not in self._pages:
            flask.abort(404)
        html, headers = self._pages[name]
        return flask.Response(html, headers={"Content-Type": "text/html", **headers})


@pytest.fixture
def website() -> Iterator[Website]:
    website = Website()
    with served(website.app) as website.origin:
        yield website


@pytest.fixture
def site(open_store: connection.Store, settings: config.Settings, website: Website) -> records.Site:
    """The site "demo", which owns the website's pages."""
    with open_store.context():
        return site_settings.add(
            "demo", [website.origin], scheme=settings.scheme, now=datetime.now(UTC)
        )


@pytest.fixture
def server(app: flask.Flask, site: records.Site) -> Iterator[str]:
    """Serve the application with the site "demo"; yield its origin."""
    with served(app) as origin:
        yield origin


@pytest.fixture
def deliver(
    app: flask.Flask, open_store: connection.Store, settings: config.Settings
) -> Callable[[], None]:
    """Return a function that delivers all events, as the background worker does."""

    def run() -> None:
        with open_store.context():
            made = scheduler.Scheduler(handlers=wiring.handlers(settings))
            while events := counter_oracle.events():
                made.deliver(events)

    return run


Say = Callable[..., str]


@pytest.fixture
def say(open_store: connection.Store, settings: config.Settings, site: records.Site) -> Say:
    """Return a function that posts a comment without a browser or limits and returns its id."""
    unlimited = dataclasses.replace(settings, proof_of_work=0, form_seconds=0)

    def said(body: str, *, name: str = "Ada", parent: str | None = None) -> str:
        draft = admission.Submission("demo", parent, records.Author(name), body)
        with open_store.context():
            return new_comment.post(
                draft, SiteRequest(site, unlimited, datetime.now(UTC))
            ).comment.id

    return said


@pytest.fixture
def bob(open_store: connection.Store) -> accounts.Account:
    with open_store.context():
        return account_holders.account("bob", moderator())


@pytest.fixture
def hold(open_store: connection.Store, say: Say) -> Hold:
    """Return a function that posts a comment and holds it."""

    def held(body: str, *, name: str = "Eve", parent: str | None = None) -> str:
        made = say(body, name=name, parent=parent)
        with open_store.context():
            decisions.decide(
                "demo", made, Verb.HOLD, ROOT, now=account_holders.here(), reason="looks odd"
            )
        return made

    return held


@pytest.fixture
def page_url(server: str, website: Website) -> str:
    """A page of the site, on its own origin."""
    return website.put("post", widget(server))


@pytest.fixture
def session(bob: accounts.Account, website: Website, open_store: connection.Store) -> str:
    """Return a tab's stored data of a session that began earlier."""
    with open_store.context():
        account = accounts.get(bob.id)
        assert account is not None
        made = moderators.begun(account, origin=website.origin)
    kept = {
        "token": made.token,
        "expires": made.session.expires.isoformat(),
        "name": made.session.account.name,
    }
    return json.dumps(kept)


@pytest.fixture
def moderating(session: str, page_url: str, open_tab: OpenTab) -> Callable[..., Tab]:
    """Return a function that opens the page in a tab where Bob moderates."""

    def opened(kept: str = session, **options: object) -> Tab:
        tab = open_tab("about:blank", **options)
        tab.page.add_init_script(
            "if (!sessionStorage.seeded) { sessionStorage.seeded = 1;"
            f"sessionStorage['flatthread:moderator:demo'] = {json.dumps(kept)}; }}"
        )
        tab.page.goto(page_url)
        return tab

    return opened
