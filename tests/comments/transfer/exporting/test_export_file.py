"""A file with its final name is complete, also after failures and kills."""

import contextlib
import gzip
import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from comments import errors
from comments.domain import records
from comments.sites import site_settings
from comments.store import connection
from comments.transfer.exporting import export_file, export_folder
from datastore_emulator import inprocess
from tests.support import dying_programs
from tests.support.exporting import site_exports
from tests.support.threads import sample_exports, sample_threads

NOW = datetime(2026, 11, 28, 3, 15, tzinfo=UTC)
OLD = b"an older export\n"


def test_a_file_gets_its_name_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    path.write_bytes(OLD)
    with export_file.create(path) as file:
        file.write(b"new\n")
        assert path.read_bytes() == OLD
    assert path.read_bytes() == b"new\n"
    assert list(tmp_path.iterdir()) == [path]
    assert path.stat().st_mode & 0o777 == 0o600


def test_an_error_leaves_the_older_file(tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    path.write_bytes(OLD)
    with contextlib.suppress(ZeroDivisionError), export_file.create(path) as file:
        file.write(b"new\n")
        raise ZeroDivisionError
    assert path.read_bytes() == OLD
    assert list(tmp_path.iterdir()) == [path]


def test_equal_contents_make_equal_gzip_files(tmp_path: Path) -> None:
    paths = [tmp_path / "a.gz", tmp_path / "b.gz"]
    for path in paths:
        with export_file.create(path) as file:
            file.write(b"text\n" * 100)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert gzip.decompress(paths[0].read_bytes()) == b"text\n" * 100


def _export(path: Path) -> None:
    with export_file.create(path) as file:
        file.write(b"new\n")


def test_links_and_pipes_in_place_of_the_temporary_file_are_refused(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(OLD)
    part = tmp_path / ".export.jsonl.part"
    for make in (part.symlink_to, part.hardlink_to, lambda _: os.mkfifo(part)):
        make(other)
        with pytest.raises(errors.ExportFailed):
            _export(tmp_path / "export.jsonl")
        part.unlink()
    assert other.read_bytes() == OLD
    assert list(tmp_path.iterdir()) == [other]


def test_only_the_owner_can_read_an_export_after_a_temporary_file_was_left(tmp_path: Path) -> None:
    (tmp_path / ".export.jsonl.part").touch(mode=0o644)
    _export(tmp_path / "export.jsonl")
    assert (tmp_path / "export.jsonl").stat().st_mode & 0o777 == 0o600


def test_a_device_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(errors.ExportFailed, match="not a regular file"):
        _export(pipe)
    assert pipe.is_fifo()


def test_a_file_that_is_being_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    with export_file.create(path) as file:
        with (
            pytest.raises(errors.ExportFailed, match="another process is writing"),
            export_file.create(path),
        ):
            raise AssertionError
        file.write(b"first\n")
    assert path.read_bytes() == b"first\n"


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "export.jsonl"
    refused = pytest.raises(errors.ExportFailed, match=r"export\.jsonl was not written: No such")
    with refused, export_file.create(path):
        raise AssertionError


def test_a_folder_keeps_the_latest_exports_of_a_site(tmp_path: Path) -> None:
    names = [
        tmp_path / export_folder.file_name("blog", ".jsonl.gz", NOW + timedelta(days=day))
        for day in range(4)
    ]
    assert names[0].name == "blog-20261128T031500Z.jsonl.gz"
    others = [
        tmp_path / export_folder.file_name("blog-2", ".jsonl.gz", NOW),
        tmp_path / export_folder.file_name("blog", ".xml.gz", NOW),
        tmp_path / "blog-notes.jsonl.gz",
    ]
    for each in (*names, *others):
        each.touch()
    assert export_folder.remove_old(tmp_path, "blog", ".jsonl.gz", 3) == names[:1]
    assert export_folder.remove_old(tmp_path, "blog", ".jsonl.gz", 3) == []
    assert sorted(tmp_path.iterdir()) == sorted([*names[1:], *others])


@pytest.fixture(scope="module")
def garden_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data file with a site of several threads."""
    path = tmp_path_factory.mktemp("garden") / "store.db"
    with opened(path):
        site = site_settings.add(
            "garden", sample_exports.SITE.origins, scheme=sample_exports.SCHEME, now=NOW
        )
        grow(site)
    return path


@contextlib.contextmanager
def opened(path: Path) -> Iterator[None]:
    with (
        inprocess.open_engine(path, indexes=dying_programs.INDEXES) as engine,
        connection.Store(inprocess.Channel(engine), project="test").context(),
    ):
        yield


def grow(site: records.Site) -> None:
    for thread in ("roses", "tulips", "violets"):
        sample_threads.grow(site, sample_threads.TREE, thread=thread)


def export(path: Path) -> None:
    site_exports.save(path, "garden")


def export_until_renamed(path: Path) -> None:
    """Export in a process that is killed when the file would get its name."""

    def kill(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "replace", kill)
        export(path)


@pytest.mark.slow
@pytest.mark.embedded
@pytest.mark.parametrize("is_gzip", [False, True])
def test_a_killed_export_leaves_the_older_file_or_none(
    garden_path: Path, tmp_path: Path, is_gzip: bool
) -> None:
    path = tmp_path / ("export.jsonl.gz" if is_gzip else "export.jsonl")
    with opened(garden_path):
        whole = site_exports.lines(site_exports.save(tmp_path / "whole.jsonl", "garden"))
    rules = [
        {"rpc": rpc, "call": call, "when": when, "kill": True}
        for rpc, call in (("RunQuery", 1), ("RunQuery", 4), ("RunQuery", 7), ("Commit", 1))
        for when in ("before", "after")
    ]
    for number, rule in enumerate(rules):
        if number % 2:
            path.write_bytes(OLD)
        ended = dying_programs.run(garden_path, [rule], export, path)
        assert ended == (-signal.SIGKILL, ""), rule
        if rule["rpc"] == "Commit":  # The file was complete before
            assert site_exports.lines(path) == whole
        else:
            assert (path.read_bytes() if path.exists() else OLD) == OLD
        path.unlink(missing_ok=True)
    assert dying_programs.run(garden_path, [], export_until_renamed, path)[0] == -signal.SIGKILL
    assert not path.exists()
    assert [each.name for each in tmp_path.glob(".*")] == [f".{path.name}.part"]
    with opened(garden_path):
        export(path)
    assert site_exports.lines(path) == whole
    assert list(tmp_path.glob(".*")) == []
