"""An owner moves from another system in a browser: upload, report, import, live thread."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import playwright.sync_api as playwright
import pytest
from playwright.sync_api import expect

from comments.store import connection
from comments.transfer.importing import import_journal, import_undo
from comments.upkeep import scheduler, worker_threads
from tests.browser.conftest import OpenTab, Tab, Website
from tests.browser.test_admin_console import sign_in
from tests.support.html import accessibility
from tests.support.importing.samples import flatthread
from tests.support.people import account_holders
from tests.support.people.account_holders import OWNER, SECRET
from tests.support.threads import sample_exports
from tests.support.threads.sample_exports import threads_of

pytestmark = pytest.mark.browser

PHONE = {"width": 360, "height": 740}


@pytest.fixture
def worker(open_store: connection.Store) -> Iterator[None]:
    """Run the thread that works on uploads, as each serving process does."""
    thread = worker_threads.UploadThread(open_store, SECRET, lambda: datetime.now(UTC))
    thread.start()
    yield
    assert thread.stop(60.0)


@pytest.fixture
def data(server: str, open_tab: OpenTab, open_store: connection.Store) -> Tab:
    """The page for imports in an owner's browser."""
    with open_store.context():
        account_holders.account("bob", OWNER)
    tab = open_tab(f"{server}/admin/sign-in")
    sign_in(tab.page, server)
    tab.page.goto(f"{server}/admin/sites/demo/imports")
    return tab


def choose(page: playwright.Page, path: Path) -> None:
    page.get_by_label("File to import").set_input_files(path)
    page.get_by_role("button", name="Upload and check").click()


@pytest.fixture
def export(tmp_path: Path, website: Website) -> Path:
    """An export whose threads are pages of the website."""
    path = sample_exports.saved(tmp_path / "disqus.xml", *threads_of([3, 40]))
    host = website.origin.partition("//")[2]
    path.write_text(path.read_text("utf-8").replace("garden.example", host), "utf-8")
    return path


def test_an_owner_imports_an_export_without_a_shell(
    data: Tab, server: str, open_tab: OpenTab, website: Website, export: Path, worker: None
) -> None:
    page = data.page
    choose(page, export)
    expect(page.get_by_role("heading", name="Report about disqus.xml")).to_be_visible()
    expect(page.get_by_text("disqus.xml: 43 comments in 2 threads.")).to_be_visible()
    assert accessibility.complaints(page) == []
    page.get_by_role("button", name="Import 43 comments").click()
    expect(page.get_by_role("heading", name="disqus.xml: 43 comments added.")).to_be_visible()
    row = page.get_by_role("row").filter(has_text="disqus.xml")
    expect(row).to_contain_text(re.compile(r"Finished: all 43 comments processed. 43 added.*Undo…"))
    assert accessibility.complaints(page) == []
    embed = f'<script type="module" src="{server}/widget/flatthread.js" data-site="demo"></script>'
    article = open_tab(website.put("page1", f'{embed}<div id="flatthread"></div>')).page
    expect(article.get_by_role("heading", name="3 comments")).to_be_visible()


def test_an_owner_moves_from_another_flatthread_on_a_phone(
    data: Tab, tmp_path: Path, worker: None
) -> None:
    page = data.page
    page.set_viewport_size({"width": 360, "height": 740})
    path = tmp_path / "blog-20261128T063923Z.jsonl"
    path.write_bytes(flatthread.SANE.data)
    choose(page, path)
    expect(page.get_by_role("heading", name=f"Report about {path.name}")).to_be_visible()
    left_out = "Left out: author ids, so authors cannot edit these comments (5)"
    expect(page.get_by_text(left_out)).to_be_visible()
    page.get_by_role("button", name="Import 7 comments").click()
    expect(page.get_by_role("heading", name=f"{path.name}: 7 comments added.")).to_be_visible()
    expect(page.get_by_text("Verified: the file and the website have the same")).to_be_visible()
    table = page.get_by_role("region", name="Imports")
    assert table.evaluate("each => each.scrollWidth <= each.clientWidth")


def test_a_refused_file_says_where_and_the_next_one_can_follow(
    data: Tab, export: Path, tmp_path: Path, worker: None
) -> None:
    page = data.page
    broken = tmp_path / "broken.xml"
    broken.write_text(export.read_text("utf-8").replace("</disqus>", ""), "utf-8")
    choose(page, broken)
    expect(page.get_by_role("heading", name="broken.xml was not imported")).to_be_visible()
    expect(page.get_by_text(re.compile(r"^broken\.xml:\d+: "))).to_be_visible()
    choose(page, export)
    expect(page.get_by_role("heading", name="Report about disqus.xml")).to_be_visible()
    page.get_by_role("button", name="Discard").click()
    expect(page.get_by_role("button", name="Upload and check")).to_be_visible()


