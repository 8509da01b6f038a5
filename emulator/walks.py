"""Walks: the results of one plan in one snapshot, in order.

Owns the way over index rows: merge joins within a branch, the merge of branches, and which rows
are results. An entity that an index holds more than once is met at all its rows, and only the first
one that qualifies is a result. That is decided from the entity itself and not from what was met
before, so it also holds across batches, which come in separate requests.

What must stay true: a walk is lazy and costs the rows that are taken from it; nothing is sorted,
and no entity is looked at unless its rows are several. Positions strictly rise. A walk notes in a
ReadSet what it has read when it is told how far it was followed.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from emulator import cursors, indexes, keys, planner, readsets, rows

_MAX_STEPS = 4  # a merge join steps so many rows before it seeks


class Hit(NamedTuple):
    """One row of a plan: its position, and the entity behind it if the scan brought it along."""

    position: bytes
    entity_id: int
    is_multiple: int
    proto: bytes | None
    meta: bytes | None
    version: int
    branch: int
    suffix: bytes


@dataclass(frozen=True, slots=True)
class Paging:
    """Which part of the results is wanted."""

    start: cursors.Position
    end: cursors.Position | None
    offset: int
    limit: int | None


class Walk:
    """The results of one plan in one snapshot, in order.

    With `is_every_entry` an entity is a result at all its positions, as aggregations want it.
    `entries` grows by one with every index entry that is read.
    """

    def __init__(
        self,
        snapshot: rows.Reader,
        plan: planner.Plan,
        paging: Paging,
        *,
        is_full: bool,
        is_every_entry: bool = False,
    ) -> None:
        self._snapshot = snapshot
        self._plan = plan
        self.paging = paging
        self._is_full = is_full
        self._is_every_entry = is_every_entry
        self.entries = 0

    def __iter__(self) -> Iterator[Hit]:
        previous = None
        for hit in self._merged():
            if hit.position == previous:
                continue
            previous = hit.position
            if hit.is_multiple and not self._is_every_entry and not self._is_first(hit):
                continue
            yield hit

    def note(self, reads: readsets.ReadSet, last: bytes | None) -> None:
        """Note the ranges walked up to a position; None: to the end."""
        end = self.paging.end if last is None else cursors.Position(last)
        for branch in self._plan.branches:
            low, high = planner.bounds(self._plan, branch, self.paging.start, end)
            for scan in branch.scans:
                if low < high:
                    name = self._name(scan)
                    reads.ranges.add((name, scan.prefix + low, scan.prefix + high))

    def note_entry(self, reads: readsets.ReadSet, hit: Hit) -> None:
        """Note that a result was read from its index entries alone."""
        for scan in self._plan.branches[hit.branch].scans:
            reads.entries.add((self._name(scan), scan.prefix + hit.suffix))

    def _merged(self) -> Iterator[Hit]:
        walks = [self._branch(number) for number in range(len(self._plan.branches))]
        return walks[0] if len(walks) == 1 else heapq.merge(*walks)

    def _name(self, scan: planner.Scan) -> readsets.IndexName:
        code = None if scan.index is None else scan.index.code
        return self._plan.query.partition.encoded, code

    def _rows(self, scan: planner.Scan, low: bytes, high: bytes) -> Iterator[rows.Row]:
        single = len(self._plan.branches) == 1 and len(self._plan.branches[0].scans) == 1
        return self._snapshot.scan(
            self._name(scan),
            scan.prefix + low,
            scan.prefix + high,
            with_entities=single and self._is_full,
        )

    def _branch(self, number: int) -> Iterator[Hit]:
        plan = self._plan
        branch = plan.branches[number]
        low, high = planner.bounds(plan, branch, self.paging.start, self.paging.end)
        if low >= high:
            return
        if len(branch.scans) == 1:
            scan = branch.scans[0]
            cut = len(scan.prefix)
            for entry, entity_id, is_multiple, proto, meta, version in self._rows(scan, low, high):
                self.entries += 1
                suffix = entry[cut:]
                position = plan.position(branch, suffix)
                yield Hit(position, entity_id, is_multiple, proto, meta, version, number, suffix)
            return
        for suffix, entity_id, is_multiple in self._joined(branch, low, high):
            position = plan.position(branch, suffix)
            yield Hit(position, entity_id, is_multiple, None, None, 0, number, suffix)

    def _joined(
        self, branch: planner.Branch, low: bytes, high: bytes
    ) -> Iterator[tuple[bytes, int, int]]:
        """Walk several scans to the suffixes that all of them have."""
        seekers = [_Seeker(self, scan, high) for scan in branch.scans]
        target = low
        is_multiple = 0
        agreed = 0
        turn = 0
        while True:
            found = seekers[turn].seek(target)
            if found is None:
                return
            suffix, entity_id, multiple = found
            if suffix == target and agreed:
                agreed += 1
                is_multiple |= multiple
            else:
                target, agreed, is_multiple = suffix, 1, multiple
            if agreed == len(seekers):
                yield target, entity_id, is_multiple
                target, agreed = target + b"\x00", 0
            turn = (turn + 1) % len(seekers)

    def _is_first(self, hit: Hit) -> bool:
        """Tell whether this is the first position at which the query meets the entity.

        A projection meets it once for each combination of projected values.
        """
        proto = hit.proto or self._snapshot.entity_by_id(hit.entity_id).proto
        entity = rows.parse(proto)
        plan = self._plan
        indexed = indexes.indexed_values(entity, plan.query.partition)
        path = keys.encode_path(entity.key)
        group = plan.projected(hit.position)
        positions = [
            position
            for branch in plan.branches
            for suffix in _suffixes(branch, path, indexed)
            if plan.projected(position := plan.position(branch, suffix)) == group
        ]
        return hit.position == min(positions)

    def fetch(self, hit: Hit) -> tuple[bytes, bytes, int]:
        """Return the stored entity of a result, its meta and its version."""
        if hit.proto is not None and hit.meta is not None:
            return hit.proto, hit.meta, hit.version
        stored = self._snapshot.entity_by_id(hit.entity_id)
        return stored.proto, stored.meta, stored.version


class _Seeker:
    """One scan of a merge join: finds the first suffix at or past another one."""

    def __init__(self, walk: Walk, scan: planner.Scan, high: bytes) -> None:
        self._walk = walk
        self._scan = scan
        self._high = high
        self._rows: Iterator[rows.Row] | None = None
        self._row: tuple[bytes, int, int] | None = None

    def seek(self, target: bytes) -> tuple[bytes, int, int] | None:
        steps = 0
        while self._row is None or self._row[0] < target:
            if self._rows is None or steps == _MAX_STEPS:
                self._rows = self._walk._rows(self._scan, target, self._high)  # noqa: SLF001
                steps = 0
            row = next(self._rows, None)
            if row is None:
                return None
            self._walk.entries += 1
            self._row = (row[0][len(self._scan.prefix) :], row[1], row[2])
            steps += 1
        return self._row


def _suffixes(branch: planner.Branch, path: bytes, indexed: dict[str, list[bytes]]) -> set[bytes]:
    """Return the suffixes at which a branch meets an entity."""
    common: set[bytes] | None = None
    for scan in branch.scans:
        if scan.index is None:
            return {path}
        cut = len(scan.prefix)
        found = {
            entry[cut:]
            for entry in indexes.entries(scan.index, path, indexed)
            if entry.startswith(scan.prefix) and branch.low <= entry[cut:] < branch.high
        }
        common = found if common is None else common & found
    return common or set()
