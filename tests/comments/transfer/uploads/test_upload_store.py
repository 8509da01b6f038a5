"""Uploaded files are kept in encrypted parts until their import ends or their time is over."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comments import errors
from comments.domain import records
from comments.domain.crypto import encryption
from comments.events import audit_log
from comments.transfer.uploads import upload_store
from comments.transfer.uploads.upload_store import UploadState
from tests.support import stored_state
from tests.support.importing.uploading import Clock, confirm, current, sent
from tests.support.threads.sample_exports import SECRET

DATA = b"ada@mail.example wrote \x00\xff" * 20


def parts() -> list[str]:
    return [stored_state.name_of(each) for each in stored_state.rows("ImportPart")]


@pytest.mark.slow
@settings(max_examples=20)  # Each encrypts and stores up to 400 parts
@given(size=st.integers(1, 400), part=st.integers(1, 120))
def test_the_copy_of_a_file_has_its_bytes(
    garden: records.Site, tmp_path: Path, size: int, part: int
) -> None:
    clock = Clock()
    data = (DATA * 2)[:size]
    sent("garden", data, clock, part=part)
    assert upload_store.copy(current("garden"), tmp_path, SECRET, clock).read_bytes() == data


def test_parts_are_encrypted(garden: records.Site, clock: Clock) -> None:
    sent("garden", DATA, clock)
    stored = repr(list(stored_state.rows("ImportPart")))
    assert "mail.example" not in stored
    assert encryption.seal("x", "uploaded export", SECRET, now=clock())[:5] in stored


def test_a_part_that_is_sent_again_replaces_itself(
    garden: records.Site, clock: Clock, tmp_path: Path
) -> None:
    upload_id = sent("garden", DATA, clock)
    upload_store.receive("garden", upload_id, 1, DATA[50:100], secret=SECRET, now=clock())
    assert len(parts()) == current("garden").parts
    assert upload_store.copy(current("garden"), tmp_path, SECRET, clock).read_bytes() == DATA


def test_parts_fit_into_the_store_whatever_fits_into_a_request(
    garden: records.Site, clock: Clock, tmp_path: Path
) -> None:
    data = bytes(range(256)) * 5_000
    upload = upload_store.begin("garden", "export.xml", len(data), 1 << 20, now=clock())
    for number in range(upload.parts):
        piece = data[number * upload.part :][: upload.part]
        upload_store.receive("garden", upload.id, number, piece, secret=SECRET, now=clock())
    assert upload_store.copy(upload, tmp_path, SECRET, clock).read_bytes() == data


@pytest.mark.parametrize("name", ["../../etc/passwd", "C:\\docs\\passwd", "passwd", "a/passwd"])
def test_the_name_is_never_a_path(garden: records.Site, clock: Clock, name: str) -> None:
    sent("garden", DATA, clock, name=name)
    assert current("garden").name == "passwd"


def test_strange_names_are_made_printable(garden: records.Site, clock: Clock) -> None:
    for name, shown in (
        ("a\x1bb", "a_b"),
        ("", "file"),
        ("x/", "x"),
        ("é" * 300, "é" * 60),
        ("..", "file"),
    ):
        sent("garden", DATA, clock, name=name)
        assert current("garden").name == shown


@pytest.mark.parametrize("size", [0, -1, upload_store.MOST_BYTES + 1])
def test_empty_and_too_large_files_are_refused(
    garden: records.Site, clock: Clock, size: int
) -> None:
    with pytest.raises(errors.BadInput) as error:
        upload_store.begin("garden", "a", size, 50, now=clock())
    assert error.value.field == "size"
    assert upload_store.get("garden") is None


def test_parts_that_do_not_fit_are_refused(garden: records.Site, clock: Clock) -> None:
    upload = upload_store.begin("garden", "a", 120, 50, now=clock())
    for number, data in ((3, b"x" * 50), (-1, b"x" * 50), (0, b"x" * 49), (2, b"x" * 50)):
        with pytest.raises(errors.BadInput):
            upload_store.receive("garden", upload.id, number, data, secret=SECRET, now=clock())
    upload_store.receive("garden", upload.id, 2, b"x" * 20, secret=SECRET, now=clock())
    with pytest.raises(errors.Conflict) as error:
        upload_store.finish("garden", upload.id, now=clock())
    assert error.value.code == "upload-incomplete"
    assert current("garden").state is UploadState.RECEIVING


def test_a_new_upload_replaces_the_previous_one_and_its_parts(
    garden: records.Site, clock: Clock
) -> None:
    first = sent("garden", DATA, clock)
    second = sent("garden", DATA[:10], clock)
    assert parts() == [f"garden/{second}/000000"]
    for call in (
        lambda: upload_store.receive("garden", first, 0, DATA[:50], secret=SECRET, now=clock()),
        lambda: upload_store.finish("garden", first, now=clock()),
        lambda: upload_store.check_again("garden", first, (), now=clock()),
        lambda: confirm("garden", first, clock),
    ):
        with pytest.raises(errors.Conflict):
            call()
    upload_store.discard("garden", first)  # Has no effect on the second
    assert current("garden").id == second
    assert audit_log.log("garden") == []


def test_sites_do_not_share_uploads(garden: records.Site, clock: Clock) -> None:
    sent("garden", DATA, clock)
    other = sent("garden-2", DATA, clock)
    upload_store.discard("garden")
    assert {each.split("/")[1] for each in parts()} == {other}


def test_only_a_checked_file_can_be_confirmed(garden: records.Site, clock: Clock) -> None:
    upload_id = sent("garden", DATA, clock)
    for _ in range(2):
        with pytest.raises(errors.Conflict):
            confirm("garden", upload_id, clock)
        upload_store.finish("garden", upload_id, now=clock())


def test_one_process_at_a_time_claims_an_upload(garden: records.Site, clock: Clock) -> None:
    upload_store.finish("garden", sent("garden", DATA, clock), now=clock())
    assert upload_store.waiting_sites(clock()) == ["garden"]
    assert upload_store.claim("garden", clock()) is not None
    assert upload_store.claim("garden", clock()) is None
    assert upload_store.waiting_sites(clock()) == []
    clock.advance(seconds=upload_store.CLAIM.total_seconds())
    assert upload_store.waiting_sites(clock()) == ["garden"]
    assert upload_store.claim("garden", clock()) is not None


def test_a_file_that_ends_every_process_is_refused(garden: records.Site, clock: Clock) -> None:
    upload_store.finish("garden", sent("garden", DATA, clock), now=clock())
    for _ in range(1 + upload_store.MOST_LOST):
        assert upload_store.claim("garden", clock()) is not None  # This process dies
        clock.advance(seconds=upload_store.CLAIM.total_seconds())
    assert upload_store.claim("garden", clock()) is None
    assert (current("garden").state, current("garden").failure) == (UploadState.REFUSED, "error")
    upload_store.expire(clock())
    assert parts() == []


def test_uploads_that_nobody_continues_are_deleted(garden: records.Site, clock: Clock) -> None:
    sent("garden", DATA, clock)
    clock.advance(hours=23)
    upload_store.expire(clock())
    assert len(parts()) > 0
    clock.advance(hours=1)
    upload_store.expire(clock())
    assert parts() == []
    assert upload_store.get("garden") is None


def test_an_upload_is_readable_only_with_the_secret(
    garden: records.Site, clock: Clock, tmp_path: Path
) -> None:
    sent("garden", DATA, clock)
    with contextlib.suppress(errors.BadLink):
        upload_store.copy(current("garden"), tmp_path, "another secret of the tests", clock)
        pytest.fail("the parts were readable")
