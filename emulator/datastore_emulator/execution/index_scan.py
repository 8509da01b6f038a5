"""Index scans: the ordered results of a plan in one snapshot.

Owns the iteration over index rows (except `merge_join`), the merging of branches, and the choice of
the rows that are results. A scan finds an entity at every row that the entity has in the index, but
only the first qualifying row is a result. The scan decides which row qualifies first from the
entity itself, not from earlier rows. Therefore the rule also holds for batches that come in
separate requests. With distinct_on, only the first result of each group counts. The scan then seeks
the next group, and a cursor from one group's result resumes after the group.

A scan reads only the rows that the caller takes, and sorts nothing; `entries` and `documents` count
the rows and entities read. A scan records its reads in a ReadSet when the caller reports how far it
followed the scan. A scan records whole ranges, so a change between two skipped rows is a conflict
too.
"""

from __future__ import annotations

import heapq
import operator
from collections.abc import Iterator
from typing import NamedTuple

from datastore_emulator.encoding import indexes, keys, values
from datastore_emulator.execution import merge_join
from datastore_emulator.queries import query_cursors, query_plan
from datastore_emulator.storage import read_sets, row_reader

_MAX_JUDGED = 1000  # Maximum number of remembered entities with several rows


class Hit(NamedTuple):
    """One row of a plan: its position, and its entity if the scan has already read it."""

    position: bytes
    entity_id: int
    is_multiple: int
    proto: bytes | None
    meta: bytes | None
    version: int
    branch: int
    suffix: bytes


class Paging(NamedTuple):
    """The requested part of the results."""

    start: query_cursors.Position
    end: query_cursors.Position | None
    offset: int
    limit: int | None


class _Judged(NamedTuple):
    """The position at which one entity is a result, with its key and version."""

    first: bytes
    key: bytes
    version: int


