"""Uploaded files are checked, and imported only after a confirmation, whatever interrupts it."""

import functools
import gzip
import multiprocessing.util
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from comments.domain import records
from comments.events import audit_log
from comments.sites import site_settings
from comments.store import connection
from comments.transfer.checking import checked_import, import_batches
from comments.transfer.importing import import_journal, import_undo
from comments.transfer.moves import doubled_threads
from comments.transfer.uploads import upload_steps, upload_store, working_folder
from comments.transfer.uploads.upload_store import Failure, UploadState
from comments.upkeep import scheduler, worker_threads
from datastore_emulator import inprocess
from tests.support import datastores, dying_programs, programs, stored_state
from tests.support.importing.uploading import COUNT, Clock, checked, confirm, current, sent
from tests.support.threads import sample_exports
from tests.support.threads.sample_exports import NOW, SCHEME, SECRET, rows


def finished(site: str, data: bytes, clock: Clock) -> None:
    upload_store.finish(site, sent(site, data, clock), now=clock())


def test_a_file_is_checked_then_confirmed_then_imported(
    garden: records.Site, file: bytes, clock: Clock
) -> None:
    upload = checked("garden", file, clock)
    assert (upload.state, upload.system, upload.comments) == (UploadState.CHECKED, "disqus", COUNT)
    assert upload.report[0] == f"export.xml: {COUNT} comments in 5 threads."
    assert rows() == []
    assert not upload_steps.do_next_step(
        "garden", SECRET, clock=clock
    )  # Nothing before the confirmation
    confirm("garden", upload.id, clock)
    assert upload_steps.do_next_step("garden", SECRET, clock=clock)
    done = current("garden")
    assert (done.state, done.added, done.present) == (UploadState.DONE, COUNT, 0)
    assert len(rows()) == COUNT
    assert list(stored_state.rows("ImportPart")) == []
    (journal,) = import_journal.recent_imports("garden")
    assert (journal.file, journal.added) == ("export.xml", COUNT)
    (entry,) = audit_log.log("garden")
    assert (entry.verb, entry.actor.name, entry.after) == ("import", "Bob", "export.xml")


def test_the_same_file_again_adds_nothing(garden: records.Site, file: bytes, clock: Clock) -> None:
    for added in (COUNT, 0):
        confirm("garden", checked("garden", file, clock).id, clock)
        upload_steps.do_next_step("garden", SECRET, clock=clock)
        done = current("garden")
        assert (done.added, done.present) == (added, COUNT - added)


def undo(clock: Clock) -> None:
    """Begin the undo of the only import."""
    (found,) = import_journal.recent_imports("garden")
    act = audit_log.Act(records.Actor("cli", "Ada"), import_undo.VERB)
    import_undo.begin("garden", found.id, act, now=clock())


def test_a_file_is_kept_while_an_earlier_import_is_being_undone(
    garden: records.Site, file: bytes, clock: Clock
) -> None:
    confirm("garden", checked("garden", file, clock).id, clock)
    upload_steps.do_next_step("garden", SECRET, clock=clock)
    # The comments of this file are stored in other threads, but not for long.
    moved = file.replace(b"/page", b"/moved")
    upload = checked("garden", moved, clock)
    assert (upload.failure, "already stored" in upload.problem) == ("", True)
    undo(clock)
    upload = checked("garden", moved, clock)
    assert (upload.state, upload.failure) == (UploadState.CHECKED, Failure.UNDOING)
    assert (upload.problem, upload.comments) == ("", COUNT)
    confirm("garden", upload.id, clock)  # By an old page
    upload_steps.do_next_step("garden", SECRET, clock=clock)
    assert current("garden").state is UploadState.CHECKED
    (found,) = import_journal.recent_imports("garden")
    while import_journal.get("garden", found.id).is_being_undone:
        import_undo.go_on("garden", found.id, now=clock())
        scheduler.compact_whole(scheduler.threads("garden"), wait=lambda _: None)
    upload_store.check_again("garden", upload.id, (), now=clock())
    upload_steps.do_next_step("garden", SECRET, clock=clock)
    assert (current("garden").failure, current("garden").problem) == ("", "")
    confirm("garden", upload.id, clock)
    upload_steps.do_next_step("garden", SECRET, clock=clock)
    assert current("garden").added == COUNT


def test_an_invalid_file_is_refused_with_its_line_and_own_name(
    garden: records.Site, file: bytes, clock: Clock
) -> None:
    broken = file.replace(b"</disqus>", b"")
    upload = checked("garden", broken, clock)
    assert upload.state is UploadState.REFUSED
    assert upload.problem.startswith("export.xml:")
    assert "/" not in upload.problem.partition(" ")[0]
    assert list(stored_state.rows("ImportPart")) == []
    upload = checked("garden", b"neither XML nor JSON", clock, name="notes.txt")
    assert (upload.state, upload.failure) == (UploadState.REFUSED, Failure.FORMAT)


def test_a_changed_secret_asks_for_the_file_again(
    garden: records.Site, file: bytes, clock: Clock
) -> None:
    finished("garden", file, clock)
    upload_steps.do_next_step("garden", "another secret of the tests", clock=clock)
    assert (current("garden").state, current("garden").failure) == (
        UploadState.REFUSED, Failure.SECRET,
    )  # fmt: skip


