"""One worker at a time changes an upload: the one that claimed it last."""

import gzip
import sys
import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from comments.domain import records
from comments.store import connection, reads
from comments.store.models import schema
from comments.transfer.checking import checked_import, import_batches
from comments.transfer.importing import import_process
from comments.transfer.uploads import upload_steps, upload_store
from comments.transfer.uploads.upload_store import UploadState
from tests.support import programs, stored_state
from tests.support.importing.samples import flatthread as samples
from tests.support.importing.uploading import COUNT, Clock, checked, confirm, current, sent
from tests.support.store_interceptors import Commits, InterceptorSlot
from tests.support.threads import sample_threads
from tests.support.threads.sample_exports import SECRET, rows


def test_a_process_that_ends_leaves_the_upload_to_another(
    garden: records.Site, file: bytes, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_batches, "BATCH", 4)
    upload = checked("garden", file, clock)
    confirm("garden", upload.id, clock)
    with pytest.raises(upload_steps.Stopped):
        upload_steps.do_next_step("garden", SECRET, clock=clock, is_open=lambda: not rows())
    assert 0 < len(rows()) < COUNT
    assert current("garden").claimed is None
    upload_steps.go_on(SECRET, clock)
    assert len(rows()) == COUNT
    assert current("garden").state is UploadState.DONE