class IndexScan:
    """The ordered results of a plan in one snapshot.

    With `is_every_entry`, an entity is a result at each of its positions, which aggregations
    require.
    """

    def __init__(
        self,
        snapshot: row_reader.RowReader,
        plan: query_plan.QueryPlan,
        paging: Paging,
        *,
        is_full: bool,
        is_every_entry: bool = False,
    ) -> None:
        plan.check(paging.start.after)
        if paging.end is not None:
            plan.check(paging.end.after)
        self._snapshot = snapshot
        self._plan = plan
        self.paging = paging
        self._is_full = is_full
        # A projection query returns every matching entry; other queries return each entity once.
        self._is_every_row = is_every_entry or bool(plan.query.projection)
        self._is_every_entry = is_every_entry
        self._passed_over: dict[bytes, int] = {}
        self._judged: dict[int, _Judged] = {}
        self.entries = 0
        self.documents = 0

    def __iter__(self) -> Iterator[Hit]:
        if self._plan.query.distinct is not None:
            return self._groups()
        return self._results(self._merge_branches(self.paging.start))

    @property
    def is_one_scan(self) -> bool:
        """Return whether the results are exactly the rows of one scan, so SQLite can count them."""
        plan = self._plan
        if len(plan.branches) != 1 or plan.query.distinct is not None or not self._is_every_entry:
            return False
        if plan.trailing:
            return False
        branch = plan.branches[0]
        return branch.single is None and len(branch.scans) == 1 and not branch.spans

    def count(self, most: int | None) -> int:
        """Return the number of results of a plan with one scan, counting at most `most`."""
        branch = self._plan.branches[0]
        scan = branch.scans[0]
        met = 0
        for low, high in self._plan.segments(branch, self.paging.start, self.paging.end):
            left = None if most is None else most - met
            low, high = scan.prefix + low, scan.prefix + high  # noqa: PLW2901
            met += self._snapshot.count(self._name(scan), low, high, left)
        self.entries += met
        return met

    def note(self, reads: read_sets.ReadSet, last: bytes | None) -> None:
        """Record the ranges read up to a position, or to the end if the position is None."""
        end = self.paging.end if last is None else query_cursors.Position(last)
        reads.entities.update(self._passed_over)
        for branch in self._plan.branches:
            segments = self._plan.segments(branch, self.paging.start, end)
            if branch.single is not None:
                # If the key's kind is not the query's kind, there are no segments, and the key
                # cannot be a result.
                if segments:
                    key = self._plan.query.partition.encoded + branch.single
                    reads.entities[key] = self._snapshot.entity_version(key)
                continue
            for low, high in segments:
                for scan in branch.scans:
                    name = self._name(scan)
                    reads.ranges.add((name, scan.prefix + low, scan.prefix + high))

    def note_entry(self, reads: read_sets.ReadSet, hit: Hit) -> None:
        """Record that a result was read from its index entries alone."""
        for scan in self._plan.branches[hit.branch].scans:
            reads.entries.add((self._name(scan), scan.prefix + hit.suffix))

    def fetch(self, hit: Hit) -> tuple[bytes, bytes, int]:
        """Return a result's stored entity, its serialized times (`meta`) and its version."""
        if hit.proto is not None and hit.meta is not None:
            return hit.proto, hit.meta, hit.version
        self.documents += 1
        stored = self._snapshot.entity_by_id(hit.entity_id)
        return stored.proto, stored.meta, stored.version

    def _is_repeated(self, hit: Hit) -> bool:
        """Return whether an earlier row already is the result for this row's entity."""
        return bool(hit.is_multiple) and not self._is_every_row and not self._is_first(hit)

    def _results(self, hits: Iterator[Hit]) -> Iterator[Hit]:
        previous = None
        for hit in hits:
            if hit.position == previous:
                continue
            previous = hit.position
            if self._is_repeated(hit):
                continue
            yield hit

    def _groups(self) -> Iterator[Hit]:
        """Yield the first result of each group."""
        start = self.paging.start
        behind = b""  # The end of the last yielded result's group
        if start.after and not start.is_before:
            behind = self._behind_group(start.after)
            start = query_cursors.Position(behind)
        hits = self._merge_branches(start)
        steps = 0
        while (hit := next(hits, None)) is not None:
            if hit.position < behind:
                steps += 1
                if steps == merge_join.MAX_STEPS:
                    hits = self._merge_branches(query_cursors.Position(behind))
                continue
            if self._is_repeated(hit):
                continue
            yield hit
            behind, steps = self._behind_group(hit.position), 0

    def _behind_group(self, position: bytes) -> bytes:
        group = b"" if position == values.ABOVE else self._plan.group(position)
        return group + values.ABOVE

    def _merge_branches(self, start: query_cursors.Position) -> Iterator[Hit]:
        walks = [self._branch_hits(number, start) for number in range(len(self._plan.branches))]
        if len(walks) == 1:
            return walks[0]
        return heapq.merge(*walks, key=operator.attrgetter("position"))

    def _name(self, scan: query_plan.Scan) -> read_sets.IndexName:
        code = None if scan.index is None else scan.index.code
        return self._plan.query.partition.encoded, code

    def _rows(
        self, scan: query_plan.Scan, low: bytes, high: bytes, *, with_entities: bool
    ) -> Iterator[row_reader.Row]:
        return self._snapshot.scan(
            self._name(scan), scan.prefix + low, scan.prefix + high, with_entities=with_entities
        )

    def _metered_rows(
        self, scan: query_plan.Scan, low: bytes, high: bytes
    ) -> Iterator[row_reader.Row]:
        for row in self._rows(scan, low, high, with_entities=False):
            self.entries += 1
            yield row

    def _branch_hits(self, number: int, start: query_cursors.Position) -> Iterator[Hit]:
        branch = self._plan.branches[number]
        segments = self._plan.segments(branch, start, self.paging.end)
        hits = self._matching_hits(number, segments)
        return self._with_trailing(hits, start) if self._plan.trailing else hits

    def _matching_hits(self, number: int, segments: query_plan.Spans) -> Iterator[Hit]:
        branch = self._plan.branches[number]
        if branch.single is not None:
            return self._entity_hits(number, segments)
        if len(branch.scans) == 1 and not branch.spans:
            return self._scan_hits(number, segments)
        return self._join_hits(number, segments)

    def _with_trailing(self, hits: Iterator[Hit], start: query_cursors.Position) -> Iterator[Hit]:
        """Yield each hit once for each combination of the entity's values after the key."""
        for hit in hits:
            proto, _, version = self.fetch(hit)
            entity = row_reader.parse(proto)
            partition = self._plan.query.partition
            self._passed_over[partition.encoded + keys.encode_path(entity.key)] = version
            indexed = indexes.indexed_values(entity, partition)
            fixed = self._plan.branches[hit.branch].trailing
            listed = [
                indexed.get(name, []) if own is None else own
                for name, own in zip(self._plan.trailing, fixed, strict=True)
            ]
            for position in self._plan.after(hit.position, listed):
                if start.is_behind(position):
                    continue
                if self.paging.end is not None and not self.paging.end.is_behind(position):
                    return
                yield hit._replace(position=position)

    @property
    def _is_every_row_wanted(self) -> bool:
        """Whether reading each entity together with its row is worthwhile."""
        is_plain = len(self._plan.branches) == 1 and self._plan.query.distinct is None
        return is_plain and not self.paging.offset

    def _scan_hits(self, number: int, segments: query_plan.Spans) -> Iterator[Hit]:
        """Yield all rows of one scan."""
        plan = self._plan
        branch = plan.branches[number]
        scan = branch.scans[0]
        cut = len(scan.prefix)
        is_full = self._is_full and self._is_every_row_wanted
        for low, high in segments:
            for entry, entity_id, is_multiple, proto, meta, version in self._rows(
                scan, low, high, with_entities=is_full
            ):
                self.entries += 1
                if is_full:
                    self.documents += 1
                suffix = entry[cut:]
                position = plan.position(branch, suffix) if branch.constants else suffix
                yield Hit(position, entity_id, is_multiple, proto, meta, version, number, suffix)

    def _join_hits(self, number: int, segments: query_plan.Spans) -> Iterator[Hit]:
        """Yield the suffixes that all scans share and whose values lie within their spans."""
        branch = self._plan.branches[number]
        for low, high in segments:
            for suffix, entity_id, is_multiple in merge_join.Join(
                self._metered_rows, branch, low, high
            ):
                position = self._plan.position(branch, suffix)
                yield Hit(position, entity_id, is_multiple, None, None, 0, number, suffix)

    def _entity_hits(self, number: int, segments: query_plan.Spans) -> Iterator[Hit]:
        """Yield the suffixes of the only entity that a branch can match."""
        plan = self._plan
        branch = plan.branches[number]
        path = branch.single or b""
        stored = self._snapshot.entity(plan.query.partition.encoded + path) if segments else None
        if stored is None:
            return
        self.documents += 1
        indexed = indexes.indexed_values(row_reader.parse(stored.proto), plan.query.partition)
        suffixes = sorted(_suffixes(branch, path, indexed))
        for suffix in suffixes:
            if any(low <= suffix < high for low, high in segments):
                position = plan.position(branch, suffix)
                # The entity is marked as multiple, because another branch may also match it.
                yield Hit(
                    position, stored.entity_id, 1, stored.proto, stored.meta, stored.version,
                    number, suffix,
                )  # fmt: skip

    def _is_first(self, hit: Hit) -> bool:
        """Return whether this is the first position at which the query matches the entity."""
        known = self._judged.get(hit.entity_id) or self._judge(hit)
        if hit.position == known.first:
            return True
        self._passed_over[known.key] = known.version
        return False

    def _judge(self, hit: Hit) -> _Judged:
        plan = self._plan
        proto, _, version = self.fetch(hit)
        entity = row_reader.parse(proto)
        indexed = indexes.indexed_values(entity, plan.query.partition)
        path = keys.encode_path(entity.key)
        first = min(
            plan.position(branch, suffix)
            for branch in plan.branches
            if branch.single in (None, path)
            for suffix in _suffixes(branch, path, indexed)
        )
        while len(self._judged) >= _MAX_JUDGED:
            del self._judged[next(iter(self._judged))]
        judged = _Judged(first, plan.query.partition.encoded + path, version)
        self._judged[hit.entity_id] = judged
        return judged


def _suffixes(
    branch: query_plan.MergeJoin, path: bytes, indexed: dict[str, list[bytes]]
) -> set[bytes]:
    """Return the suffixes at which a branch matches an entity."""
    common: set[bytes] | None = None
    for scan in branch.scans:
        if scan.index is None:
            return {path}
        cut = len(scan.prefix)
        suffixes = {
            entry[cut:]
            for entry in indexes.entries(scan.index, path, indexed)
            if entry.startswith(scan.prefix)
        }
        common = suffixes if common is None else common & suffixes
    return {suffix for suffix in common or () if branch.contains(suffix)}
