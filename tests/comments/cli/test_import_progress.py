"""Long commands print their progress: a bar on a terminal, otherwise a line every 10 seconds."""

import gzip
from pathlib import Path

import pytest

from comments.cli import import_progress
from tests.comments.conftest import Clock


def test_a_line_is_printed_every_10_seconds(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    now = lambda: clock.now  # noqa: E731 - the clock of the test
    with import_progress.showing("Importing", 100_000, "comment", now) as advance:
        for _ in range(12):
            advance(1_000)
            clock.now += 3.0
        advance(0)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "Importing: 5,000 of 100,000 comments (5%), about 4 minutes left",
        "Importing: 9,000 of 100,000 comments (9%), about 4 minutes left",
        "Importing: 12,000 of 100,000 comments (12%), about 4 minutes left",
    ]


def test_a_total_that_is_not_known_has_no_estimate(
    capsys: pytest.CaptureFixture[str], clock: Clock
) -> None:
    now = lambda: clock.now  # noqa: E731 - the clock of the test
    with import_progress.showing("Reading", None, "comment", now) as advance:
        clock.now += 11.0
        advance(1_500)
    assert capsys.readouterr().err == "Reading: 1,500 comments\n"


def test_a_short_command_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with import_progress.showing("Reading", 10, "line") as advance:
        advance(10)
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_a_bar(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    with import_progress.showing("Importing", 4, "comment") as advance:
        advance(1)
        advance(3)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "Importing" in printed.err
    assert "100%" in printed.err
    assert "comments/s" in printed.err


@pytest.mark.parametrize(
    ("data", "lines"),
    [(b"", 0), (b"a\nb\n", 2), (b"a\nb", 1), (gzip.compress(b"a\nb\n", mtime=0), None)],
)
def test_the_lines_of_a_file_are_counted(tmp_path: Path, data: bytes, lines: int | None) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    assert import_progress.lines_in(path) == lines


def test_a_file_that_cannot_be_read_has_no_lines(tmp_path: Path) -> None:
    assert import_progress.lines_in(tmp_path / "nothing") == 0