def test_a_claim_lasts_as_long_as_the_work(
    garden: records.Site, file: bytes, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload_store.finish("garden", sent("garden", file, clock), now=clock())
    claims = list[bool]()

    def is_open() -> bool:
        clock.advance(seconds=20)
        claims.append(upload_store.claim("garden", clock()) is not None)
        return True

    upload_steps.do_next_step("garden", SECRET, clock=clock, is_open=is_open)
    assert current("garden").state is UploadState.CHECKED
    assert len(claims) > COUNT
    assert not any(claims)


def test_a_claim_lasts_while_a_file_without_comments_is_read(
    garden: records.Site, clock: Clock
) -> None:
    head = b'<?xml version="1.0"?><disqus xmlns="http://disqus.com">'
    data = gzip.compress(head + b" " * 2_000_000 + b"</disqus>")
    upload_store.finish("garden", sent("garden", data, clock), now=clock())
    claims = list[bool]()

    def is_open() -> bool:
        clock.advance(seconds=20)
        claims.append(upload_store.claim("garden", clock()) is not None)
        return True

    upload_steps.do_next_step("garden", SECRET, clock=clock, is_open=is_open)
    assert current("garden").state is UploadState.CHECKED
    assert len(claims) > 10
    assert not any(claims)


def test_a_claim_lasts_while_stored_comments_are_looked_up(
    garden: records.Site, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample_threads.post(garden, "x")
    monkeypatch.setattr(checked_import, "_LOOKUP", 1)
    read, claims = reads.read, list[bool]()

    def slow(keys: Sequence[schema.RowKey | reads.Path]) -> list[Any]:
        is_of_comments = not isinstance(keys[0], schema.RowKey)
        if connection.state.transaction is not None or not is_of_comments:
            return read(keys)
        clock.advance(seconds=20)
        claims.append(upload_store.claim("garden", clock()) is not None)
        return read(keys)

    monkeypatch.setattr(reads, "read", slow)
    upload = checked("garden", samples.SANE.data, clock, name="export.jsonl")
    looked_up = len(claims)
    assert looked_up == upload.comments
    confirm("garden", upload.id, clock)
    assert upload_steps.do_next_step("garden", SECRET, clock=clock)
    assert current("garden").state is UploadState.DONE
    assert len(claims) == 2 * looked_up
    assert not any(claims)


def suspended(store: connection.Store, clock: Clock, until: threading.Event) -> threading.Thread:
    """Start a worker that stops in the middle of its step, like a suspended process."""
    begun = threading.Event()

    def is_open() -> bool:
        begun.set()
        return until.wait(programs.PATIENCE)

    def run() -> None:
        with store.context():
            upload_steps.do_next_step("garden", SECRET, clock=clock, is_open=is_open)

    worker = threading.Thread(target=run)
    worker.start()
    assert begun.wait(programs.PATIENCE)
    return worker


@pytest.mark.parametrize("state", [UploadState.CHECKING, UploadState.IMPORTING])
def test_a_suspended_worker_changes_nothing_of_the_next_one(
    store: connection.Store, garden: records.Site, file: bytes, clock: Clock, state: UploadState
) -> None:
    if state is UploadState.CHECKING:
        upload_store.finish("garden", sent("garden", file, clock), now=clock())
    else:
        confirm("garden", checked("garden", file, clock).id, clock)
    resumed = threading.Event()
    first = suspended(store, clock, resumed)
    clock.advance(seconds=upload_store.CLAIM.total_seconds())
    rows_of_second = list[upload_store.Upload]()

    def is_open() -> bool:
        if not rows_of_second:
            rows_of_second.append(current("garden"))
            clock.advance(seconds=30)
            resumed.set()
            first.join(programs.PATIENCE)
            assert not first.is_alive()
            rows_of_second.append(current("garden"))
        return True

    assert upload_steps.do_next_step("garden", SECRET, clock=clock, is_open=is_open)
    before, after = rows_of_second
    assert before == after
    assert after.claimed == clock() + timedelta(seconds=30)
    done = current("garden")
    if state is UploadState.CHECKING:
        assert (done.state, done.comments) == (UploadState.CHECKED, COUNT)
    else:
        assert (done.state, done.added, len(rows())) == (UploadState.DONE, COUNT, COUNT)


def test_a_suspended_worker_goes_on_if_no_other_has_begun(
    store: connection.Store, garden: records.Site, file: bytes, clock: Clock
) -> None:
    upload_store.finish("garden", sent("garden", file, clock), now=clock())
    resumed = threading.Event()
    worker = suspended(store, clock, resumed)
    clock.advance(minutes=5)
    resumed.set()
    worker.join(programs.PATIENCE)
    assert current("garden").state is UploadState.CHECKED


def test_an_error_of_a_suspended_worker_refuses_nothing(
    store: connection.Store, garden: records.Site, file: bytes, clock: Clock
) -> None:
    upload_store.finish("garden", sent("garden", file, clock), now=clock())
    claimed = upload_store.claim("garden", clock())
    assert claimed is not None
    clock.advance(seconds=upload_store.CLAIM.total_seconds())
    assert upload_steps.do_next_step("garden", SECRET, clock=clock)
    for change in (upload_store.record, upload_store.end):
        with pytest.raises(upload_store.ClaimLost):
            change(claimed, now=clock(), state=UploadState.REFUSED)
    assert current("garden").state is UploadState.CHECKED
    assert list(stored_state.rows("ImportPart")) != []


def test_the_claim_of_a_killed_process_ends_with_it(
    garden: records.Site, file: bytes, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload_store.finish("garden", sent("garden", file, clock), now=clock())
    mark = (
        "from comments.transfer.importing import import_process; print(import_process.own_mark())"
    )
    ended = programs.run([sys.executable, "-c", mark], cwd=programs.ROOT).stdout.strip()
    with monkeypatch.context() as killed:
        killed.setattr(import_process, "own_mark", lambda: ended)
        assert upload_store.claim("garden", clock()) is not None
    assert upload_store.claim("garden", clock()) is not None
    assert upload_store.claim("garden", clock()) is None


def test_a_claim_whose_answer_was_lost_is_valid(
    garden: records.Site, file: bytes, clock: Clock, interceptor: InterceptorSlot
) -> None:
    upload_store.finish("garden", sent("garden", file, clock), now=clock())
    interceptor.use(Commits()).plan = ["after"]
    claimed = upload_store.claim("garden", clock())
    assert claimed is not None
    assert claimed == current("garden")
    assert upload_store.claim("garden", clock()) is None
    upload_store.renew(claimed, now=clock())
