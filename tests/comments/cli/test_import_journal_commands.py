"""`imports` lists, shows and undoes imports."""

import functools
import re
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import click.testing
import flask
import msgspec
import pytest

from comments.domain import records
from comments.reading.compaction import compactor
from comments.store import connection, transactions
from comments.transfer.importing import import_journal, import_process
from tests.conftest import ROOT
from tests.support.threads import sample_exports, sample_threads
from tests.support.threads.sample_exports import post

Run = Callable[..., click.testing.Result]
LINK = '<thread dsq:id="1"><link>https://example.com/page</link></thread>\n'


@pytest.fixture
def run(app: flask.Flask) -> Run:
    """Run a command as `flatthread ...` does."""
    runner = app.test_cli_runner()

    def invoke(*arguments: object, answer: str = "") -> click.testing.Result:
        return runner.invoke(args=list(map(str, arguments)), input=answer)

    return invoke


@pytest.fixture
def imported(export: Callable[..., Path], site: records.Site, run: Run) -> str:
    """The id of an import of three comments."""
    path = export(LINK, post("1"), post("2", "1"), post("3"))
    assert run("import", path, "--site", "demo").exit_code == 0
    found = run("imports", "list", "--site", "demo").stdout
    return found.splitlines()[1].partition("\t")[0]


def stored(open_store: connection.Store) -> list[records.Comment]:
    with open_store.context():
        return sample_exports.rows()


def test_the_list_says_what_was_imported_and_until_when_it_can_be_undone(
    run: Run, imported: str
) -> None:
    header, line = run("imports", "list", "--site", "demo").stdout.splitlines()
    assert header == "id\tbegan\tformat\tfile\tadded\tstate"
    assert re.fullmatch(
        rf"{imported}\t[-\d]{{10}} [\d:+]+\tdisqus\texport\.xml\t3\tfinished, can be undone until "
        r"[-\d]{10} [\d:+]+",
        line,
    )
    shown = run("imports", "show", imported, "--site", "demo").stdout
    assert "processed: 3 of 3 comments\nadded: 3 comments\nstate: finished" in shown
    assert "removes 3 comments and 1 thread" in shown


def test_an_undo_asks_first(run: Run, imported: str, open_store: connection.Store) -> None:
    for answer in ("n\n", ""):
        refused = run("imports", "undo", imported, "--site", "demo", answer=answer)
        assert refused.exit_code == 1
        assert "removes 3 comments and 1 thread" in refused.output
        assert "Undo the import of export.xml into demo? [y/N]" in refused.output
        assert len(stored(open_store)) == 3
    done = run("imports", "undo", imported, "--site", "demo", answer="y\n")
    assert done.exit_code == 0
    assert "Readers no longer see the imported comments." in done.output


def test_an_undo_removes_what_the_import_added_and_keeps_replies(
    run: Run, imported: str, open_store: connection.Store, site: records.Site
) -> None:
    first = stored(open_store)[0]
    with open_store.context():
        reply = sample_threads.post(site, "a reply", first.id, thread=first.thread)
    done = run("imports", "undo", imported, "--site", "demo", "--yes", "--reason", "wrong blog")
    assert done.exit_code == 0, done.output
    assert "It leaves 1 tombstone, without text and author" in done.output
    assert "Removed 2 comments; 1 tombstone left above other comments." in done.output
    assert [row.body for row in stored(open_store)] == ["", reply.body]
    assert run("recount", "demo").exit_code == 0
    assert run("repair", "--site", "demo").exit_code == 0
    log = run("moderate", "log", "demo").stdout.split("\t")
    assert log[2:] == [
        "the command line", "undo-import", f"import:{imported}", "imported", "undone",
        "wrong blog\n",
    ]  # fmt: skip
    listed = run("imports", "list", "--site", "demo").stdout
    assert re.search(r"\tundone at .*, 1 tombstone left\n", listed)


