"""Acknowledged commits survive a power loss at any moment, if the disk honors fsync.

The losses are simulated: the tests record a real writer's file operations below SQLite and replay
them on a model of a disk (`power_loss_disk`). EMULATOR_CRASH_ROUNDS sets the number of rounds, with
fifteen losses each.
"""

import os
import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emulator.tests.support import fault_vfs, power_loss_disk
from tests.support import programs

pytestmark = pytest.mark.slow

LOSSES = 15 * int(os.environ.get("EMULATOR_CRASH_ROUNDS", "6"))


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Return a function that records a writer with a given `synchronous` setting.

    None selects the engine's own setting.
    """
    fault_vfs.require()

    def run(synchronous: str = "") -> list[fault_vfs.Operation]:
        folder = tmp_path_factory.mktemp("recorded")
        program = [sys.executable, "-m", "emulator.tests.support.power_loss_disk"]
        subprocess.run(
            [*program, folder / "data", folder / "recording", synchronous],
            cwd=programs.ROOT, check=True, timeout=programs.PATIENCE,
        )  # fmt: skip
        return pickle.loads((folder / "recording").read_bytes())  # noqa: S301 - our own

    return run


def test_a_power_loss_at_any_moment_loses_no_acknowledged_commit(
    record: Callable[..., Any], tmp_path: Path
) -> None:
    recording = record()
    kinds = {operation.kind for operation in recording}
    assert kinds == {
        "create", "write", "truncate", "sync", "sync folder", "delete", "acknowledged",
    }  # fmt: skip
    assert any(each.kind == "write" and each.name == "data" for each in recording[-500:])
    faults = [
        power_loss_disk.lose_power(recording, tmp_path / str(seed), seed) for seed in range(LOSSES)
    ]
    assert [fault for fault in faults if fault] == []


@pytest.mark.parametrize("synchronous", ["NORMAL", "OFF"])
def test_with_fewer_syncs_the_model_would_lose_commits(
    record: Callable[..., Any], tmp_path: Path, synchronous: str
) -> None:
    recording = record(synchronous)
    for seed in range(1_000):
        if fault := power_loss_disk.lose_power(recording, tmp_path / str(seed), seed):
            assert "lost" in fault or synchronous == "OFF"
            return
    pytest.fail("no power loss shows what is missing")


def test_the_model_disk_keeps_synced_data_and_may_keep_the_rest() -> None:
    def write(offset: int, data: bytes) -> fault_vfs.Operation:
        return fault_vfs.Operation("write", "f", offset, data)

    disk = power_loss_disk.Disk()
    for operation in (
        fault_vfs.Operation("create", "f"),
        write(0, b"a" * 1024),
        fault_vfs.Operation("sync", "f"),
        fault_vfs.Operation("sync folder"),
        write(256, b"b" * 512),
        fault_vfs.Operation("create", "g"),
    ):
        disk.apply(operation)
    chance = random.Random(1)
    found = [disk.survivors(chance) for _ in range(500)]
    assert {"g" in each for each in found} == {True, False}
    contents = {each["f"] for each in found}
    assert {len(content) for content in contents} == {1024}
    assert {content[:256] + content[768:] for content in contents} == {b"a" * 512}
    whole = {(content[256:512], content[512:768]) for content in contents}
    for first in (b"a" * 256, b"b" * 256):
        for second in (b"a" * 256, b"b" * 256):
            assert (first, second) in whole
    assert len(contents) > 4, "no sector was torn"
