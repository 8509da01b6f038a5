"""An undo of an export of Flatthread removes its counters and log entries, and names what stays."""

import time
from pathlib import Path
from typing import Any

import pytest

from comments.domain import records
from comments.events import audit_log
from comments.store import connection
from comments.threads import thread_info
from comments.transfer.importing import import_journal, import_undo
from comments.tree.counters.declared import declared_backfill
from tests.comments.cli.conftest import Runner
from tests.support.importing.samples import flatthread as samples
from tests.support.people.console_browser import Desk
from tests.support.threads import sample_threads

SETTINGS = {
    "kind": "settings",
    "origins": ["https://garden.example"],
    "scheme": {"digits": "abc", "width": 2, "levels": 4},
    "moderation": {"policy": "all"},
}
COUNTERS = [{"kind": "counter", "name": name} for name in ("all", "liked", "sad")]


def entry(letter: str) -> dict[str, Any]:
    """Return the line of a decision about the exported comment."""
    return {
        "kind": "audit",
        "id": letter * 26,
        "subject": samples.id_of("a"),
        "verb": "approve",
        "actor": "cli",
        "at": "2026-01-02T00:00:00Z",
    }


def saved(path: Path, *more: dict[str, Any]) -> Path:
    """Save an export of one comment with settings, counters and log entries."""
    one = (samples.thread(), samples.comment("a", 0))
    path.write_bytes(samples.ended(samples.lines(SETTINGS, *COUNTERS, *one, *more)))
    return path


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an undo not wait for processes that read old pages."""
    monkeypatch.setattr(time, "sleep", lambda _: None)


@pytest.fixture
def export(tmp_path: Path) -> Path:
    return saved(tmp_path / "x.jsonl", entry("x"), entry("y"))


def counters(run: Runner) -> list[str]:
    return [line.split()[0] for line in run("counter", "list", "demo").stdout.splitlines()[1:]]


def last_import(open_store: connection.Store) -> str:
    with open_store.context():
        return import_journal.recent_imports("demo")[0].id


def log(open_store: connection.Store) -> list[str]:
    """Return the verbs of the site's audit log, newest first."""
    with open_store.context():
        return [each.verb for each in audit_log.log("demo")]


def test_lines_that_a_file_repeats_are_applied_once(
    run: Runner, site: records.Site, open_store: connection.Store, tmp_path: Path
) -> None:
    path = tmp_path / "x.jsonl"
    counter = {"kind": "counter", "name": "liked"}
    more = (samples.thread(title="T"), samples.thread(title="Other"), samples.comment("a", 0))
    lines = samples.lines(counter, {**counter, "sum": "up"}, *more, entry("x"), entry("x"))
    path.write_bytes(samples.ended(lines))
    done = run("import", path, "--site", "demo")
    assert done.exit_code == 0, done.output
    assert "Declared counters: liked.\n" in done.output
    assert "Added 1 entry to the audit log; 1 existed already." in done.output
    assert log(open_store) == ["approve"]
    with open_store.context():
        assert thread_info.fresh(records.ThreadName("demo", samples.ROSES)).title == "T"


def test_an_undo_removes_the_counters_and_log_entries_of_an_export(
    run: Runner, site: records.Site, open_store: connection.Store, export: Path
) -> None:
    run("counter", "add", "demo", "all", "--where", "up > 1")
    for _ in range(2):
        done = run("import", export, "--site", "demo", "--settings")
        assert "Declared counters: liked, sad." in done.output
        assert "Added 2 entries to the audit log; 0 existed already." in done.output
        run("counter", "change", "demo", "sad", "--where", "down > 1")
        again = run("import", export, "--site", "demo", "--settings")
        assert "Added 0 entries to the audit log; 2 existed already." in again.output
        found = last_import(open_store)
        shown = run("imports", "show", found, "--site", "demo").stdout
        also = "It also removes 2 entries of the audit log and the counter liked. "
        assert also in shown
        undone = run("imports", "undo", found, "--site", "demo", "--yes", "--wait")
        assert undone.exit_code == 0, undone.output
        assert also in undone.output
        assert undone.output.endswith(
            "Removed 1 comment; 0 tombstones left above other comments. The settings from the file "
            "stay.\n"
        )
        assert counters(run) == ["all", "sad"]
        assert set(log(open_store)) == {"undo-import"}
        assert run("recount", "demo").output == "0 differences corrected.\n"
        run("counter", "remove", "demo", "sad")


def test_an_undo_keeps_log_entries_that_existed_before_the_import(
    run: Runner, site: records.Site, open_store: connection.Store, export: Path, tmp_path: Path
) -> None:
    run("import", export, "--site", "demo")
    assert counters(run) == ["all", "liked", "sad"]
    more = saved(tmp_path / "more.jsonl", entry("x"), entry("y"), entry("z"))
    assert "Added 1 entry to the audit log; 2 existed already." in (
        run("import", more, "--site", "demo").output
    )
    undone = run("imports", "undo", last_import(open_store), "--site", "demo", "--yes")
    assert "It also removes 1 entry of the audit log. All comments" in undone.output
    assert undone.output.endswith("left above other comments.\n")
    assert log(open_store) == ["undo-import", "approve", "approve"]
    assert counters(run) == ["all", "liked", "sad"]


def test_an_interrupted_import_of_an_export_can_be_undone(
    run: Runner,
    site: records.Site,
    open_store: connection.Store,
    export: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(declared_backfill, "complete", fail)
        assert run("import", export, "--site", "demo").exit_code != 0
    assert counters(run) == ["all", "liked", "sad"]
    # The second run finds the counters that the first one declared.
    assert run("import", export, "--site", "demo", "--settings").exit_code == 0
    run("imports", "undo", last_import(open_store), "--site", "demo", "--yes", "--wait")
    assert counters(run) == []
    assert log(open_store) == ["undo-import"]


def test_an_export_without_threads_can_be_undone(
    run: Runner, site: records.Site, open_store: connection.Store, tmp_path: Path
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(samples.ended(samples.lines(SETTINGS, *COUNTERS, entry("x"))))
    done = run("import", path, "--site", "demo")
    assert done.exit_code == 0, done.output
    assert log(open_store) == ["approve"]
    undone = run("imports", "undo", last_import(open_store), "--site", "demo", "--yes")
    assert undone.exit_code == 0, undone.output
    assert log(open_store) == ["undo-import"]
    assert counters(run) == []


def test_the_console_says_what_an_undo_removes_of_an_export(
    run: Runner, owner: Desk, open_store: connection.Store, export: Path
) -> None:
    run("import", export, "--site", "demo", "--settings")
    page = owner.page(f"/imports/undo?id={last_import(open_store)}")
    assert "2 entries of the audit log, which were in the file, will be removed." in page
    assert "The counters that the import declared will be removed: all, liked, sad." in page
    assert "The settings from the file will stay." in page


def test_counters_stay_until_readers_see_no_imported_comment(
    run: Runner, site: records.Site, open_store: connection.Store, export: Path
) -> None:
    run("import", export, "--site", "demo")
    run("compact", "demo")
    found = last_import(open_store)
    undone = run("imports", "undo", found, "--site", "demo", "--yes")
    assert "only after a compaction" in undone.output
    assert counters(run) == ["all", "liked", "sad"]
    with open_store.context():
        sample_threads.post(site, "mine")
        assert import_undo.unfinished_undos() == [records.ImportUndo("demo", found)]
