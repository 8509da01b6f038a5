"""Files with flipped bytes or a missing end: the engine answers correctly or refuses.

SQLite has no page checksums, so it does not notice a flipped bit in a value. If a response is
wrong, `inspection` must report the damage, because it compares every entity with its checksum and
every index row with its entity.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.message import DecodeError
from hypothesis import example, given, settings
from hypothesis import strategies as st

from datastore_emulator import errors, inprocess
from datastore_emulator.storage import inspection
from emulator.tests.support import ledger_writer

pytestmark = pytest.mark.slow

COMMITS = 40
ROUNDS = int(os.environ.get("EMULATOR_CRASH_ROUNDS", "6"))
CLEAR = {"FAILED_PRECONDITION", "UNAVAILABLE", "RESOURCE_EXHAUSTED"}


class Sound:
    """Two intact copies of a file with all kinds of data: one is closed, and one has a full log."""

    def __init__(self, closed: bytes, data: bytes, log: bytes) -> None:
        self.closed = closed
        self.data = data
        self.log = log


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Sound:
    path = tmp_path_factory.mktemp("sound") / "data"
    with ledger_writer.open_engine(path) as engine:
        worker = ledger_writer.worker(engine, "w")
        for _ in range(COMMITS // 2):
            worker.commit()
    with ledger_writer.open_engine(path) as engine:
        worker = ledger_writer.worker(engine, "w")
        for _ in range(COMMITS // 2):
            worker.commit()
        data, log = path.read_bytes(), path.with_name("data-wal").read_bytes()
    return Sound(path.read_bytes(), data, log)


def ask(path: Path) -> dict[str, Any]:
    """Open a file and request all its data; return the responses, or the statuses of refusals."""
    try:
        engine = ledger_writer.open_engine(path)
    except errors.DatastoreError as refusal:
        return {"opening": refusal.status}
    with engine:
        worker = ledger_writer.worker(engine, "w")
        questions: dict[str, Any] = {
            "Counter": worker.count,
            "Left by n": lambda: list(
                map(ledger_writer.number_of, worker.found("Left", order="n"))
            ),
        } | {
            kind: lambda kind=kind: sorted(map(ledger_writer.number_of, worker.found(kind)))
            for kind in ("Left", "Right", "Slot", "Log")
        }
        return {name: answer(question) for name, question in questions.items()}


def answer(question: Any) -> Any:
    try:
        return question()
    except grpc.RpcError as error:
        return error.code().name
    except DecodeError:
        return "bytes that are not a message"


def truth(worker_commits: int) -> dict[str, Any]:
    worker = ledger_writer.Worker(None, "w")  # type: ignore[arg-type]
    expected = worker.expected(worker_commits)
    return {"Counter": worker_commits, "Left by n": expected["Left"][::-1]} | expected


def is_clear(found: dict[str, Any]) -> bool:
    return {each for each in found.values() if isinstance(each, str)} <= CLEAR


def write(path: Path) -> dict[str, Any]:
    """Commit and allocate ids; return the statuses."""
    try:
        engine = inprocess.open_engine(path)
    except errors.DatastoreError as refusal:
        return {"opening": refusal.status}
    with engine:
        worker = ledger_writer.worker(engine, "w")
        calls = {"commit": worker.commit, "allocate": lambda: worker.allocate(1)}
        return {name: answer(call) for name, call in calls.items()}


def place(folder: Path, data: bytes, log: bytes = b"") -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "data").write_bytes(data)
    if log:
        (folder / "data-wal").write_bytes(log)
    return folder / "data"


FLIPS = st.lists(
    st.tuples(st.floats(0, 1, exclude_max=True), st.integers(1, 255)), min_size=1, max_size=8
)


def flip(content: bytes, flips: list[tuple[float, int]]) -> bytes:
    made = bytearray(content)
    for where, mask in flips:
        made[int(where * len(made))] ^= mask
    return bytes(made)


@settings(max_examples=10 * ROUNDS)
@given(flips=FLIPS)
def test_flipped_bytes_are_refused_or_harmless_or_found_by_inspection(
    sound: Sound, tmp_path: Path, flips: list[tuple[float, int]]
) -> None:
    path = place(tmp_path / "flipped", flip(sound.closed, flips))
    found = ask(path)
    if found == truth(COMMITS) or (is_clear(found) and "opening" in found):
        return
    assert is_clear(found) or is_known(path), found
    wrong = {name for name, value in found.items() if value not in (truth(COMMITS)[name], *CLEAR)}
    assert not wrong or is_known(path), found
    assert is_clear(write(path)) or is_known(path)


def is_known(path: Path) -> bool:
    return inspection.check(path).wrong > 0


@settings(max_examples=5 * ROUNDS)
@given(kept=st.floats(0, 1, exclude_max=True))
@example(kept=0.984375)  # Half of the last page
def test_a_truncated_file_is_refused_or_read_correctly(
    sound: Sound, tmp_path: Path, kept: float
) -> None:
    # An empty file counts as new, and SQLite treats a one-byte file the same way.
    path = place(tmp_path / "cut", sound.closed[: 2 + int(kept * (len(sound.closed) - 2))])
    found, right = ask(path), truth(COMMITS)
    assert all(value in (right.get(name), *CLEAR) for name, value in found.items()), found
    assert is_clear(write(path))


@settings(max_examples=5 * ROUNDS)
@given(flips=FLIPS, kept=st.floats(0, 1))
def test_a_damaged_log_ends_at_a_commit(
    sound: Sound, tmp_path: Path, flips: list[tuple[float, int]], kept: float
) -> None:
    log = flip(sound.log, flips)[: int(kept * len(sound.log))]
    path = place(tmp_path / "log", sound.data, log)
    found = ask(path)
    assert found == truth(found["Counter"])
    assert COMMITS // 2 <= found["Counter"] <= COMMITS
    assert is_clear(write(path))
    assert not is_known(path)
