"""Claims about what is left on the disk where no history is kept: nothing that was deleted.

The files are read as bytes, the log among them, while the engine is open and after it.
"""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.cloud import datastore

from emulator import inprocess, testing
from emulator.storage import file_store

CANARY = b"quetzalcoatlus"


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data" / "store.db"


@contextlib.contextmanager
def _opened(path: Path, clock: Clock, history: int) -> Iterator[datastore.Client]:
    with inprocess.open_engine(path, clock=clock, history=history) as engine:
        yield testing.datastore_client(inprocess.Channel(engine))


def _holders(path: Path) -> list[str]:
    """The files of a store that hold the canary."""
    return sorted(
        each.name
        for each in path.parent.rglob("*")
        if each.is_file() and CANARY in each.read_bytes()
    )


def _put(client: datastore.Client, name: str, text: bytes) -> None:
    entity = datastore.Entity(client.key("T", name), exclude_from_indexes=("long",))
    # Found through an index, and long enough to need pages of its own.
    entity.update(short=text.decode(), long=text.decode() * 1000)
    client.put(entity)


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_what_is_gone_is_in_no_byte_a_minute_later(path: Path, clock: Clock, how: str) -> None:
    with _opened(path, clock, history=0) as client:
        for number in range(20):
            _put(client, f"{number}", b"kept")
        for number in range(5):
            _put(client, f"{number * 3}", CANARY)
        assert _holders(path)
        for number in range(5):
            if how == "deleted":
                client.delete(client.key("T", f"{number * 3}"))
            else:
                _put(client, f"{number * 3}", b"other")
        clock.now += file_store.LOG_SECONDS
        client.get(client.key("T", "1"))
        assert _holders(path) == []
        assert client.get(client.key("T", "1"))["short"] == "kept"
    assert _holders(path) == []


def test_a_reader_keeps_the_log_only_until_it_ends(
    path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A transaction expires when it is idle for a minute.
    monkeypatch.setattr(file_store, "LOG_SECONDS", 10)
    with _opened(path, clock, history=0) as client:
        _put(client, "a", CANARY)
        with client.transaction(read_only=True):
            assert client.get(client.key("T", "a"))
            with _opened(path, clock, history=0) as other:
                other.delete(other.key("T", "a"))
                clock.now += file_store.LOG_SECONDS
                assert other.get(other.key("T", "a")) is None
                assert _holders(path)  # the snapshot still needs it
            assert client.get(client.key("T", "a"))["short"] == CANARY.decode()
        clock.now += file_store.LOG_SECONDS
        assert client.get(client.key("T", "a")) is None
        assert _holders(path) == []


def test_what_a_killed_process_left_in_the_log_is_emptied_at_the_next_start(
    path: Path, clock: Clock
) -> None:
    copy = path.parent.parent / "copy"
    with _opened(path, clock, history=0) as client:
        _put(client, "a", CANARY)
        client.delete(client.key("T", "a"))
        # As kill -9 leaves the files: nobody closed them.
        shutil.copytree(path.parent, copy)
    assert _holders(copy / path.name)
    with _opened(copy / path.name, clock, history=0) as client:
        client.get(client.key("T", "a"))
        assert _holders(copy / path.name) == []


def test_with_a_history_the_past_is_kept(path: Path, clock: Clock) -> None:
    with _opened(path, clock, history=3600) as client:
        _put(client, "a", CANARY)
        client.delete(client.key("T", "a"))
        clock.now += file_store.LOG_SECONDS
        client.get(client.key("T", "a"))
        assert _holders(path)