def test_a_compacted_thread_is_finished_by_waiting(
    run: Run, imported: str, open_store: connection.Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    run("compact", "demo", "--wait")
    done = run("imports", "undo", imported, "--site", "demo", "--yes")
    assert "Removed 3 comments. Readers no longer see" in done.output
    assert "can delete 1 comment without content only after a compaction" in done.output
    assert f"run `imports undo {imported} --site demo --wait`" in done.output
    shown = run("imports", "show", imported, "--site", "demo").stdout
    assert "state: being undone\nundo began: " in shown
    assert "removed: 3 of 3 comments\nwaiting: 1 comment without content" in shown
    again = run("imports", "undo", imported, "--site", "demo", "--wait")
    assert again.exit_code == 0, again.output
    assert "Removed 3 comments; 0 tombstones left" in again.output
    assert waits == [compactor.GRACE] * 2
    assert stored(open_store) == []


def test_an_undo_is_refused_with_the_reason(
    run: Run, imported: str, open_store: connection.Store
) -> None:
    unknown = run("imports", "undo", "unknown", "--site", "demo", "--yes")
    assert unknown.exit_code == 1
    assert "demo has no import 'unknown'. `imports list --site demo` lists" in unknown.output
    assert run("imports", "show", "unknown", "--site", "demo").exit_code == 1
    with open_store.context():
        found = import_journal.get("demo", imported)
    now = datetime.now(UTC)
    for changed, said in (
        (msgspec.structs.replace(found, began=now - import_journal.TERM), "could be undone until"),
        (msgspec.structs.replace(found, added=None, at=now), "is still running. Wait until it"),
        (msgspec.structs.replace(found, undoing=now, undone=now), "was undone already, at"),
    ):
        writes = import_journal.import_writes("demo", changed)
        with open_store.context():
            transactions.transaction(functools.partial(transactions.apply, writes))
        refused = run("imports", "undo", imported, "--site", "demo", "--yes")
        assert refused.exit_code == 1
        assert said in refused.output
        assert len(stored(open_store)) == 3
        assert run("imports", "list", "--site", "demo").exit_code == 0


def test_no_file_is_read_while_an_import_is_being_undone(
    run: Run, imported: str, export: Callable[..., Path]
) -> None:
    run("compact", "demo")
    run("imports", "undo", imported, "--site", "demo", "--yes")
    # The comment is stored in a different thread, but not for long.
    path = export(LINK.replace("page", "moved"), post("1"), post("2", "1"), post("3"))
    for more in ((), ("--dry-run",)):
        refused = run("import", path, "--site", "demo", *more)
        assert refused.exit_code == 1
        assert refused.output == (
            f"Error: The import {imported} into demo is being undone, so no file can be imported "
            f"now. Try again in a few minutes, when `imports show {imported} --site demo` says "
            "that it is undone.\n"
        )


def test_the_same_file_can_be_imported_again(
    run: Run, imported: str, export: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    run("imports", "undo", imported, "--site", "demo", "--yes", "--wait")
    path = export(LINK, post("1"), post("2", "1"), post("3"))
    again = run("import", path, "--site", "demo")
    assert "Added 3 comments in 1 thread; 0 existed already." in again.output
    assert "Verified 3 comments" in again.output
    assert len(run("imports", "list", "--site", "demo").stdout.splitlines()) == 3


def test_an_import_whose_process_has_ended_is_interrupted(
    run: Run, imported: str, open_store: connection.Store
) -> None:
    mark = (
        "from comments.transfer.importing import import_process; print(import_process.own_mark())"
    )
    ended = subprocess.run(
        [sys.executable, "-c", mark], check=True, capture_output=True, text=True, cwd=ROOT
    )
    for process, state in (
        (import_process.own_mark(), "running"),
        ("elsewhere 1 1", "running"),
        (ended.stdout.strip(), "interrupted: run the same command again, can be undone until"),
    ):
        with open_store.context():
            unfinished = msgspec.structs.replace(
                import_journal.get("demo", imported),
                added=None,
                at=datetime.now(UTC),
                process=process,
            )
            transactions.transaction(
                functools.partial(
                    transactions.apply, import_journal.import_writes("demo", unfinished)
                )
            )
        assert state in run("imports", "list", "--site", "demo").stdout
