"""The trial of a new owner: everything that an owner does, in a browser and without a shell."""

import datetime as dt
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import flask
import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments import app as apps
from comments import config
from comments.domain import records
from comments.events import message_sender
from comments.limits.site_request import SiteRequest
from comments.posting import admission, new_comment
from comments.sites import site_settings
from comments.store import connection
from comments.upkeep import worker_threads
from tests.browser.conftest import OpenTab, Website, served
from tests.browser.test_admin_console import has_keys, sign_in
from tests.support import loopback_servers
from tests.support.html import accessibility
from tests.support.outside import mail_server
from tests.support.people.account_holders import PASSWORD
from tests.support.threads import sample_exports

pytestmark = [
    pytest.mark.browser,
    pytest.mark.usefixtures("quick_passwords"),
    pytest.mark.settings(data_dir=Path("data")),
]

PHONE = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}


@pytest.fixture
def service(
    app: flask.Flask,
    open_store: connection.Store,
    settings: config.Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[str]:
    """A service that has just started, without an owner, and works on uploads."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    now = dt.datetime.now(dt.UTC)
    uploads = worker_threads.UploadThread(
        open_store, settings.secret, lambda: dt.datetime.now(dt.UTC)
    )
    uploads.start()
    with served(app) as origin:
        with open_store.context():
            site_settings.prepare_demo([], scheme=settings.scheme, now=now)
        yield origin
    assert uploads.stop(60.0)


@pytest.fixture
def export(tmp_path: Path, website: Website) -> Path:
    """An export of two pages of the website. In 2013, the second had most comments."""
    lines = [
        sample_exports.THREAD.replace("roses", "post"),
        sample_exports.THREAD.replace("roses", "busiest").replace('id="1"', 'id="2"'),
    ]
    dates = ["2012"] * 6 + ["2013"] * 2
    lines += [
        sample_exports.post(f"1{n}", name="Ada", created=f"{year}-03-01T00:00:0{n}Z")
        for n, year in enumerate(dates)
    ]
    lines += [
        sample_exports.post(f"2{n}", name="Eve", thread="2", created=f"2013-05-06T07:00:0{n}Z")
        for n in range(4)
    ]
    path = sample_exports.saved(tmp_path / "disqus.xml", *lines)
    host = website.origin.partition("//")[2]
    path.write_text(path.read_text("utf-8").replace("garden.example", host), "utf-8")
    return path


@pytest.fixture
def box() -> Iterator[mail_server.Box]:
    with mail_server.serving() as box:
        yield box


@pytest.fixture
def hook(open_store: connection.Store) -> Iterator[loopback_servers.Receiver]:
    """A receiver of webhooks that the service may reach, unlike other local addresses."""
    with loopback_servers.receiver() as hook:
        with open_store.context():
            message_sender.OUTBOUND.put(open_store, loopback_servers.client(hook.port))
        yield hook


@pytest.fixture
def write(open_store: connection.Store, settings: config.Settings) -> Callable[[], None]:
    """Return a function that posts ten comments of readers."""

    def written() -> None:
        with open_store.context():
            site = site_settings.get("blog")
            for number in range(10):
                draft = admission.Submission("post", None, records.Author("Bob"), f"No. {number}")
                new_comment.post(draft, SiteRequest(site, settings, dt.datetime.now(dt.UTC)))

    return written


def _become_owner(page: playwright.Page, app: flask.Flask, service: str) -> None:
    page.goto(service)
    expect(page.get_by_text("This service has no owner yet")).to_be_visible()
    offered = apps.offer_ownership(app, service)
    assert offered
    page.goto(offered.link)
    page.get_by_label("Display name").fill("Ann")
    page.get_by_label("Sign-in name").fill("ann")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()


def _add_site(page: playwright.Page, website: Website, open_tab: OpenTab) -> None:
    """Add a website, put the lines on a page, and see the check turn green."""
    page.get_by_label("Address of the website").fill(website.origin)
    page.get_by_role("button", name="Continue").click()
    page.get_by_label("Short name").fill("blog")
    page.get_by_role("button", name="Add website").click()
    page.get_by_role("button", name="Copy").click()
    lines = page.evaluate("navigator.clipboard.readText()")
    reader = open_tab(website.put("post", f"<title>My post</title>{lines}")).page
    expect(reader.get_by_text("No comments yet.")).to_be_visible()
    expect(page.locator(".ft-state")).to_have_attribute("data-state", "seen")
    staff = page.get_by_role("link", name="#moderate")
    expect(staff).to_have_attribute("href", f"{website.origin}/#moderate")


def _import(page: playwright.Page, export: Path) -> None:
    page.get_by_role("link", name="Import comments").click()
    page.get_by_label("File to import").set_input_files(export)
    page.get_by_role("button", name="Upload and check").click()
    page.get_by_role("button", name="Import 12 comments").click()
    expect(page.get_by_role("heading", name="disqus.xml: 12 comments added.")).to_be_visible()
    page.get_by_role("link", name="Home").first.click()
    expect(page.get_by_role("rowheader", name="blog")).to_be_visible()
    expect(page.get_by_role("link", name="Continue the setup")).to_have_count(0)


def _invite(page: playwright.Page, open_tab: OpenTab) -> None:
    page.get_by_role("link", name="Team").click()
    page.get_by_label("Role").select_option("Moderator")
    page.get_by_label("Site", exact=True).select_option("blog")
    page.get_by_label("Your current password").fill(PASSWORD)
    page.get_by_role("button", name="Create invitation link").click()
    page.get_by_role("button", name="Copy").click()
    link = page.evaluate("navigator.clipboard.readText()")
    guest = open_tab(link, viewport={"width": 1280, "height": 800}).page
    guest.get_by_label("Display name").fill("Mod")
    guest.get_by_label("Sign-in name").fill("mod")
    guest.get_by_label("Password").fill(PASSWORD)
    guest.get_by_role("button", name="Create account").click()
    expect(guest.get_by_role("row", name="blog")).to_contain_text("Moderator")


def _connect_mail(page: playwright.Page, box: mail_server.Box) -> None:
    """Connect a mail server after a typing error, and see a test message arrive."""
    page.get_by_role("link", name="Mail", exact=True).click()
    page.get_by_label("Server", exact=True).fill("localhost")
    page.get_by_label("Encryption").select_option("None (usually port 25)")
    page.get_by_label("Port").fill(f"{box.port}")
    page.get_by_label("Sender").fill("comments@blog.example")
    page.get_by_label("Your current password").fill("not this one")
    page.get_by_role("button", name="Connect and save").click()
    password = page.get_by_label("Your current password")
    expect(password).to_have_attribute("aria-invalid", "true")
    assert accessibility.complaints(page) == []
    password.fill(PASSWORD)
    page.get_by_role("button", name="Connect and save").click()
    expect(page.get_by_text("The mail server accepted the service.")).to_be_visible()
    page.get_by_label("Send it to").fill("ann@blog.example")
    page.get_by_role("button", name="Send test message").click()
    expect(page.get_by_role("status")).to_contain_text("accepted the message to ann@blog.example")
    assert accessibility.complaints(page) == []
    assert box.recipients == ["ann@blog.example"]


def _connect_webhook(page: playwright.Page, service: str, hook: loopback_servers.Receiver) -> None:
    page.goto(f"{service}/admin/sites/blog/connections")
    page.get_by_label("Address of your server").fill(hook.url)
    page.get_by_role("button", name="Add webhook").click()
    page.get_by_role("button", name="Send test").click()
    expect(page.get_by_role("status").filter(has_text="test")).to_be_visible()
    assert len(hook.heard) == 1


def _hold_everything(page: playwright.Page, service: str) -> None:
    page.goto(f"{service}/admin/sites/blog/settings")
    page.get_by_label("Default moderation").select_option("Hold everything")
    page.get_by_role("button", name="Save moderation").click()
    expect(page.get_by_text("Saved.").filter(visible=True)).to_be_visible()


def _clear_by_keyboard(page: playwright.Page, service: str) -> None:
    page.goto(f"{service}/admin/sites/blog/queue")
    has_keys(page)
    for key in "j" + "a" * 10:
        page.keyboard.press(key)
    expect(page.get_by_role("status")).to_have_text(re.compile("0 comments left on this page"))
    expect(page.get_by_role("link", name="Queue").locator("[data-pending]")).to_be_hidden()


def _clear_by_touch(page: playwright.Page, service: str) -> None:
    page.goto(f"{service}/admin/sites/blog/queue")
    for left in reversed(range(10)):
        page.locator(".ft-case").get_by_role("button", name="Approve").first.tap()
        queue = page.get_by_role("link", name="Queue")
        expect(queue).to_have_text(f"Queue {left}")  # A hidden 0 at the end


def _export(page: playwright.Page) -> None:
    page.get_by_role("link", name="Data", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download").click()
    assert download.value.suggested_filename.startswith("blog-")


def _find_busiest_page(page: playwright.Page) -> None:
    """Find the page that had most comments in 2013: in all years, the other page has more."""
    page.get_by_role("link", name="Statistics", exact=True).click()
    page.get_by_label("From", exact=True).fill("2013-01-01")
    page.get_by_label("to", exact=True).fill("2013-12-31")
    page.get_by_role("button", name="Show").click()
    pages = page.get_by_role("region", name="Busiest pages").locator("tbody tr")
    expect(pages).to_have_text([re.compile("busiest *4$"), re.compile("post *2$")])


def _erase_person(page: playwright.Page) -> None:
    page.get_by_role("link", name="People", exact=True).click()
    page.get_by_role("link", name="Eve").click()
    page.get_by_role("link", name="Data about this person").click()
    page.locator("#erase-current").fill(PASSWORD)
    page.get_by_role("button", name="Erase permanently").click()
    expect(page.get_by_role("status")).to_have_text(
        "Erased the person's data: 4 comments and votes."
    )


def _delete_and_restore(page: playwright.Page, service: str) -> None:
    page.goto(f"{service}/admin/sites/blog/settings")
    page.get_by_role("link", name="Delete the site with all its comments").click()
    page.get_by_label("To delete the site").fill("blog")
    page.get_by_label("Current password").fill(PASSWORD)
    page.get_by_role("button", name="Delete this site").click()
    expect(page.get_by_text("The site was deleted.")).to_be_visible()
    expect(page.get_by_role("heading", name="Your sites")).to_be_visible()
    page.get_by_role("button", name="Take back").click()
    expect(page.get_by_text("The site is back.")).to_be_visible()


def test_a_new_owner_needs_no_shell(
    app: flask.Flask,
    service: str,
    *,
    website: Website,
    open_tab: OpenTab,
    export: Path,
    box: mail_server.Box,
    hook: loopback_servers.Receiver,
    write: Callable[[], None],
    deliver: Callable[[], None],
) -> None:
    tab = open_tab("about:blank", permissions=["clipboard-read", "clipboard-write"])
    tab.expect_status(403)
    page = tab.page
    _become_owner(page, app, service)
    _add_site(page, website, open_tab)
    _import(page, export)
    _invite(page, open_tab)
    _connect_mail(page, box)
    _connect_webhook(page, service, hook)
    _hold_everything(page, service)
    write()
    _clear_by_keyboard(page, service)
    write()
    phone = open_tab(f"{service}/admin/sign-in", **PHONE).page
    sign_in(phone, service, "ann")
    _clear_by_touch(phone, service)
    deliver()
    _find_busiest_page(page)
    _export(page)
    _erase_person(page)
    _delete_and_restore(page, service)
