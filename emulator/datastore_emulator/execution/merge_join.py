"""Merge joins: suffixes that all scans of a branch share and whose values lie within its spans.

Owns the leapfrog algorithm: the scans take turns, and each scan seeks the furthest suffix that any
scan has reached. The scans therefore skip everything that the spans exclude. A scan that is close
to the furthest suffix steps forward row by row, because a seek costs as much as a few steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from datastore_emulator.queries import query_plan
from datastore_emulator.storage import row_reader

MAX_STEPS = 4  # Maximum number of steps before a seek

# A function that yields the rows of a scan with low <= suffix < high.
Rows = Callable[[query_plan.Scan, bytes, bytes], Iterator[row_reader.Row]]


class Join:
    """The ordered suffixes of a branch in [low, high), each with its entity's id and flag."""

    def __init__(
        self, rows_of: Rows, branch: query_plan.MergeJoin, low: bytes, high: bytes
    ) -> None:
        self._branch = branch
        self._low = low
        self._seekers = [_Seeker(rows_of, scan, high) for scan in branch.scans]

    def __iter__(self) -> Iterator[tuple[bytes, int, int]]:
        seekers = self._seekers
        target = self._low
        is_multiple = 0
        agreed = 0
        turn = 0
        while True:
            row = seekers[turn].seek(target)
            if row is None:
                return
            suffix, entity_id, multiple = row
            if suffix == target and agreed:
                agreed += 1
                is_multiple |= multiple
            else:
                target, agreed, is_multiple = self._branch.next_suffix(suffix), 1, multiple
                if target != suffix:
                    agreed = 0
                    continue
            if agreed == len(seekers):
                yield target, entity_id, is_multiple
                target, agreed = target + b"\x00", 0
            turn = (turn + 1) % len(seekers)


class _Seeker:
    """One scan of a join, which finds its first suffix at or after a given suffix."""

    def __init__(self, rows_of: Rows, scan: query_plan.Scan, high: bytes) -> None:
        self._rows_of = rows_of
        self._scan = scan
        self._high = high
        self._rows: Iterator[row_reader.Row] | None = None
        self._row: tuple[bytes, int, int] | None = None

    def seek(self, target: bytes) -> tuple[bytes, int, int] | None:
        steps = 0
        while self._row is None or self._row[0] < target:
            if self._rows is None or steps == MAX_STEPS:
                self._rows = self._rows_of(self._scan, target, self._high)
                steps = 0
            row = next(self._rows, None)
            if row is None:
                return None
            self._row = (row[0][len(self._scan.prefix) :], row[1], row[2])
            steps += 1
        return self._row
