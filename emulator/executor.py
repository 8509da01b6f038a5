"""Reads: lookups, queries and counts over one snapshot.

Owns the walk over index rows and the bytes of the answers. Results are spliced from stored bytes
and never parsed, except for entities that an index holds more than once: their rows are all met,
and only the first one that qualifies is a result. That is decided from the entity itself and not
from what was met before, so it also holds across batches, which come in separate requests.

What a transaction reads is noted in its ReadSet while it is read.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from emulator import (
    cursors,
    errors,
    indexes,
    keys,
    messages,
    planner,
    queries,
    readsets,
    storage,
    values,
)

MAX_RESULTS = 300  # of one batch, as in production
MAX_BATCH_BYTES = 3_500_000  # clients refuse answers of 4 MiB
MAX_SKIPPED = 1000  # results that one request skips for an offset
MAX_LOOKUP_BYTES = 3_000_000

_FULL, _PROJECTION, _KEY_ONLY = 1, 2, 3
_NOT_FINISHED, _AFTER_LIMIT, _NO_MORE, _AFTER_CURSOR = 1, 2, 3, 4
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
    """The results of one plan in one snapshot, in order."""

    def __init__(
        self, snapshot: storage.Reader, plan: planner.Plan, paging: Paging, *, is_full: bool
    ) -> None:
        self._snapshot = snapshot
        self._plan = plan
        self.paging = paging
        self._is_full = is_full

    def __iter__(self) -> Iterator[Hit]:
        previous = None
        for hit in self._merged():
            if hit.position == previous:
                continue
            previous = hit.position
            if hit.is_multiple and not self._is_first(hit):
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

    def _rows(self, scan: planner.Scan, low: bytes, high: bytes) -> Iterator[storage.Row]:
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
        entity = storage.parse(proto)
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
        self._rows: Iterator[storage.Row] | None = None
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


@dataclass(slots=True)
class _Batch:
    """The results of one request while they are gathered."""

    paging: Paging
    results: list[bytes]
    size: int = 0
    skipped: int = 0
    skipped_position: bytes = b""
    more: int = 0
    last: bytes | None = None

    def skip(self, hit: Hit) -> bool:
        """Skip a result for the offset, unless this request has skipped enough."""
        if self.skipped == MAX_SKIPPED:
            self.more = _NOT_FINISHED
            return False
        self.skipped += 1
        self.last = self.skipped_position = hit.position
        return True

    def add(self, hit: Hit, result: bytes) -> bool:
        """Take a result, unless the batch is full. Tell whether more may be taken."""
        if len(self.results) == MAX_RESULTS or self.size + len(result) > MAX_BATCH_BYTES:
            self.more = _NOT_FINISHED
            return False
        self.results.append(result)
        self.size += len(result)
        self.last = hit.position
        if len(self.results) == self.paging.limit:
            self.more = _AFTER_LIMIT
            return False
        return True


def run_query(
    snapshot: storage.Reader,
    request: messages.RunQueryRequest,
    partition: keys.Partition,
    reads: readsets.ReadSet | None,
) -> bytes:
    """Answer a query with a serialised QueryResultBatch."""
    query = queries.parse(request.query, partition)
    header = cursors.header(request.query, partition.encoded)
    paging = _paging(request.query, header)
    plan = planner.plan(query, snapshot.definitions.by_kind.get(query.kind or "", ()))
    kind = _KEY_ONLY if query.is_keys_only else _PROJECTION if query.projection else _FULL
    walk = Walk(snapshot, plan, paging, is_full=kind == _FULL)
    batch = _gather(walk, _Renderer(walk, plan, header, kind, reads), reads)
    parts = [messages.number_field(1, kind), *batch.results]
    if batch.skipped:
        parts.append(messages.field(3, header + batch.skipped_position))
    end = request.query.start_cursor or header
    parts += (
        messages.field(4, end if batch.last is None else header + batch.last),
        messages.number_field(5, batch.more),
        messages.number_field(6, batch.skipped),
        messages.number_field(7, snapshot.version),
        messages.field(8, messages.timestamp(snapshot.version)),
    )
    return b"".join(parts)


def _paging(query: messages.Query, header: bytes) -> Paging:
    if query.offset < 0:
        raise errors.InvalidArgument("The offset is negative.")
    limit = query.limit.value if query.HasField("limit") else None
    if limit is not None and limit < 0:
        raise errors.InvalidArgument("The limit is negative.")
    return Paging(
        start=cursors.decode(query.start_cursor or header, header),
        end=cursors.decode(query.end_cursor, header) if query.end_cursor else None,
        offset=query.offset,
        limit=limit,
    )


def _gather(walk: Walk, renderer: _Renderer, reads: readsets.ReadSet | None) -> _Batch:
    """Walk until the batch is full, the limit met or the results end."""
    paging = walk.paging
    batch = _Batch(paging, [])
    for hit in walk:
        if batch.skipped < paging.offset:
            may_go_on = batch.skip(hit)
            if may_go_on and reads is not None:
                walk.note_entry(reads, hit)
        else:
            may_go_on = paging.limit != 0 and batch.add(hit, renderer.result(hit))
        if not may_go_on:
            break
    else:
        batch.more = batch.more or (_AFTER_CURSOR if paging.end else _NO_MORE)
    if paging.limit == 0 and batch.more != _NOT_FINISHED:
        batch.more = _AFTER_LIMIT
    if reads is not None:
        is_ended = batch.more in (_AFTER_CURSOR, _NO_MORE)
        walk.note(reads, None if is_ended else batch.last)
    return batch


class _Renderer:
    """Writes results as fields of a QueryResultBatch."""

    def __init__(
        self,
        walk: Walk,
        plan: planner.Plan,
        header: bytes,
        kind: int,
        reads: readsets.ReadSet | None,
    ) -> None:
        self._walk = walk
        self._plan = plan
        self._header = header
        self._reads = reads
        writers = {_FULL: self._full, _KEY_ONLY: self._key_only, _PROJECTION: self._projection}
        self._write = writers[kind]

    def result(self, hit: Hit) -> bytes:
        """Return one result, tag and length included."""
        return messages.field(2, self._write(hit) + messages.field(3, self._header + hit.position))

    def _full(self, hit: Hit) -> bytes:
        proto, meta, version = self._walk.fetch(hit)
        if self._reads is not None:
            key = self._plan.query.partition.encoded + self._plan.path(hit.position)
            self._reads.entities[key] = version
        return messages.field(1, proto) + meta

    def _key_only(self, hit: Hit) -> bytes:
        if self._reads is not None:
            self._walk.note_entry(self._reads, hit)
        return messages.field(1, messages.field(1, self._key(hit)))

    def _projection(self, hit: Hit) -> bytes:
        if self._reads is not None:
            self._walk.note_entry(self._reads, hit)
        entity = messages.Entity()
        entity.key.MergeFromString(self._key(hit))
        projected = self._plan.projected(hit.position)
        for name, encoded in zip(self._plan.query.projection, projected, strict=True):
            entity.properties[name].CopyFrom(values.projected(encoded))
        return messages.field(1, entity.SerializeToString(deterministic=True))

    def _key(self, hit: Hit) -> bytes:
        return keys.key_bytes(self._plan.query.partition, self._plan.path(hit.position))


def count(
    snapshot: storage.Reader,
    query_message: messages.Query,
    partition: keys.Partition,
    reads: readsets.ReadSet | None,
    most: int | None,
) -> int:
    """Count the results of a query, its offset and limit included, up to `most`."""
    query = queries.parse(query_message, partition)
    paging = _paging(query_message, cursors.header(query_message, partition.encoded))
    plan = planner.plan(query, snapshot.definitions.by_kind.get(query.kind or "", ()))
    walk = Walk(snapshot, plan, paging, is_full=False)
    limits = [each for each in (paging.limit, most) if each is not None]
    wanted = paging.offset + min(limits) if limits else None
    met = 0
    last = None
    if wanted == paging.offset:
        return 0
    for hit in walk:
        met += 1
        if reads is not None:
            walk.note_entry(reads, hit)
        if met == wanted:
            last = hit.position
            break
    if reads is not None:
        walk.note(reads, last)
    return max(0, met - paging.offset)


def lookup(
    snapshot: storage.Reader,
    asked: list[messages.Key],
    encoded: list[bytes],
    reads: readsets.ReadSet | None,
) -> bytes:
    """Answer a lookup with the fields of a LookupResponse.

    Keys are answered with the very bytes they were asked with: clients match answers by them.
    """
    parts = []
    size = 0
    for key, name in zip(asked, encoded, strict=True):
        given = key.SerializeToString(deterministic=True)
        if size > MAX_LOOKUP_BYTES:
            parts.append(messages.field(3, given))
            continue
        stored = snapshot.entity(name)
        if reads is not None:
            reads.entities[name] = 0 if stored is None else stored.version
        if stored is None:
            missing = messages.field(1, messages.field(1, given))
            part = messages.field(2, missing + messages.number_field(4, snapshot.version))
        else:
            properties = messages.split_entity(stored.proto)[1]
            entity = messages.field(1, messages.field(1, given) + properties)
            part = messages.field(1, entity + stored.meta)
        size += len(part)
        parts.append(part)
    parts.append(messages.field(7, messages.timestamp(snapshot.version)))
    return b"".join(parts)