def test_an_unexpected_error_ends_the_upload_and_is_logged(
    garden: records.Site,
    file: bytes,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    finished("garden", file, clock)
    monkeypatch.setattr(checked_import, "plan", lambda *_, **__: 1 / 0)
    upload_steps.go_on(SECRET, clock)
    assert current("garden").failure == Failure.ERROR
    assert "ZeroDivisionError" in caplog.text


def test_a_discarded_upload_ends_its_check_and_delays_no_other_site(
    garden: records.Site,
    file: bytes,
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    site_settings.add("later", garden.origins, scheme=SCHEME, now=NOW)
    finished("garden", file, clock)
    finished("later", file, clock)
    plan = checked_import.plan

    def slow(*args: Any, **given: Any) -> checked_import.CheckedImport:
        upload_store.discard("garden")
        return plan(*args, **given)

    monkeypatch.setattr(checked_import, "plan", slow)
    upload_steps.go_on(SECRET, clock)
    assert upload_store.get("garden") is None
    assert current("later").state is UploadState.CHECKED
    assert not caplog.records


def test_a_file_that_unpacks_to_too_much_is_refused(
    garden: records.Site, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upload_steps, "_MOST_UNPACKED", 200_000)
    line = b'{"id":1,"page":"/a","time":"2024-01-01T00:00:00Z","text":"hi"}\n'
    for data in (line + b"\n" * 300_000, b"[" + b" " * 300_000, b" " * 300_000):
        for start in (b"", b'<?xml version="1.0"?><disqus xmlns="http://disqus.com">'):
            upload = checked("garden", gzip.compress(start + data), clock)
            assert upload.state is UploadState.REFUSED
            is_known = upload.failure != Failure.FORMAT
            assert is_known == ("200,000 bytes when it is unpacked" in upload.problem)
    assert is_known


def test_the_thread_works_when_it_is_nudged_and_stops_when_it_is_told(
    store: connection.Store, garden: records.Site, file: bytes, clock: Clock
) -> None:
    thread = worker_threads.UploadThread(store, SECRET, clock)
    thread.start()
    try:
        finished("garden", file, clock)
        worker_threads.nudge_uploads()
        programs.wait_until(lambda: current("garden").state is UploadState.CHECKED)
    finally:
        assert thread.stop(programs.PATIENCE)


def test_doubled_pages_are_looked_for_as_soon_as_an_import_ends(
    store: connection.Store, garden: records.Site, file: bytes, clock: Clock
) -> None:
    confirm("garden", checked("garden", file, clock).id, clock)
    jobs = worker_threads.JobThread(store, scheduler.of_process(), first=2 * programs.PATIENCE)
    uploads = worker_threads.UploadThread(store, SECRET, clock)
    for thread in (jobs, uploads):
        thread.start()
    try:
        programs.wait_until(
            lambda: (search := doubled_threads.get("garden")) and not search.is_searching
        )
    finally:
        assert [thread.stop(programs.PATIENCE) for thread in (jobs, uploads)] == [True, True]


def test_copies_in_use_and_young_ones_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    young, old = (Path(tempfile.mkdtemp(prefix="flatthread-upload-")) for _ in "12")
    other = Path(tempfile.mkdtemp(prefix="other-"))
    with working_folder.create() as used:
        for each in (old, other, used):
            os.utime(each, (0, 0))
        working_folder.remove_leftovers()
        assert sorted(tmp_path.iterdir()) == sorted([young, other, used])


def _go_on(minutes: int, temporary: str = "") -> None:
    tempfile.tempdir = temporary or tempfile.tempdir
    clock = Clock()
    clock.advance(minutes=minutes)
    import_batches.BATCH = 4
    upload_steps.go_on(SECRET, clock)


@pytest.mark.slow
@pytest.mark.embedded
class TestKilledProcesses:
    """An upload whose process is killed goes on in another process."""

    @pytest.fixture
    def store_path(self, tmp_path: Path) -> Path:
        return tmp_path / "store.db"

    @pytest.fixture
    def engine(self, store_path: Path) -> Iterator[inprocess.Engine]:
        with inprocess.open_engine(store_path, indexes=dying_programs.INDEXES) as engine:
            yield engine

    @pytest.fixture(autouse=True)
    def temporary(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Give the processes a folder for temporary files.

        The socket of the fork server needs a short path, so its folder is chosen before.
        """
        multiprocessing.util.get_temp_dir()
        folder = tmp_path / "temporary"
        folder.mkdir()
        monkeypatch.setattr(tempfile, "tempdir", str(folder))

    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Restore the size of batches, which `_go_on` also changes in this process."""
        monkeypatch.setattr(import_batches, "BATCH", 4)

    # A kill after one commit has the same effect as a kill before the next.
    @pytest.mark.parametrize("call", range(1, 9))
    def test_an_upload_goes_on_after_a_kill(
        self,
        store_path: Path,
        datastore: datastores.Datastore,
        file: bytes,
        clock: Clock,
        call: int,
    ) -> None:
        with datastore.connect().context():
            site_settings.add("garden", sample_exports.SITE.origins, scheme=SCHEME, now=NOW)
            confirm("garden", checked("garden", file, clock).id, clock)
        rule = {"rpc": "Commit", "call": call, "when": "before", "kill": True}
        copies = functools.partial(Path(tempfile.gettempdir()).glob, "flatthread-upload-*")
        ended = dying_programs.run(store_path, [rule], _go_on, 0, tempfile.gettempdir())
        assert ended[0] in {-signal.SIGKILL, 0}
        with datastore.connect().context():
            for each in copies():  # A young copy may not be locked yet
                os.utime(each, (0, 0))
            _go_on(0)  # The killed process's claim ended with it
            assert len(rows()) == COUNT
            assert current("garden").state is UploadState.DONE
            assert list(stored_state.rows("ImportPart")) == []
            assert not list(copies())
