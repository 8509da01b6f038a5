"""JSON lines are read one by one, also compressed, and faults are reported by line."""

import gzip
from pathlib import Path

import pytest

from comments import errors
from comments.transfer import import_source
from comments.transfer.parsing import json_lines, source_files, stray_bytes


def saved(path: Path, data: bytes) -> Path:
    file = path / "export"
    file.write_bytes(data)
    return file


@pytest.mark.parametrize("is_packed", [False, True])
def test_lines_are_numbered_and_comments_and_blank_lines_are_skipped(
    tmp_path: Path, *, is_packed: bool
) -> None:
    data = b'\xef\xbb\xbf#head\r\n\r\n{"a":"x"}\r\n{"a":"y"}'
    path = saved(tmp_path, gzip.compress(data) if is_packed else data)
    found = [(fields.number, fields.text("a")) for fields in json_lines.read(path, skip="#")]
    assert found == [(3, "x"), (4, "y")]


def test_objects_are_counted_in_another_unit(tmp_path: Path) -> None:
    path = saved(tmp_path, b'#head\n\n{"a":"x"}\n{"a":true}')
    found = list(json_lines.read(path, skip="#", unit="comment"))
    assert [fields.number for fields in found] == [1, 2]
    with pytest.raises(errors.BadImport, match="comment 2: "):
        found[1].text("a")


def test_a_stray_byte_is_corrected_and_noted(tmp_path: Path) -> None:
    (fields,) = json_lines.read(saved(tmp_path, b'{"a":"caf\xe9"}\n'))
    assert fields.text("a") == "café"
    assert fields.remarks == [import_source.Corrected(1, stray_bytes.CORRECTION)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"a":', "invalid JSON: .*may be cut off"),
        (b"[1]", "not a JSON object"),
        (b'{"a":NaN}', "NaN is not a number"),
        (b'{"a":1' + b"0" * 5000 + b"}", "invalid JSON"),
        (b"[" * 100_000, "invalid JSON"),
        ("你好".encode("gbk"), "not UTF-8"),
    ],
)
def test_a_bad_line_is_refused_by_number(tmp_path: Path, line: bytes, reason: str) -> None:
    with pytest.raises(errors.BadImport, match=reason) as caught:
        list(json_lines.read(saved(tmp_path, b'{"a":"x"}\n' + line)))
    assert caught.value.line == 2


def test_a_long_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_files, "MAX_LINE", 10)
    with pytest.raises(errors.BadImport, match=r":2: the line is longer than 10 bytes"):
        list(source_files.lines(saved(tmp_path, b"1234567890"[:9] + b"\n12345678901\n")))


@pytest.mark.parametrize("cut", [3, 12, 30])
def test_a_damaged_gzip_file_is_refused(tmp_path: Path, cut: int) -> None:
    data = gzip.compress(b'{"a":"x"}\n' * 10)
    with pytest.raises(errors.BadImport, match="damaged or incomplete"):
        list(source_files.lines(saved(tmp_path, data[:cut])))


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(errors.BadImport, match="directory"):
        list(source_files.lines(tmp_path))
