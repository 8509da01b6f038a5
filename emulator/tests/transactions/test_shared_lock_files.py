"""Shared lock files, through which processes see each other's locks."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from datastore_emulator import errors
from datastore_emulator.transactions import shared_lock_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data-locks"


@pytest.fixture
def two(folder: Path) -> Iterator[list[shared_lock_files.Peers]]:
    """Two peers that use the files as two processes would."""
    both = [shared_lock_files.Peers(folder), shared_lock_files.Peers(folder)]
    yield both
    for each in both:
        each.leave()


def tell(process: shared_lock_files.Peers, *events: list[Any]) -> None:
    with process.turn():
        process.tell(*events)


def seen(process: shared_lock_files.Peers) -> set[str]:
    with process.turn():
        return set(process.all())


def test_each_process_knows_earlier_and_later_events_of_the_others(
    folder: Path, two: list[shared_lock_files.Peers]
) -> None:
    one, other = two
    tell(one, ["open", "a", 1.0, 2.0], ["read", "a", 2.0, ["Eé\n\x00"], []])
    assert seen(other) == {"a"}
    tell(other, ["open", "b", 1.0, 2.0])
    with one.turn() as has_news:
        assert has_news
        assert one.all()["a"].places == {"Eé\n\x00"}
        assert set(one.all()) == {"a", "b"}
    with one.turn() as has_news:
        assert not has_news


def test_the_stored_form(folder: Path, two: list[shared_lock_files.Peers]) -> None:
    tell(two[0], ["open", "a", 1.0, 2.0], ["read", "a", 2.0, ["E\xff"], [["I1", "I2"]]])
    path = next(folder.glob(f"{os.getpid()}-*"))
    assert path.read_bytes() == (
        b"\x00\x00\x00\x00\x00\x00\x00\x01"
        b'["open", "a", 1.0, 2.0]\n["read", "a", 2.0, ["E\xff"], [["I1", "I2"]]]\n'
    )


def test_a_process_that_leaves_is_forgotten_and_leaves_no_file(
    folder: Path, two: list[shared_lock_files.Peers]
) -> None:
    one, other = two
    tell(other, ["open", "b", 1.0, 2.0])
    assert seen(one) == {"b"}
    other.leave()
    with one.turn():
        assert one.drop_dead({"b"})
        assert not one.all()
        assert not one.drop_dead({"b"})
    assert len(list(folder.iterdir())) == 2
    one.leave()
    assert [path.name for path in folder.iterdir()] == ["gate"]


def test_a_joining_process_removes_the_files_of_dead_ones(
    folder: Path, two: list[shared_lock_files.Peers]
) -> None:
    folder.mkdir()
    (folder / "1-dead").write_bytes(b"\x00" * 8 + b'["open", "old", 1.0, 2.0]\n')
    assert seen(two[0]) == set()
    assert not (folder / "1-dead").exists()


def test_half_a_line_is_not_read(folder: Path, two: list[shared_lock_files.Peers]) -> None:
    one, other = two
    tell(one, ["open", "a", 1.0, 2.0])
    (path,) = folder.glob(f"{os.getpid()}-*")
    path.write_bytes(path.read_bytes() + b'["open", "b", 1')
    assert seen(other) == {"a"}


def test_a_long_file_is_rewritten_with_the_current_locks(
    folder: Path, two: list[shared_lock_files.Peers], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_lock_files, "_MAX_BYTES", 1000)
    one, other = two
    tell(one, ["open", "stays", 1.0, 2.0])
    for number in range(200):
        tell(one, ["open", f"h{number}", 1.0, 2.0], ["end", f"h{number}"])
        if number % 60 == 0:
            assert seen(other) == {"stays"}
    assert seen(other) == {"stays"}
    assert max(path.stat().st_size for path in folder.iterdir()) < 1500


def test_an_old_file_is_rewritten_without_released_locks(
    folder: Path, two: list[shared_lock_files.Peers], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    tell(one, ["open", "stays", 1.0, 2.0])
    tell(one, ["open", "gone", 1.0, 2.0], ["read", "gone", 2.0, ["Ecanary"], []], ["end", "gone"])
    (path,) = (each for each in folder.glob(f"{os.getpid()}-*") if b"canary" in each.read_bytes())
    monkeypatch.setattr(shared_lock_files, "_SECONDS", 0)
    tell(one, ["open", "next", 1.0, 2.0], ["end", "next"])
    assert b"canary" not in path.read_bytes()
    assert seen(other) == seen(one) == {"stays"}


def test_a_failed_write_is_repeated_with_the_next_event(
    folder: Path, two: list[shared_lock_files.Peers], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    tell(one, ["open", "a", 1.0, 2.0])
    write = os.pwrite
    with monkeypatch.context() as context:
        context.setattr(os, "pwrite", lambda file, content, place: write(file, content[:5], place))
        with pytest.raises(errors.DiskFull, match=os.strerror(errno.ENOSPC)):
            tell(one, ["open", "b", 1.0, 2.0])
    assert seen(other) == {"a"}
    tell(one, ["open", "c", 1.0, 2.0])
    assert seen(other) == {"a", "b", "c"}


def test_a_folder_that_cannot_be_created_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(errors.Unavailable),
        shared_lock_files.Peers(tmp_path / "file" / "locks").turn(),
    ):
        pass
