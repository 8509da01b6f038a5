"""A model of a disk that loses power: the possible contents of files after a power loss.

Until a file is synced, each sector written to it may or may not have reached the disk, in any
order, and the last sector may have reached it only in part. Until a folder is synced, the creation
or deletion of a file in it may not have reached the disk. Synced data is never lost. Sectors that
were not written keep their content, as SQLite assumes (powersafe overwrite).

As a program, it records a ledger writer on such a disk:

    python -m emulator.tests.support.power_loss_disk FILE RECORDING SYNCHRONOUS
"""

import itertools
import os
import pickle
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datastore_emulator import inprocess
from emulator.tests.support import fault_vfs, ledger_writer

SECTOR = 512
SESSIONS = 3  # Sessions of the recorded writer; closing a file checkpoints and deletes the log.
COMMITS = 12  # Commits per session.


@dataclass
class _File:
    """One file: its synced content, and its writes that are not synced yet."""

    certain: bytearray = field(default_factory=bytearray)
    pending: list[fault_vfs.Operation] = field(default_factory=list)

    def sync(self) -> None:
        for operation in self.pending:
            _apply(self.certain, operation)
        self.pending = []

    def survivor(self, chance: random.Random) -> bytes:
        """Return one possible content of the file after a power loss."""
        found = bytearray(self.certain)
        kept = chance.choice((0.0, 0.1, 0.5, 0.9, 1.0))
        pieces = [each for operation in self.pending for each in _sectors(operation)]
        for piece in pieces:
            if chance.random() < kept:
                _apply(found, piece)
        if pieces and chance.random() < 0.5:  # The last sector, written only in part
            torn = pieces[-1]
            cut = torn.data[: chance.randrange(len(torn.data) + 1)]
            _apply(found, fault_vfs.Operation(torn.kind, torn.name, torn.offset, cut))
        return bytes(found)


class Disk:
    """The files of one folder."""

    def __init__(self) -> None:
        self._certain: dict[str, _File] = {}
        self._pending: list[tuple[str, _File | None]] = []
        self._now: dict[str, _File] = {}

    def apply(self, operation: fault_vfs.Operation) -> None:
        name = operation.name
        match operation.kind:
            case "create":
                self._now[name] = _File()
                self._pending.append((name, self._now[name]))
            case "delete":
                del self._now[name]
                self._pending.append((name, None))
            case "sync":
                self._now[name].sync()
            case "sync folder":
                self._certain = dict(self._now)
                self._pending = []
            case _:
                self._now[name].pending.append(operation)

    def survivors(self, chance: random.Random) -> dict[str, bytes]:
        """Return one possible set of files after a power loss."""
        found = dict(self._certain)
        for name, file in self._pending:
            if chance.random() < 0.5:  # This creation or deletion did not reach the disk
                continue
            found.pop(name, None)
            if file is not None:
                found[name] = file
        return {name: file.survivor(chance) for name, file in found.items()}


def _apply(content: bytearray, operation: fault_vfs.Operation) -> None:
    start = operation.offset
    content.extend(bytes(max(0, start - len(content))))
    if operation.kind == "truncate":
        del content[start:]
    else:
        content[start : start + len(operation.data)] = operation.data


def _sectors(operation: fault_vfs.Operation) -> list[fault_vfs.Operation]:
    if operation.kind == "truncate":
        return [operation]
    start, end = operation.offset, operation.offset + len(operation.data)
    edges = [start, *range((start // SECTOR + 1) * SECTOR, end, SECTOR), end]
    return [
        fault_vfs.Operation(
            "write", operation.name, low, operation.data[low - start : high - start]
        )
        for low, high in itertools.pairwise(edges)
    ]


def lose_power(
    recording: list[fault_vfs.Operation], folder: Path, seed: int, writers: Sequence[str] = ("w",)
) -> str:
    """Cut a recording at some point, rebuild the disk and check it; return the problem, or ""."""
    chance = random.Random(seed)
    cut = chance.randrange(len(recording) + 1)
    disk, acknowledged = Disk(), {name: ledger_writer.Acknowledged() for name in writers}
    for operation in recording[:cut]:
        if operation.kind == "acknowledged":
            acknowledged[operation.name.partition(" ")[0]].add(operation.name)
        else:
            disk.apply(operation)
    folder.mkdir()
    for name, content in disk.survivors(chance).items():
        (folder / name).write_bytes(content)
    try:
        for name, count in ledger_writer.assert_file_matches(folder / "data", acknowledged).items():
            assert count <= acknowledged[name].commits + 1, "a commit that never began is stored"
    except Exception as error:  # noqa: BLE001 - the caller judges any error
        return f"seed {seed}, cut at {cut} of {len(recording)}: {error!r}"
    return ""


def main() -> None:
    path, target, synchronous = sys.argv[1:]
    recording: list[fault_vfs.Operation] = []

    def record(operation: fault_vfs.Operation) -> int:
        recording.append(operation)
        return 0

    def write(file: int, content: Any, offset: int) -> int:
        """Record the notes of commits, which the engine writes without SQLite."""
        recording.append(fault_vfs.Operation("write", "data-turn", offset, content))
        return pwrite(file, content, offset)

    pwrite, os.pwrite = os.pwrite, write
    recording.append(fault_vfs.Operation("create", "data-turn"))
    shim = fault_vfs.Shim(record)
    fault_vfs.use_small_logs(synchronous)
    for _ in range(SESSIONS):
        with inprocess.open_engine(path) as engine:
            worker = ledger_writer.Worker(inprocess.Channel(engine), "w")
            for _ in range(COMMITS):
                line = worker.step()  # Records the operations before the acknowledgment
                recording.append(fault_vfs.Operation("acknowledged", line))
    del shim
    Path(target).write_bytes(pickle.dumps(recording))


if __name__ == "__main__":
    main()