def test_the_page_follows_an_undo(
    data: Tab, export: Path, worker: None, open_store: connection.Store
) -> None:
    page = data.page
    choose(page, export)
    page.get_by_role("button", name="Import 43 comments").click()
    page.get_by_role("link", name="Undo the import of disqus.xml").click()
    page.clock.install()
    page.get_by_role("button", name="Undo import").click()
    row = page.get_by_role("row").filter(has_text="disqus.xml")
    expect(row).to_contain_text("Being undone: ")
    assert accessibility.complaints(page) == []
    with open_store.context():
        (found,) = import_journal.recent_imports("demo")
        while import_journal.get("demo", found.id).is_being_undone:
            import_undo.go_on("demo", found.id, now=datetime.now(UTC))
            scheduler.compact_whole(scheduler.threads("demo"), wait=lambda _: None)
    page.get_by_role("link", name="Data", exact=True).focus()
    page.clock.run_for(20_000)
    expect(row).to_contain_text("Being undone")  # A reload would move the focus.
    page.evaluate("document.activeElement.blur()")
    page.clock.run_for(5_000)
    expect(row).to_contain_text("Undone")


def test_an_upload_survives_requests_that_fail(data: Tab, export: Path, worker: None) -> None:
    page, failed = data.page, list[str]()
    data.expected.append("net::ERR_CONNECTION_RESET")

    def fail_twice(route: playwright.Route) -> None:
        if len(failed) < 2:
            failed.append(route.request.url)
            route.abort("connectionreset")
        else:
            route.continue_()

    page.route("**/imports/part?*", fail_twice)
    choose(page, export)
    expect(page.get_by_role("heading", name="Report about disqus.xml")).to_be_visible()
    assert len(failed) == 2


def test_a_server_that_stays_away_is_reported(data: Tab, export: Path) -> None:
    page = data.page
    data.expected.append("net::ERR_CONNECTION_RESET")
    page.clock.install()
    page.route("**/imports/part?*", lambda route: route.abort("connectionreset"))
    choose(page, export)
    problem = page.get_by_text("The server did not answer. Check your connection, then try again.")
    # Each request needs real time, during which the page's clock stands still.
    for _ in range(1_000):
        page.clock.run_for(1_000)
        if problem.first.is_visible():
            break
    expect(problem.first).to_be_visible()
    expect(page.get_by_role("button", name="Upload and check")).to_be_focused()
    page.unroute("**/imports/part?*")
    page.get_by_role("button", name="Upload and check").click()
    expect(page.get_by_role("heading", name="Checking disqus.xml…")).to_be_visible()


def test_a_second_window_shows_what_the_first_one_decided(
    data: Tab, server: str, export: Path, open_tab: OpenTab, worker: None
) -> None:
    choose(data.page, export)
    expect(data.page.get_by_role("heading", name="Report about disqus.xml")).to_be_visible()
    assert data.page.title().startswith("Report about disqus.xml")
    second = open_tab(f"{server}/admin/sites/demo/imports").page
    data.page.get_by_role("button", name="Import 43 comments").click()
    second.get_by_role("button", name="Import 43 comments").click()
    expect(second.get_by_text("Another window has changed this upload.")).to_be_visible()
    expect(second.get_by_role("heading", name="43 comments added.")).to_be_visible()
    assert len(second.get_by_role("row").filter(has_text="disqus.xml").all()) == 1


def test_an_upload_that_another_window_replaces_says_so(data: Tab, export: Path) -> None:
    page = data.page
    data.expect_status(409)
    page.route(
        "**/imports/part?*",
        lambda route: route.fulfill(status=409, json={"code": "upload-replaced"}),
    )
    choose(page, export)
    expect(
        page.get_by_text("Another window has uploaded or imported a file.").first
    ).to_be_visible()


def test_without_a_file_the_page_asks_for_one(data: Tab, tmp_path: Path) -> None:
    page = data.page
    page.get_by_role("button", name="Upload and check").click()
    assert page.get_by_label("File to import").evaluate("field => field.validity.valueMissing")


def test_the_page_fits_a_phone(
    server: str, open_tab: OpenTab, open_store: connection.Store, export: Path, worker: None
) -> None:
    with open_store.context():
        account_holders.account("bob", OWNER)
    page = open_tab(f"{server}/admin/sign-in", viewport=PHONE, color_scheme="dark").page
    sign_in(page, server)
    page.goto(f"{server}/admin/sites/demo/imports")
    choose(page, export)
    expect(page.get_by_role("heading", name="Report about disqus.xml")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    assert accessibility.complaints(page) == []
    page.get_by_role("button", name="Import 43 comments").click()
    imports = page.get_by_role("region", name="Imports")
    expect(imports.get_by_text("Finished")).to_be_visible()
    assert imports.evaluate("each => each.scrollWidth <= each.clientWidth")


def test_an_empty_file_is_not_sent(data: Tab, tmp_path: Path) -> None:
    page = data.page
    (tmp_path / "empty.xml").touch()
    choose(page, tmp_path / "empty.xml")
    expect(page.get_by_text("The file is empty.").first).to_be_visible()
