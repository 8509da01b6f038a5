"""Test what `export` prints and writes, and how `import` applies an export's settings."""

import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import click.testing
import flask
import pytest

from comments.domain import records
from comments.store import connection
from tests.support.exporting import site_exports
from tests.support.importing.samples import flatthread as samples
from tests.support.threads import sample_threads

Run = Callable[..., click.testing.Result]


@pytest.fixture
def run(app: flask.Flask, open_store: connection.Store, site: records.Site) -> Run:
    """Return a function that runs a command; the site has a thread of eight comments."""
    with open_store.context():
        sample_threads.grow(site, sample_threads.TREE)
    runner = app.test_cli_runner()
    return lambda *arguments: runner.invoke(args=[str(each) for each in arguments])


def test_an_export_is_printed_or_written(run: Run, tmp_path: Path) -> None:
    printed = run("export", "demo")
    assert printed.exit_code == 0
    assert run("export", "demo", "-").stdout.splitlines()[1:] == printed.stdout.splitlines()[1:]
    lines = [json.loads(each) for each in printed.stdout.splitlines()]
    assert [each["kind"] for each in lines] == [
        "header", "settings", "thread", *["comment"] * 8, "end",
    ]  # fmt: skip
    path = tmp_path / "demo.jsonl.gz"
    said = run("export", "demo", path)
    assert said.stdout == f"Exported 8 comments in 1 thread to {path}.\n"
    assert (
        gzip.decompress(path.read_bytes()).splitlines()[1:]
        == (printed.stdout.encode().splitlines()[1:])
    )


def test_a_folder_keeps_the_latest_files(run: Run, tmp_path: Path) -> None:
    old = [tmp_path / f"demo-2026010{day}T000000Z.jsonl.gz" for day in range(1, 4)]
    for each in old:
        each.touch()
    said = run("export", "demo", tmp_path, "--keep", "2")
    assert said.exit_code == 0, said.output
    assert f"Removed {old[0]}." in said.stdout
    assert f"Removed {old[1]}." in said.stdout
    left = sorted(tmp_path.iterdir())
    assert len(left) == 2
    assert left[0] == old[2]
    assert len(site_exports.of_kind(left[1], "comment")) == 8


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["none"], 1, "Error: "),
        (["demo", "--keep", "2"], 2, "With --keep, name an existing folder instead of FILE."),
        (["demo", "--format", "wxr", "--audit-log"], 2, "WXR cannot contain the audit log."),
        (["demo", "/nowhere/x.jsonl"], 1, "x.jsonl was not written: No such file"),
        (["demo", "--keep", "0", "."], 2, "--keep"),
    ],
)
def test_wrong_arguments_are_explained(
    run: Run, words: list[str], status: int, message: str
) -> None:
    said = run("export", *words)
    assert said.exit_code == status
    assert message in said.output
    assert "Traceback" not in said.output


def test_settings_counters_and_the_audit_log_are_applied_once(run: Run, tmp_path: Path) -> None:
    entry = {
        "kind": "audit",
        "id": "x" * 26,
        "subject": samples.id_of("a"),
        "verb": "spam",
        "actor": "cli",
        "at": "2026-01-02T00:00:00Z",
    }
    settings = {
        "kind": "settings",
        "origins": ["https://garden.example"],
        "scheme": {"digits": "abc", "width": 2, "levels": 4},
        "query_keys": ["p"],
        "moderation": {"policy": "all", "bans": [{"author": "g:eve"}]},
    }
    counters = [{"kind": "counter", "name": name} for name in ("all", "some")]
    path = tmp_path / "x.jsonl"
    path.write_bytes(
        samples.ended(
            samples.lines(settings, *counters, samples.thread(), samples.comment("a", 0), entry)
        )
    )
    run("counter", "add", "demo", "all", "--where", "up > 1")
    assert "No such" not in run("import", path, "--site", "demo", "--dry-run").output
    first = run("import", path, "--site", "demo")
    assert first.exit_code == 0, first.output
    assert "The settings in the file were not applied. Add --settings" in first.output
    assert "The counters in the file were not declared. Add --settings" in first.output
    assert "Added 1 entry to the audit log; 0 existed already." in first.output
    second = run("import", path, "--site", "demo", "--settings")
    assert "Replaced the site's settings by those in the file." in second.output
    assert "Declared counters: some." in second.output
    assert "Counters that existed already: all." in second.output
    assert "Added 0 entries to the audit log; 1 existed already." in second.output
    found = tmp_path / "y.jsonl"
    run("export", "demo", found, "--audit-log")
    (line,) = site_exports.of_kind(found, "settings")
    assert (line["origins"], line["query_keys"]) == (["https://garden.example"], ["p"])
    assert line["moderation"]["policy"] == "all"
    assert line["moderation"]["bans"] == [{"author": "g:eve"}]
    assert line["scheme"]["levels"] == 8  # The site had a thread already
    assert {each["name"] for each in site_exports.of_kind(found, "counter")} == {"all", "some"}
    (read,) = site_exports.of_kind(found, "audit")
    assert read == entry


def test_settings_are_only_in_exports_of_flatthread(run: Run, tmp_path: Path) -> None:
    said = run("import", "disqus", __file__, "--site", "demo", "--settings")
    assert said.exit_code == 2
    assert "Only exports of Flatthread contain settings. Omit --settings." in said.output


def test_errors_of_files_are_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    said = run("export", "demo", "a" * 300)
    assert said.exit_code == 1
    assert said.stderr.endswith("a: File name too long.\n")
    with open("/dev/full", "wb") as full:  # noqa: PTH123 - a device
        monkeypatch.setattr(shutil, "copyfileobj", lambda *_: os.write(full.fileno(), b"x"))
        said = run("export", "demo")
    assert said.exit_code == 1
    assert said.stderr.endswith("Error: Cannot read or write a file: No space left on device.\n")
