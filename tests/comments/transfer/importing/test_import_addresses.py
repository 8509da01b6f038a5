"""Imported authors' addresses are stored encrypted, and erased at the end of the import's term."""

import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from comments.domain import records
from comments.domain.crypto import guest_addresses
from comments.moderation import retention
from comments.sites import site_settings
from comments.store import connection
from comments.transfer import personal_data
from comments.transfer.importing import import_journal, import_undo
from comments.upkeep import scheduler
from datastore_emulator import inprocess
from tests.support import programs
from tests.support.threads import sample_exports, sample_threads
from tests.support.threads import undone_imports as undone
from tests.support.threads.undone_imports import NOW, comment

ADDRESS = "ada.lovelace@mail.example"
TERM = import_journal.TERM
EXPORT = [
    comment("1", email=ADDRESS),
    comment("2", "1", email=ADDRESS),
    comment("3", email="not an address"),
    comment("4", email=ADDRESS, created=NOW - timedelta(days=1)),
    comment("5", email=ADDRESS, status=records.Status.RETRACTED),
]


def opened(sealed: list[str]) -> list[str]:
    return [guest_addresses.address(each, sample_exports.SECRET, now=NOW) for each in sealed]


@pytest.fixture
def found(store: connection.Store, tmp_path: Path) -> import_journal.Import:
    undone.Clock.current()
    site_settings.add("garden", sample_exports.SITE.origins, scheme=undone.SCHEME, now=NOW)
    return undone.brought(undone.saved(tmp_path / "export", EXPORT))


def test_addresses_are_stored_encrypted(found: import_journal.Import) -> None:
    sealed = undone.addresses()
    assert not any("@" in each for each in sealed)
    assert sorted(opened(sealed)) == ["", "", *[ADDRESS] * 3]


def test_an_operator_can_export_the_address_of_an_imported_author(
    found: import_journal.Import,
) -> None:
    one = next(key for key, body in undone.bodies().items() if body == "imported 1")
    author = personal_data.author_of(one)
    written = personal_data.export(author, secret=sample_exports.SECRET, now=NOW).comments
    assert [each.email for each in written] == [ADDRESS] * 3


def test_addresses_are_erased_at_the_end_of_the_term(found: import_journal.Import) -> None:
    before = undone.addresses()
    moment = NOW + TERM - timedelta(seconds=1)
    retention.expire(moment)
    assert import_undo.expire(moment) == 0
    assert undone.addresses() == before
    assert import_undo.expire(NOW + TERM) == 1
    assert set(undone.addresses()) == {""}
    assert undone.batches() == 0
    assert import_undo.expire(NOW + TERM) == 0
    undone.assert_sound()
    assert not import_journal.get("garden", found.id).can_be_undone(NOW + TERM)


def test_the_scheduler_ends_the_term(found: import_journal.Import) -> None:
    scheduler.Scheduler(now=lambda: NOW + TERM).expire()
    assert set(undone.addresses()) == {""}


def test_the_scan_erases_guests_addresses_and_leaves_imported_ones(
    found: import_journal.Import,
) -> None:
    author = records.Author("Guest", email="guest@mail.example", id="g:guest")
    site = site_settings.get("garden")
    guest = sample_threads.post(site, "hello", now=NOW, author=author)
    undone.deliver()
    assert guest.author.email in undone.addresses()
    retention.expire(NOW + TERM)
    assert sorted(opened(undone.addresses())) == ["", "", "", *[ADDRESS] * 3]


def test_an_undo_erases_addresses(found: import_journal.Import) -> None:
    posted = undone.bodies()
    one = next(key for key, body in posted.items() if body == "imported 1")
    site = site_settings.get("garden")
    sample_threads.post(site, "a reply", one, thread="garden.example/roses", now=NOW)
    undone.deliver()
    assert undone.undo(found).kept == 1
    assert set(undone.addresses()) == {""}
    assert import_undo.expire(NOW + TERM) == 0


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "store"
    path.mkdir()
    with inprocess.open_engine(path / "store.db", indexes=programs.ROOT / "index.yaml") as engine:
        store = connection.Store(inprocess.Channel(engine), project="test")
        with store.context():
            yield path


@pytest.mark.embedded
def test_no_address_is_in_plain_text_in_the_store_or_the_log(
    folder: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    site_settings.add("garden", sample_exports.SITE.origins, scheme=undone.SCHEME, now=NOW)
    undone.brought(undone.saved(tmp_path / "export", EXPORT))
    undone.settle()
    written = b"".join(each.read_bytes() for each in folder.iterdir())
    assert b"imported 1" in written
    assert ADDRESS.encode() not in written
    assert ADDRESS not in caplog.text
