"""Without history, no deleted data remains on disk.

The tests read the files, including the log, as bytes while the engine is open and after it is
closed.
"""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.cloud import datastore

from datastore_emulator import inprocess, testing
from datastore_emulator.storage import file_store

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
    """Return the files of a store that contain the canary text."""
    return sorted(
        each.name
        for each in path.parent.rglob("*")
        if each.is_file() and CANARY in each.read_bytes()
    )


def _put(client: datastore.Client, name: str, text: bytes) -> None:
    entity = datastore.Entity(client.key("T", name), exclude_from_indexes=("long",))
    # The text is indexed, and it is long enough to need its own pages.
    entity.update(short=text.decode(), long=text.decode() * 1000)
    client.put(entity)


@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_deleted_data_is_in_no_byte_a_minute_later(path: Path, clock: Clock, how: str) -> None:
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
    # A transaction expires after a minute without requests.
    monkeypatch.setattr(file_store, "LOG_SECONDS", 10)
    with _opened(path, clock, history=0) as client:
        _put(client, "a", CANARY)
        with client.transaction(read_only=True):
            assert client.get(client.key("T", "a"))
            with _opened(path, clock, history=0) as other:
                other.delete(other.key("T", "a"))
                clock.now += file_store.LOG_SECONDS
                assert other.get(other.key("T", "a")) is None
                assert _holders(path)  # The snapshot still needs the text
            assert client.get(client.key("T", "a"))["short"] == CANARY.decode()
        clock.now += file_store.LOG_SECONDS
        assert client.get(client.key("T", "a")) is None
        assert _holders(path) == []


def test_the_next_start_empties_the_log_of_a_killed_process(path: Path, clock: Clock) -> None:
    copy = path.parent.parent / "copy"
    with _opened(path, clock, history=0) as client:
        _put(client, "a", CANARY)
        client.delete(client.key("T", "a"))
        # Leave the files without closing them, as kill -9 does.
        shutil.copytree(path.parent, copy)
    assert _holders(copy / path.name)
    with _opened(copy / path.name, clock, history=0) as client:
        client.get(client.key("T", "a"))
        assert _holders(copy / path.name) == []


def test_with_history_old_states_are_kept(path: Path, clock: Clock) -> None:
    with _opened(path, clock, history=3600) as client:
        _put(client, "a", CANARY)
        client.delete(client.key("T", "a"))
        clock.now += file_store.LOG_SECONDS
        client.get(client.key("T", "a"))
        assert _holders(path)
