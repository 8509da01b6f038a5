"""A backup's file is read back as it was written, or refused."""

import contextlib
import gzip
import io
import json
import subprocess
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comments import errors
from comments.upkeep.backups import backup_archive

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SECRET = "a secret of the tests"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a data file and its backup."""
    folder = tmp_path_factory.mktemp("archive")
    (folder / "data").write_bytes(bytes(n * n % 251 for n in range(30_000)))
    backup_archive.pack(folder / "data", described(folder / "data"), folder / "backup")
    return folder


def described(data: Path) -> backup_archive.Manifest:
    found = backup_archive.digest(data)
    mark = backup_archive.secret_mark(SECRET)
    return backup_archive.Manifest(
        backup_archive.FORMAT, NOW, mark, found.size, found.sha256, {"Comment": 8}
    )


def test_an_archive_is_read_as_it_was_written(folder: Path, tmp_path: Path) -> None:
    manifest = backup_archive.unpack(folder / "backup", tmp_path / "data")
    assert manifest == described(folder / "data")
    assert (tmp_path / "data").read_bytes() == (folder / "data").read_bytes()


def test_the_secret_is_recognized_but_not_contained(folder: Path) -> None:
    manifest = backup_archive.unpack(folder / "backup", None)
    assert backup_archive.has_secret(manifest, SECRET)
    assert not backup_archive.has_secret(manifest, "another secret of tests")
    assert SECRET.encode() not in gzip.decompress((folder / "backup").read_bytes())


def test_tar_reads_the_archive(folder: Path, tmp_path: Path) -> None:
    subprocess.run(["tar", "-xzf", folder / "backup", "-C", tmp_path], check=True)
    assert (tmp_path / "flatthread.db").read_bytes() == (folder / "data").read_bytes()
    # This form of the manifest is stored: changing it makes old backups unreadable.
    assert json.loads((tmp_path / "manifest.json").read_text()) == {
        "format": 1,
        "created": "2026-01-02T03:04:05Z",
        "secret": "aeq6uuwvvj45ybpwijytskr3im",
        "size": 30_000,
        "sha256": "6addb63f0ea39771b1a653d72b21e3ac5314a69638200f350001c419e38eb3e7",
        "kinds": {"Comment": 8},
    }


@given(st.data())
def test_a_changed_byte_is_refused_or_has_no_effect(folder: Path, data: st.DataObject) -> None:
    content = bytearray((folder / "backup").read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    (folder / "changed").write_bytes(content)
    (folder / "unpacked").unlink(missing_ok=True)
    with contextlib.suppress(errors.BackupFailed):
        manifest = backup_archive.unpack(folder / "changed", folder / "unpacked")
        # The byte is in gzip's header, or the bits are between two of its blocks.
        assert manifest == described(folder / "data")
        assert (folder / "unpacked").read_bytes() == (folder / "data").read_bytes()


def test_every_changed_byte_of_the_data_is_refused(folder: Path) -> None:
    content = (folder / "backup").read_bytes()
    for place in range(len(content) // 3, len(content) - 16, 97):
        changed = content[:place] + bytes([content[place] ^ 255]) + content[place + 1 :]
        (folder / "changed").write_bytes(changed)
        with pytest.raises(errors.BackupFailed, match="damaged"):
            backup_archive.unpack(folder / "changed", None)


@given(st.data())
def test_a_truncated_archive_is_refused(folder: Path, data: st.DataObject) -> None:
    content = (folder / "backup").read_bytes()
    (folder / "cut").write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    with pytest.raises(errors.BackupFailed, match="cut is damaged or not a backup"):
        backup_archive.unpack(folder / "cut", None)


def test_anything_behind_an_archive_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "longer").write_bytes((folder / "backup").read_bytes() + b"more")
    with pytest.raises(errors.BackupFailed, match="damaged"):
        backup_archive.unpack(tmp_path / "longer", None)


def archive(path: Path, *members: tuple[str, bytes]) -> Path:
    """Write an archive with any content."""
    with gzip.open(path, "wb") as packed, tarfile.open(fileobj=packed, mode="w") as made:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))
    return path


def test_an_archive_with_other_content_is_refused(folder: Path, tmp_path: Path) -> None:
    data = (folder / "data").read_bytes()
    manifest = msgspec.json.encode(described(folder / "data"))
    for members, problem in (
        ([], "lacks manifest.json"),
        ([("manifest.json", manifest)], "lacks flatthread.db"),
        ([("flatthread.db", data), ("manifest.json", manifest)], "lacks manifest.json"),
        ([("manifest.json", b"{}"), ("flatthread.db", data)], "manifest.json is not valid"),
        ([("manifest.json", b"\xff"), ("flatthread.db", data)], "manifest.json is not valid"),
        ([("manifest.json", manifest), ("flatthread.db", data[:-1])], "does not match"),
        ([("manifest.json", manifest), ("flatthread.db", data), ("x", b"")], "an unknown file"),
        ([("manifest.json", manifest), ("../flatthread.db", data)], "lacks flatthread.db"),
    ):
        with pytest.raises(errors.BackupFailed, match=problem):
            backup_archive.unpack(archive(tmp_path / "made", *members), None)


def test_an_archive_of_a_newer_release_is_named_as_such(folder: Path, tmp_path: Path) -> None:
    members = ("manifest.json", b'{"format": 2}'), ("flatthread.db", b"")
    with pytest.raises(errors.BackupFailed, match=r"has format 2.*Restore it with a newer release"):
        backup_archive.unpack(archive(tmp_path / "newer", *members), None)


def test_a_plain_data_file_gets_advice(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"SQLite format 3\0" + b"x" * 100)
    with pytest.raises(errors.BackupFailed, match="python -m emulator restore"):
        backup_archive.unpack(tmp_path / "plain", None)
