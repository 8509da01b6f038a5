"""Owners upload a file, read its report, and import it; nobody else can."""

import json
import re
from datetime import UTC, datetime

import flask
import pytest
from werkzeug.test import TestResponse

from comments import config
from comments.domain import records
from comments.domain.moderation import roles
from comments.domain.records import Status, Verb
from comments.events import audit_log
from comments.moderation import decisions
from comments.sites import site_settings
from comments.transfer.importing import import_journal, import_undo
from comments.transfer.uploads import upload_steps, upload_store
from comments.transfer.uploads.upload_store import UploadState
from comments.upkeep import scheduler
from tests.support.html import html_validator
from tests.support.people import account_holders
from tests.support.people.account_holders import SECRET
from tests.support.people.console_browser import DESK, OWN, Desk
from tests.support.threads import raw_changes, sample_exports, sample_threads
from tests.support.threads.sample_exports import NOW, SCHEME, threads_of

SIZES = [3, 1]


@pytest.fixture
def file(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("made") / "export.xml"
    return sample_exports.saved(path, *threads_of(SIZES)).read_bytes()


GARDEN = "/admin/sites/garden"


def send_part(
    owner: Desk, upload: str, number: int, data: bytes, *, desk: str = DESK, **headers: str
) -> TestResponse:
    sent = {**OWN, "Content-Type": "application/octet-stream", "X-Form-Token": owner.token}
    return owner.client.post(
        f"{desk}/imports/part?upload={upload}&number={number}",
        data=data,
        headers={**sent, **headers},
    )


def send(owner: Desk, data: bytes, name: str = "old <blog>.xml", *, desk: str = DESK) -> str:
    """Upload a file as the page's script does; return the upload's id."""
    size = str(len(data))
    begun = json.loads(owner.settle("/imports/upload", desk=desk, status=200, name=name, size=size))
    for number in range(-(-len(data) // begun["part"])):
        piece = data[number * begun["part"] : (number + 1) * begun["part"]]
        sent = send_part(owner, begun["upload"], number, piece, desk=desk)
        assert sent.json == {"received": number}
    owner.settle("/imports/finish", desk=desk, status=200, upload=begun["upload"])
    return str(begun["upload"])


def work() -> None:
    upload_steps.go_on(SECRET, lambda: datetime.now(UTC))


def status(owner: Desk) -> dict[str, object]:
    found: dict[str, object] = json.loads(owner.page("/imports/status"))
    return found


def test_only_owners_of_the_service_see_its_backups_and_may_erase_people(
    owner: Desk, app: flask.Flask
) -> None:
    account_holders.account("ada", roles.Grant(roles.Role.OWNER, "demo"))
    ours, theirs = owner.page("/imports"), Desk(app, "ada").page("/imports")
    for words in ("set BACKUP_DIR", "/admin/people/data"):
        assert words in ours
        assert words not in theirs
    assert "/settings/delete" in theirs
    assert html_validator.complaints([ours, theirs]) == [[], []]


@pytest.mark.settings(max_body=1024)
def test_an_owner_imports_a_file_in_parts(
    owner: Desk, site: records.Site, settings: config.Settings, file: bytes
) -> None:
    assert len(file) > 1024
    pages = [owner.page("/imports")]
    assert status(owner) == {"state": "", "seen": 0, "total": 0, "left": ""}
    upload = send(owner, file)
    pages.append(owner.page("/imports"))
    assert "Checking <bdi>old &lt;blog&gt;.xml</bdi>" in pages[-1]
    assert status(owner)["state"] == "checking"
    work()
    pages.append(owner.page("/imports"))
    assert "Format: Disqus" in pages[-1]
    assert "old &lt;blog&gt;.xml: 4 comments in 2 threads." in pages[-1]
    assert "Import 4 comments" in pages[-1]
    owner.settle("/imports", act="import", upload=upload)
    pages.append(owner.page("/imports"))
    assert "Importing <bdi>" in pages[-1]
    assert status(owner) == {"state": "importing", "seen": 0, "total": 4, "left": ""}
    work()
    pages.append(owner.page("/imports"))
    assert "4 comments added." in pages[-1]
    assert "Verified: the file and the website have the same comments." in pages[-1]
    assert re.search(r"old &lt;blog&gt;.xml</bdi><p class=\"ft-note\">Disqus XML, <time", pages[-1])
    assert "Imported a file" in owner.page("/log")
    owner.settle("/imports", act="discard", upload=upload)
    assert upload_store.get("demo") is None
    assert html_validator.complaints(pages) == [[]] * len(pages)


def again(owner: Desk, file: bytes) -> str:
    """Import a file once more, and return the page with the result."""
    upload = send(owner, file)
    work()
    owner.settle("/imports", act="import", upload=upload)
    work()
    return owner.page("/imports")


def test_differences_are_counted_by_whether_they_are_explained(
    owner: Desk, site: records.Site, file: bytes
) -> None:
    assert "4 comments added." in again(owner, file)
    first, second = sample_exports.rows()[:2]
    decisions.decide("demo", first.id, Verb.HIDE, records.Actor("cli", "Ada"), now=NOW)
    page = again(owner, file)
    assert "0 comments added." in page
    assert "4 comments existed already." in page
    assert "Verified: 1 difference from the file" in page
    assert "On the command line, <code>flatthread verify</code> shows it." in page
    raw_changes.comment(second.id, html="<p>damaged</p>")
    assert "1 difference from the file has no known reason." in again(owner, file)


def test_a_refused_file_is_shown_with_its_place(
    owner: Desk, site: records.Site, file: bytes
) -> None:
    send(owner, file.replace(b"2015-01-01T00:01", b"2015-13-01T00:01"))
    work()
    page = owner.page("/imports")
    assert "was not imported" in page
    assert re.search(r"old &lt;blog&gt;\.xml:\d+: not a valid date", page)
    assert "Upload and check" in page  # The next file can follow at once


def test_checking_again_uses_the_new_mapping(owner: Desk, site: records.Site, file: bytes) -> None:
    upload = send(owner, file)
    work()
    owner.settle("/imports", act="check", upload=upload, mapping=" a.example=b.example  /x=/y ")
    found = upload_store.get("demo")
    assert found is not None
    assert (found.state, found.mapping) == (
        UploadState.CHECKING, ("a.example=b.example", "/x=/y"),
    )  # fmt: skip


def refused(owner: Desk, act: str, upload: str) -> None:
    """Send a decision about an upload that has another state, and check that it has no effect."""
    before = upload_store.get("demo")
    data = {"form": owner.token, "act": act, "upload": upload}
    response = owner.client.post(f"{DESK}/imports", data=data, headers=OWN)
    assert response.status_code == 303
    assert response.headers["Location"].endswith("/imports#changed")
    assert upload_store.get("demo") == before


@pytest.mark.parametrize("act", ["import", "check"])
def test_only_a_checked_file_can_be_decided_about(
    owner: Desk, site: records.Site, file: bytes, act: str
) -> None:
    upload = send(owner, file)
    refused(owner, act, upload)
    work()
    refused(owner, act, "none")
    owner.settle("/imports", act=act, upload=upload)
    refused(owner, act, upload)
    assert 'id="changed"' in owner.page("/imports")


def test_a_file_cannot_be_replaced_while_it_is_imported(
    owner: Desk, site: records.Site, file: bytes
) -> None:
    upload = send(owner, file)
    work()
    owner.settle("/imports", act="import", upload=upload)
    said = owner.settle("/imports/upload", status=409, name="b.xml", size="10")
    assert "Wait until the import has finished." in said
    refused(owner, "discard", upload)
    work()
    owner.settle("/imports/upload", status=200, name="b.xml", size="10")


def test_parts_need_the_form_token_and_the_right_type(
    owner: Desk, site: records.Site, file: bytes
) -> None:
    begun = json.loads(owner.settle("/imports/upload", status=200, name="a", size="5"))
    for headers, expected in (
        ({"X-Form-Token": ""}, 403),
        ({"X-Form-Token": "a" * 26}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Content-Type": "text/plain"}, 415),
        ({}, 200),
    ):
        found = send_part(owner, begun["upload"], 0, b"12345", **headers)
        assert found.status_code == expected, headers
    assert send_part(owner, begun["upload"], 0, b"1234").status_code == 400
    assert send_part(owner, begun["upload"], 1, b"12345").status_code == 400
    assert send_part(owner, "another", 0, b"12345").status_code == 409
    limit = 64 * 1024
    assert send_part(owner, begun["upload"], 0, b"x" * (limit + 1)).status_code == 413


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({"name": "a", "size": "0"}, "size"),
        ({"name": "a", "size": "-1"}, "size"),
        ({"name": "a", "size": "1e9"}, "size"),
        ({"name": "a", "size": "100000001"}, "size"),
        ({"name": "a"}, "size"),
        ({"size": "5"}, "name"),
    ],
)
def test_bad_uploads_are_refused(
    owner: Desk, site: records.Site, form: dict[str, str], field: str
) -> None:
    assert field in owner.settle("/imports/upload", status=400, **form).lower()
    assert upload_store.get("demo") is None


def test_moderators_cannot_import(desk: Desk, owner: Desk, site: records.Site) -> None:
    begun = json.loads(owner.settle("/imports/upload", status=200, name="a", size="5"))
    assert send_part(desk, begun["upload"], 0, b"12345").status_code == 403
    desk.settle("/imports/upload", status=403, name="a", size="5")
    desk.settle("/imports", status=403, act="discard", upload=begun["upload"])
    assert desk.client.get(f"{DESK}/imports").status_code == 403


def test_a_wrong_mapping_is_named_and_the_file_is_kept(
    owner: Desk, site: records.Site, file: bytes
) -> None:
    upload = send(owner, file)
    work()
    for mapping, said in (("nonsense", "nonsense"), ("a=b <x>", "&lt;x&gt;")):
        page = owner.settle("/imports", status=400, act="check", upload=upload, mapping=mapping)
        assert said in page
        assert 'role="alert"' in page
    found = upload_store.get("demo")
    assert found is not None
    assert found.state is UploadState.CHECKED


def test_a_mapping_moves_the_pages(owner: Desk, site: records.Site, file: bytes) -> None:
    upload = send(owner, file)
    work()
    owner.settle("/imports", act="check", upload=upload, mapping="garden.example=demo.example")
    work()
    page = owner.page("/imports")
    assert 'value="garden.example=demo.example"' in page
    mapping = "garden.example=demo.example"
    owner.settle("/imports", act="import", upload=upload, mapping=mapping)
    work()
    threads = {row.thread for row in sample_exports.rows()}
    assert threads == {"demo.example/page1", "demo.example/page2"}
    # The same file without the mapping would store its comments in other threads.
    upload = send(owner, file)
    work()
    page = owner.page("/imports")
    assert "is already stored in thread demo.example/page1" in page
    assert ">Import 4 comments<" not in page
    assert "You used this mapping to import old &lt;blog&gt;.xml." in page
    assert 'name="mapping" value="garden.example=demo.example"' in page
    owner.settle("/imports", act="check", upload=upload, mapping="garden.example=demo.example")
    work()
    assert ">Import 4 comments<" in owner.page("/imports")


def test_the_list_says_whether_an_import_can_be_undone(owner: Desk, file: bytes) -> None:
    upload = send(owner, file)
    work()
    owner.settle("/imports", act="import", upload=upload)
    work()
    (found,) = import_journal.recent_imports("demo")
    assert "Can be undone until <time" in owner.page("/imports")
    actor = records.Actor("cli", "Ada")
    import_undo.begin("demo", found.id, audit_log.Act(actor, "undo-import"), now=found.began)
    pages = [owner.page("/imports")]
    assert "<span data-undoing>Being undone: 0 of 4 comments removed</span>" in pages[0]
    assert '<noscript><meta http-equiv="refresh"' in pages[0]
    assert "Can be undone" not in pages[0]
    upload = send(owner, file)
    work()
    pages.append(owner.page("/imports"))
    assert "An earlier import is being undone." in pages[1]
    assert ">Import 4 comments<" not in pages[1]
    assert '<noscript><meta http-equiv="refresh"' not in pages[1]  # Reloading empties the form.
    assert import_undo.go_on("demo", found.id, now=found.began).waiting
    pages.append(owner.page("/imports"))
    assert "2 empty entries will be deleted, up to 3 minutes after the undo began." in pages[2]
    scheduler.compact_whole(scheduler.threads("demo"), wait=lambda _: None)
    assert import_undo.go_on("demo", found.id, now=found.began).found.undone
    page = owner.page("/imports")
    assert re.search(r"<td>Undone <time[^>]*>[^<]*</time>: 4 comments removed.</td>", page)
    assert "data-undoing" not in page
    assert html_validator.complaints([*pages, page]) == [[]] * 4
    log = owner.page("/log")
    assert "Undid an import" in log
    assert f"Import {found.id}" in log


def test_an_owner_undoes_an_import_after_reading_what_it_removes(
    owner: Desk, site: records.Site, file: bytes
) -> None:
    again(owner, file)
    first = sample_exports.rows()[0]
    name = records.ThreadName("demo", first.thread)
    sample_threads.post(site, "a reply", parent=first.id, thread=first.thread)
    (found,) = import_journal.recent_imports("demo")
    assert f"/imports/undo?id={found.id}" in owner.page("/imports")
    assert "Verified" in owner.page("/imports")
    page = owner.page(f"/imports/undo?id={found.id}")
    assert "3 imported comments will be removed" in page
    assert "1 imported comment will stay as an empty placeholder" in page
    assert "1 thread that the import created will be removed" in page
    owner.settle("/imports/undo", id=found.id)
    assert "Verified" not in owner.page("/imports")
    assert [row.body for row in sample_exports.rows() if row.status is Status.APPROVED] == [
        "a reply"
    ]
    assert any(row.thread == name.id for row in sample_exports.rows())
    assert "Undid an import" in owner.page("/log")
    listed = owner.page("/imports")
    assert html_validator.complaints([page, listed]) == [[], []]


def test_an_undo_of_no_import_is_refused(owner: Desk, site: records.Site, desk: Desk) -> None:
    missing = owner.client.get(f"{DESK}/imports/undo?id=none")
    assert missing.status_code == 409
    assert "Demo has no import" in missing.text
    owner.settle("/imports/undo", id="none", status=409)
    desk.settle("/imports/undo", id="none", status=403)


def test_proposed_mappings_are_used_with_one_press(owner: Desk, file: bytes) -> None:
    """The export has pages of an old host, with the same paths as the website."""
    site_settings.add("garden", ["https://new.example"], scheme=SCHEME, now=NOW)
    data = file.replace(b"https://garden.example", b"https://old.example")
    upload = send(owner, data, desk=GARDEN)
    work()
    page = owner.client.get(f"{GARDEN}/imports").text
    assert "old.example=new.example" in page
    proposed = re.search(r'name="mapping" value="([^"]+)"', page)
    assert proposed is not None
    owner.settle("/imports", desk=GARDEN, act="check", upload=upload, mapping=proposed[1])
    work()
    owner.settle("/imports", desk=GARDEN, act="import", upload=upload, mapping=proposed[1])
    work()
    assert {row.thread for row in sample_exports.rows()} == {
        "new.example/page1", "new.example/page2",
    }  # fmt: skip


def test_a_mapping_that_was_not_checked_is_not_ignored(
    owner: Desk, site: records.Site, file: bytes
) -> None:
    upload = send(owner, file)
    work()
    mapping = "garden.example=demo.example"
    page = owner.settle("/imports", status=400, act="import", upload=upload, mapping=mapping)
    assert "The page mappings have changed since the check." in page
    assert f'value="{mapping}"' in page
    assert status(owner)["state"] == "checked"
    owner.settle("/imports", act="check", upload=upload, mapping=mapping)
    work()
    owner.settle("/imports", act="import", upload=upload, mapping=mapping)


@pytest.mark.parametrize("data", [b"\x89PNG\r\n\x1a\n" + b"\0" * 50, b"notes", b"<rss></rss>"])
def test_a_file_of_another_kind_is_refused_without_advice_for_commands(
    owner: Desk, site: records.Site, data: bytes
) -> None:
    send(owner, data)
    work()
    page = owner.page("/imports")
    assert "Flatthread does not recognize this file." in page
    assert "Name the format" not in page
