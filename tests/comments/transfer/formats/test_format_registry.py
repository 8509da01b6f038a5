"""The format of a file is recognized from its first bytes."""

import gzip
from pathlib import Path

import pytest

from comments import errors
from comments.transfer.formats import format_registry
from tests.support.importing import sample_files
from tests.support.threads import sample_exports


@pytest.mark.parametrize("name", ["disqus", "wordpress"])
@pytest.mark.parametrize("is_packed", [False, True])
def test_a_format_is_recognized(tmp_path: Path, name: str, *, is_packed: bool) -> None:
    data = (sample_exports.IMPORTS / f"{name}.xml").read_bytes()
    file = tmp_path / "export"
    file.write_bytes(gzip.compress(data) if is_packed else data)
    assert format_registry.recognize(file).name == name


@pytest.mark.parametrize("name", ["comentario", "disqus"])
def test_a_format_is_recognized_in_utf_16(tmp_path: Path, name: str) -> None:
    text = sample_files.of(name).SANE.data.decode()
    file = tmp_path / "export"
    file.write_bytes(text.encode("utf-16"))
    assert format_registry.recognize(file).name == name


@pytest.mark.parametrize("data", [b"", b"<html>", b"\xff\x00"])
def test_an_unknown_format_is_refused_with_the_known_names(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "export"
    file.write_bytes(data)
    with pytest.raises(errors.BadImport, match="not recognized") as caught:
        format_registry.recognize(file)
    assert caught.value.message.endswith(": " + ", ".join(format_registry.NAMES))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"PK\x03\x04\x14", "is a ZIP archive. Unpack it, and import its files one by one"),
        (b"\x1f\x8bnot gzip", "the compressed file is damaged"),
        (
            gzip.compress(b"<rss" * 100, mtime=0)[:20],
            "the compressed file is damaged or incomplete",
        ),
    ],
)
def test_an_archive_or_a_damaged_file_is_refused(tmp_path: Path, data: bytes, reason: str) -> None:
    file = tmp_path / "export"
    file.write_bytes(data)
    with pytest.raises(errors.BadImport, match=reason):
        format_registry.recognize(file)


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.BadImport, match="directory"):
        format_registry.recognize(tmp_path)
