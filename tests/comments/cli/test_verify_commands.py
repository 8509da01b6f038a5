"""`verify` compares a file with the store, and exits with 1 for differences without a reason."""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import click.testing
import flask
import pytest

from comments.cli import import_progress
from comments.domain import records
from comments.domain.ids import imported_ids
from comments.domain.records import Verb
from comments.moderation import decisions
from comments.store import connection
from comments.transfer.checking import checked_import
from tests.support.threads import raw_changes, sample_threads
from tests.support.threads.sample_exports import post

Run = Callable[..., click.testing.Result]
LINK = '<thread dsq:id="1"><link>https://example.com/page</link></thread>\n'


@pytest.fixture
def run(app: flask.Flask) -> Run:
    """Run a command as `flatthread ...` does."""
    runner = app.test_cli_runner()
    return lambda *arguments: runner.invoke(args=list(map(str, arguments)))


@pytest.fixture
def file(export: Callable[..., Path], site: records.Site) -> Path:
    return export(LINK, post("1"), post("2", "1"))


def comment_id(source: str) -> str:
    return imported_ids.comment_id("demo", "disqus", source)


def test_an_import_verifies_itself(run: Run, file: Path) -> None:
    imported = run("import", file, "--site", "demo")
    assert imported.exit_code == 0
    assert "Verified 2 comments: the store matches the file.\n" in imported.output


def test_a_verified_file_is_reported_with_its_totals(run: Run, file: Path) -> None:
    run("import", file, "--site", "demo")
    found = run("verify", file, "--site", "demo")
    assert found.exit_code == 0
    assert [line.split() for line in found.stdout.splitlines()[:3]] == [
        ["file", "store"],
        ["comments", "2", "2"],
        ["threads", "1", "1"],
    ]
    name, in_file, in_store = found.stdout.splitlines()[3].split()
    assert (name, len(in_file)) == ("texts", 12)
    assert in_file == in_store
    assert found.stdout.splitlines()[4:] == ["Verified 2 comments: the store matches the file."]
    assert run("verify", "disqus", file, "--site", "demo").stdout == found.stdout


def test_faults_and_changes_are_reported_apart(
    run: Run, file: Path, open_store: connection.Store, site: records.Site
) -> None:
    run("import", file, "--site", "demo")
    with open_store.context():
        raw_changes.comment(comment_id("1"), html="text \x1b1")
        decisions.decide(
            "demo",
            comment_id("2"),
            Verb.SPAM,
            records.Actor("cli", "Ann"),
            now=sample_threads.START,
        )
        sample_threads.post(site, "mine")
    found = run("verify", file, "--site", "demo")
    assert found.exit_code == 1
    assert found.stdout.splitlines()[4:] == [
        "html: 1, no known reason",
        r"  example.com/page, comment 1 in line 3: html is 'text \x1b1', in the file 'text 1'",
        "status: 1, moderated here",
        "  example.com/page, comment 2 in line 4: status is 'spam', in the file 'approved'",
        "The site also has 1 other comment and 1 other thread, which are not in the file.",
        "1 difference between the file and the store have no known reason.",
    ]


def test_an_import_with_a_fault_exits_with_1(
    run: Run, file: Path, open_store: connection.Store
) -> None:
    run("import", file, "--site", "demo")
    with open_store.context():
        raw_changes.comment(comment_id("2"), up=7)
    again = run("import", file, "--site", "demo")
    assert again.exit_code == 1
    assert "comment 2 in line 4: votes is (7, 0, 0), in the file (0, 0, 0)" in again.output


def test_a_file_that_was_never_imported_is_missing(run: Run, file: Path) -> None:
    found = run("verify", file, "--site", "demo")
    assert found.exit_code == 1
    assert "  example.com/page, comment 1 in line 3: is not stored\n" in found.stdout
    assert found.stdout.endswith(
        "2 differences between the file and the store have no known reason.\n"
    )


def test_a_verification_in_json(run: Run, file: Path, open_store: connection.Store) -> None:
    run("import", file, "--site", "demo")
    with open_store.context():
        raw_changes.comment(comment_id("1"), created=sample_threads.START)
    found = run("verify", file, "--site", "demo", "--json")
    assert found.exit_code == 1
    document = json.loads(found.stdout)
    assert (document["explained"], document["unexplained"]) == (0, 1)
    assert document["in_file"]["comments"] == document["in_store"]["comments"] == 2
    (group,) = document["differences"]
    assert (group["field"], group["reason"], group["count"]) == ("created", "", 1)
    assert group["examples"] == [
        {
            "thread": "example.com/page",
            "comment": comment_id("1"),
            "source": "1",
            "line": 3,
            "stored": "2026-01-02T03:04:05.678901Z",
            "expected": "2015-01-01T00:00:00Z",
        }
    ]


def test_a_mapped_import_is_verified_with_the_same_mapping(run: Run, file: Path) -> None:
    mapped = ("--map", "example.com=blog.example")
    run("import", file, "--site", "demo", *mapped)
    assert run("verify", file, "--site", "demo", *mapped).exit_code == 0
    other = run("verify", file, "--site", "demo")
    assert other.exit_code == 1
    assert "thread is 'blog.example/page', in the file 'example.com/page'" in other.stdout


def test_a_file_that_cannot_be_read_is_refused(
    run: Run, export: Callable[..., Path], site: object
) -> None:
    broken = export(LINK, post("1", created="soon"))
    refused = run("verify", broken, "--site", "demo")
    assert refused.exit_code == 1
    assert f"{broken}:3: not a valid date: 'soon'" in refused.output
    assert run("verify", broken, "--site", "unknown").exit_code == 1


def test_each_phase_of_an_import_counts_its_progress(
    run: Run, export: Callable[..., Path], site: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: dict[str, list[int]] = {}

    @contextlib.contextmanager
    def shown(what: str, total: int | None, noun: str) -> Iterator[Callable[[int], None]]:
        steps = counted.setdefault(f"{what} {total} {noun}s", [])
        yield steps.append

    monkeypatch.setattr(import_progress, "showing", shown)
    monkeypatch.setattr(checked_import, "_READ", 10)
    file = export(LINK, *(post(str(n)) for n in range(60)))
    assert run("import", file, "--site", "demo").exit_code == 0
    assert {what: sum(steps) for what, steps in counted.items()} == {
        "Reading 62 lines": 62,
        "Importing 60 comments": 60,
        "Verifying 60 comments": 60,
    }
    assert len(counted["Reading 62 lines"]) == 7
