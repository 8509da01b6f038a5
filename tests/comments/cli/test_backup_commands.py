"""Test what `backup` and `restore` print and refuse."""

import json
import re
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NoReturn

import click.testing
import pytest

import embedded_engine
from comments.cli import command_table
from comments.posting import own_comment
from comments.store import connection, reads
from comments.store.models import conversion
from tests.support import prepared_stores
from tests.support.threads import sample_threads

pytestmark = pytest.mark.embedded

Run = Callable[..., click.testing.Result]
SECRET = "a secret of the tests"


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder of the project "flatthread" with a thread."""
    folder = tmp_path_factory.mktemp("grown")
    with _store(folder) as store, store.context():
        sample_threads.grow(prepared_stores.demo(), sample_threads.TREE)
    (folder / "secret").write_text(SECRET)
    return folder


def _store(folder: Path) -> AbstractContextManager[connection.Store]:
    return embedded_engine.DataFiles().open_store(folder / "flatthread.db", sample_threads.SETTINGS)


@pytest.fixture
def data(tmp_path: Path, grown: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(grown, tmp_path / "data")
    monkeypatch.setenv("FLATTHREAD_DATA", str(tmp_path / "data"))
    return tmp_path / "data"


@pytest.fixture
def run(data: Path) -> Run:
    """Execute a command as `flatthread ...` does."""

    def never(*, creates: bool, backs_up: bool = True) -> NoReturn:
        raise AssertionError(f"a command opened the store (creates={creates})")

    app = command_table.create_app(never, embedded_engine.DataFiles)
    runner = app.test_cli_runner()
    return lambda *words: runner.invoke(args=[str(word) for word in words])


def test_a_backup_goes_to_a_folder_a_file_or_the_configured_folder(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    done = run("backup", tmp_path / "folder")
    assert done.exit_code == 0, done.output
    (made,) = (tmp_path / "folder").iterdir()
    assert re.fullmatch(r"flatthread-\d{8}-\d{6}\.tar\.gz", made.name)
    size = f"{made.stat().st_size / 1000:.1f} kB"
    with _store(data) as store, store.context():
        rows = sum(
            reads.count(reads.Query(row.key.path[-1].name))
            for row in reads.fetch(reads.Query("__kind__", keys_only=True))
        )
    assert done.stdout == (
        f"Backed up {rows} rows to {made} ({size}), and checked the file and 1 thread.\n"
        f"The secret is not in the backup. Keep a copy of {data}/secret in another safe place.\n"
    )
    assert run("backup", tmp_path / "file.tar.gz").exit_code == 0
    assert (tmp_path / "file.tar.gz").stat().st_mode & 0o777 == 0o600
    assert SECRET.encode() not in (tmp_path / "file.tar.gz").read_bytes()
    again = run("backup", tmp_path / "file.tar.gz")
    assert (again.exit_code, again.stderr.splitlines()[-1]) == (
        1,
        f"Error: {tmp_path}/file.tar.gz already exists. Name a new file.",
    )
    monkeypatch.setenv("BACKUP_DIR", str(tmp_path / "configured"))
    (tmp_path / "configured").mkdir()
    assert run("backup").exit_code == 0
    assert len(list((tmp_path / "configured").iterdir())) == 1


def test_a_nightly_backup_is_made_once(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.nice", lambda _by: 0)
    monkeypatch.setenv("BACKUP_DIR", str(tmp_path))
    first = run("backup", "--nightly")
    assert first.exit_code == 0, first.output
    assert first.stdout.startswith("Backed up ")
    assert run("backup", "--nightly").stdout == (
        "No backup is due, or another process is making it.\n"
    )
    assert len(list(tmp_path.glob("flatthread-nightly-*.tar.gz"))) == 1
    monkeypatch.setenv("BACKUP_DIR", str(tmp_path / "unmounted"))
    failed = run("backup", "--nightly")
    assert failed.exit_code == 1
    assert failed.stderr.splitlines()[-1] == (
        f"Error: The folder {tmp_path}/unmounted does not exist. Create it, or mount its disk."
    )
    assert json.loads((data / "backup.json").read_text())["reason"] in failed.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("backup",), "Name a folder or a file, or set BACKUP_DIR."),
        (("backup", "blog"), "There is no folder blog. The name of a file must end with .tar.gz."),
        (("backup", "--nightly", "x"), "--nightly writes to BACKUP_DIR. Omit the folder or file."),
        (("restore", "missing"), "File 'missing' does not exist."),
    ],
)
def test_wrong_usage_is_explained(run: Run, words: tuple[str, ...], said: str) -> None:
    refused = run(*words)
    assert refused.exit_code == 2
    assert said in refused.stderr


def test_another_store_is_not_backed_up_here(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATASTORE", "cloud")
    monkeypatch.setenv("SECRET", SECRET)
    (tmp_path / "file.tar.gz").touch()
    for words in (("backup", tmp_path), ("restore", tmp_path / "file.tar.gz")):
        refused = run(*words)
        assert refused.exit_code == 1
        assert refused.stderr == (
            "Error: The comments are stored in Datastore, project flatthread, not in a file of "
            "this machine. Use the backups of that store (docs/backups.md).\n"
        )


def test_wrong_settings_end_a_backup_with_status_3(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BACKUP_AT", "25:00")
    refused = run("backup", tmp_path)
    assert refused.exit_code == 3
    assert refused.stderr == (
        "flatthread: BACKUP_AT must be a time such as 03:00 (UTC), not '25:00'\n"
    )
    monkeypatch.delenv("BACKUP_AT")
    monkeypatch.setenv("FLATTHREAD_DATA", str(tmp_path / "nowhere"))
    refused = run("backup", tmp_path)
    assert refused.exit_code == 3
    assert refused.stderr.startswith(f"flatthread: There is no store in {tmp_path}/nowhere.")
    assert not (tmp_path / "nowhere").exists()


def test_a_restore_says_what_it_did(run: Run, data: Path, tmp_path: Path) -> None:
    assert run("backup", tmp_path / "backup.tar.gz").exit_code == 0
    with _store(data) as store, store.context():
        _retract("3")
    done = run("restore", tmp_path / "backup.tar.gz")
    assert done.exit_code == 0, done.output
    (kept,) = data.glob("flatthread.db.replaced-*")
    first, *rest = done.stdout.splitlines()
    assert re.fullmatch(r"Restored \d+ rows as of \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\.", first)
    assert rest == [
        f"The replaced store is now {kept}. Remove it when you no longer need it.",
        "Deleted again, as in the replaced store: 1 comment, 0 accounts, 0 subscriptions, 0 sites.",
        "All sessions and one-time links have ended. Owners and moderators must sign in again.",
    ]


def _retract(text: str) -> None:
    for message in list(reads.fetch(reads.Query("Comment"))):
        found = conversion.comment_from_message(message)
        if found.body == text:
            own_comment.retract(
                found.id, author_id=found.author.id, revision=None, now=sample_threads.START
            )


def test_a_restore_without_the_secret_is_refused_and_makes_none(
    run: Run, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("backup", tmp_path / "backup.tar.gz").exit_code == 0
    monkeypatch.setenv("FLATTHREAD_DATA", str(tmp_path / "new"))
    refused = run("restore", tmp_path / "backup.tar.gz")
    assert refused.exit_code == 1
    assert refused.stderr.splitlines()[-1] == (
        "Error: There is no secret. Copy the secret that belongs to the backup to "
        f"{tmp_path}/new/secret, or set SECRET, and run this command again. If it is lost, use "
        "--lost-secret."
    )
    assert list((tmp_path / "new").iterdir()) == []
    lost = run("restore", "--lost-secret", tmp_path / "backup.tar.gz")
    assert lost.exit_code == 0, lost.output
    assert (tmp_path / "new" / "secret").read_text() != SECRET
    assert "The replaced store is missing or cannot be read" in lost.stdout


def test_a_damaged_backup_is_refused(run: Run, data: Path, tmp_path: Path) -> None:
    (tmp_path / "backup.tar.gz").write_bytes(b"no backup")
    refused = run("restore", tmp_path / "backup.tar.gz")
    assert refused.exit_code == 1
    assert refused.stderr.splitlines()[-1] == (
        f"Error: {tmp_path}/backup.tar.gz is damaged or not a backup: Not a gzipped file (b'no'). "
        "Nothing was changed. Use another backup."
    )
