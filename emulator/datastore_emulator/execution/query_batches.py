"""Batches of query results from one snapshot.

Owns the bytes of the responses and decides when a batch ends. Results are copied as stored bytes
and never parsed. A transaction's ReadSet records each read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import keys, property_masks, values
from datastore_emulator.execution import index_scan, prepared_queries
from datastore_emulator.fault_injection import fault_plans
from datastore_emulator.queries import query_plan
from datastore_emulator.storage import read_sets, row_reader

MAX_RESULTS = 300  # Maximum number of results in a batch, as in Google's service.
MAX_BATCH_BYTES = 3_500_000  # Clients refuse responses of 4 MiB.
MAX_SKIPPED = 1000  # Maximum number of results that one request skips for an offset.

_MOST_PROJECTED = 4096  # Number of cached projections for all engines; about 2 MB
_projected: dict[tuple[object, bytes], bytes] = {}

_FULL, _PROJECTION, _KEY_ONLY = 1, 2, 3
_NOT_FINISHED, _AFTER_LIMIT, _NO_MORE, _AFTER_CURSOR = 1, 2, 3, 4


class QueryAnswer(NamedTuple):
    """A serialized QueryResultBatch and its cost."""

    content: bytes
    plan: query_plan.QueryPlan
    positions: list[bytes]
    skipped: int
    entries: int
    end: bytes
    is_last: bool
    documents: int

    @property
    def result_count(self) -> int:
        """The number of results found, including skipped results."""
        return len(self.positions) + self.skipped

    def keys(self) -> list[protobufs.Key]:
        partition = self.plan.query.partition
        return [
            protobufs.Key.FromString(keys.key_bytes(partition, self.plan.path(position)))
            for position in self.positions
        ]


@dataclass(slots=True)
class _Batch:
    """The results of one request during collection."""

    paging: index_scan.Paging
    most: int
    results: list[bytes]
    positions: list[bytes]
    size: int = 0
    skipped: int = 0
    skipped_position: bytes = b""
    more: int = 0
    last: bytes | None = None

    def skip(self, hit: index_scan.Hit) -> bool:
        """Skip a result for the offset; return False if this request must not skip more."""
        if self.skipped == MAX_SKIPPED:
            self.more = _NOT_FINISHED
            return False
        self.skipped += 1
        self.last = self.skipped_position = hit.position
        return True

    def add(self, hit: index_scan.Hit, result: bytes) -> bool:
        """Add a result unless the batch is full; return whether more can be added."""
        if len(self.results) == self.most or self.size + len(result) > MAX_BATCH_BYTES:
            self.more = _NOT_FINISHED
            return False
        self.results.append(result)
        self.positions.append(hit.position)
        self.size += len(result)
        self.last = hit.position
        if len(self.results) == self.paging.limit:
            self.more = _AFTER_LIMIT
            return False
        return True


def run_query(
    snapshot: row_reader.RowReader,
    request: protobufs.RunQueryRequest,
    partition: keys.Partition,
    reads: read_sets.ReadSet | None,
    mask: property_masks.Mask | None,
) -> QueryAnswer:
    """Answer a query with a batch of results."""
    snapshot, reads, prepared = prepared_queries.prepare(snapshot, request.query, partition, reads)
    query, plan, header, page = prepared
    kind = _KEY_ONLY if query.is_keys_only else _PROJECTION if query.projection else _FULL
    if mask is not None and kind != _FULL:
        raise errors.InvalidArgument("A projection query may not have a property mask.")
    walk = index_scan.IndexScan(snapshot, plan, page, is_full=kind == _FULL)
    batch = _gather(walk, _Renderer(walk, plan, header, kind, reads, mask), reads)
    parts = [protobufs.number_field(1, kind), *batch.results]
    if batch.skipped:
        parts.append(protobufs.field(3, header + batch.skipped_position))
    end = request.query.start_cursor or header
    if batch.last is not None:
        end = header + batch.last
    parts += (
        protobufs.field(4, end),
        protobufs.number_field(5, batch.more),
        protobufs.number_field(6, batch.skipped),
        protobufs.number_field(7, snapshot.version),
        protobufs.field(8, protobufs.timestamp(snapshot.version)),
    )
    return QueryAnswer(
        content=b"".join(parts),
        plan=plan,
        positions=batch.positions,
        skipped=batch.skipped,
        entries=walk.entries,
        end=end,
        is_last=batch.more != _NOT_FINISHED,
        documents=walk.documents if kind == _FULL else 0,
    )


def _gather(
    walk: index_scan.IndexScan, renderer: _Renderer, reads: read_sets.ReadSet | None
) -> _Batch:
    """Scan until the batch is full, the limit is reached or the results end."""
    paging = walk.paging
    batch = _Batch(paging, fault_plans.batch_size(MAX_RESULTS), [], [])
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
    """Serializes results as fields of a QueryResultBatch."""

    def __init__(
        self,
        walk: index_scan.IndexScan,
        plan: query_plan.QueryPlan,
        header: bytes,
        kind: int,
        reads: read_sets.ReadSet | None,
        mask: property_masks.Mask | None,
    ) -> None:
        self._mask = mask
        self._walk = walk
        self._plan = plan
        self._header = header
        self._reads = reads
        writers = {_FULL: self._full, _KEY_ONLY: self._key_only, _PROJECTION: self._projection}
        self._write = writers[kind]
        # A serialized projection depends only on these values and on its position.
        self._form = (
            plan.query.partition,
            plan.query.projection,
            plan.columns,
            plan.is_key_descending,
        )

    def result(self, hit: index_scan.Hit) -> bytes:
        """Serialize one result, with its tag and length."""
        return protobufs.field(
            2, self._write(hit) + protobufs.field(3, self._header + hit.position)
        )

    def _full(self, hit: index_scan.Hit) -> bytes:
        proto, meta, version = self._walk.fetch(hit)
        if self._reads is not None:
            key = self._plan.query.partition.encoded + self._plan.path(hit.position)
            self._reads.entities[key] = version
        if self._mask is not None:
            proto = property_masks.narrow_bytes(proto, self._mask)
        return protobufs.field(1, proto) + meta

    def _key_only(self, hit: index_scan.Hit) -> bytes:
        if self._reads is not None:
            self._walk.note_entry(self._reads, hit)
        return protobufs.field(1, protobufs.field(1, self._key(hit)))

    def _projection(self, hit: index_scan.Hit) -> bytes:
        if self._reads is not None:
            self._walk.note_entry(self._reads, hit)
        # Queries that poll for changes mostly return the same results as before.
        asked = (self._form, hit.position)
        known = _projected.get(asked)
        if known is None:
            known = self._write_projection(hit)
            if len(_projected) >= _MOST_PROJECTED:
                _projected.clear()
            _projected[asked] = known
        return known

    def _write_projection(self, hit: index_scan.Hit) -> bytes:
        entity = protobufs.Entity()
        entity.key.MergeFromString(self._key(hit))
        projected = self._plan.projected_values(hit.position)
        for name, encoded in zip(self._plan.query.projection, projected, strict=True):
            entity.properties[name].CopyFrom(values.project(encoded))
        return protobufs.field(1, entity.SerializeToString(deterministic=True))

    def _key(self, hit: index_scan.Hit) -> bytes:
        return keys.key_bytes(self._plan.query.partition, self._plan.path(hit.position))
