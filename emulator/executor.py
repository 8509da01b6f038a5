"""Reads: lookups and queries over one snapshot.

Owns the bytes of the answers and where a batch ends. Results are spliced from stored bytes and
never parsed.

What a transaction reads is noted in its ReadSet while it is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from emulator import (
    cursors,
    errors,
    faults,
    keys,
    masks,
    messages,
    metadata,
    planner,
    plans,
    queries,
    readsets,
    rows,
    values,
    variants,
    walks,
)

MAX_RESULTS = 300  # of one batch, as in production
MAX_BATCH_BYTES = 3_500_000  # clients refuse answers of 4 MiB
MAX_SKIPPED = 1000  # results that one request skips for an offset
MAX_LOOKUP_BYTES = 3_000_000

_MOST_KEPT = 256  # plans of one generation of indexes
_LONGEST_KEPT = 4096  # bytes of a message whose plan is kept

_MOST_PROJECTED = 4096  # projections that are kept as they were written: some 2 MB of all engines
_projected: dict[tuple[object, bytes], bytes] = {}

_FULL, _PROJECTION, _KEY_ONLY = 1, 2, 3
_NOT_FINISHED, _AFTER_LIMIT, _NO_MORE, _AFTER_CURSOR = 1, 2, 3, 4


# Whose, and a message as it is sent.
_Asked = tuple[keys.Partition, bytes]


class _Prepared(NamedTuple):
    """A query that was checked and planned. It holds for one generation of indexes."""

    query: queries.Query
    plan: plans.Plan
    header: bytes
    paging: walks.Paging


class Answer(NamedTuple):
    """A serialised QueryResultBatch, and what it took."""

    content: bytes
    plan: plans.Plan
    positions: list[bytes]
    skipped: int
    entries: int
    end: bytes
    is_last: bool
    documents: int

    @property
    def met(self) -> int:
        """How many results were met, skipped ones included."""
        return len(self.positions) + self.skipped

    def keys(self) -> list[messages.Key]:
        """Return the keys of the results."""
        partition = self.plan.query.partition
        return [
            messages.Key.FromString(keys.key_bytes(partition, self.plan.path(position)))
            for position in self.positions
        ]


@dataclass(slots=True)
class _Batch:
    """The results of one request while they are gathered."""

    paging: walks.Paging
    most: int
    results: list[bytes]
    positions: list[bytes]
    size: int = 0
    skipped: int = 0
    skipped_position: bytes = b""
    more: int = 0
    last: bytes | None = None

    def skip(self, hit: walks.Hit) -> bool:
        """Skip a result for the offset, unless this request has skipped enough."""
        if self.skipped == MAX_SKIPPED:
            self.more = _NOT_FINISHED
            return False
        self.skipped += 1
        self.last = self.skipped_position = hit.position
        return True

    def add(self, hit: walks.Hit, result: bytes) -> bool:
        """Take a result, unless the batch is full. Tell whether more may be taken."""
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
    snapshot: rows.Reader,
    request: messages.RunQueryRequest,
    partition: keys.Partition,
    reads: readsets.ReadSet | None,
    mask: masks.Mask | None,
) -> Answer:
    """Answer a query with a batch of results."""
    snapshot, reads, prepared = _prepared(snapshot, request.query, partition, reads)
    query, plan, header, page = prepared
    kind = _KEY_ONLY if query.is_keys_only else _PROJECTION if query.projection else _FULL
    if mask is not None and kind != _FULL:
        raise errors.InvalidArgument("A projection query may not have a property mask.")
    walk = walks.Walk(snapshot, plan, page, is_full=kind == _FULL)
    batch = _gather(walk, _Renderer(walk, plan, header, kind, reads, mask), reads)
    parts = [messages.number_field(1, kind), *batch.results]
    if batch.skipped:
        parts.append(messages.field(3, header + batch.skipped_position))
    end = request.query.start_cursor or header
    if batch.last is not None:
        end = header + batch.last
    parts += (
        messages.field(4, end),
        messages.number_field(5, batch.more),
        messages.number_field(6, batch.skipped),
        messages.number_field(7, snapshot.version),
        messages.field(8, messages.timestamp(snapshot.version)),
    )
    return Answer(
        content=b"".join(parts),
        plan=plan,
        positions=batch.positions,
        skipped=batch.skipped,
        entries=walk.entries,
        end=end,
        is_last=batch.more != _NOT_FINISHED,
        documents=walk.documents if kind == _FULL else 0,
    )


def explain(
    snapshot: rows.Reader, message: messages.Query, partition: keys.Partition
) -> plans.Plan:
    """Return how a query would be served, without running it."""
    query = queries.parse(message, partition)
    snapshot, query, _ = metadata.through(snapshot, query, None)
    paging(message, cursors.header(message, partition.encoded))
    return _plan(snapshot, query)


def _prepared(
    snapshot: rows.Reader,
    message: messages.Query,
    partition: keys.Partition,
    reads: readsets.ReadSet | None,
) -> tuple[rows.Reader, readsets.ReadSet | None, _Prepared]:
    """Check and plan a query, or find how that came out before: clients ask the same for ever."""
    known = snapshot.definitions.plans
    asked = partition, message.SerializeToString(deterministic=True)
    found: _Prepared | None = known.get(asked)
    if found is not None:
        return snapshot, reads, found
    variant = variants.read(message, partition)
    if variant is not None:
        found = _like_another(snapshot, message, partition, variant)
    if found is None:
        parsed = queries.parse(message, partition)
        source, query, reads = metadata.through(snapshot, parsed, reads)
        plan = _plan(source, query)
        header = cursors.header(message, partition.encoded)
        found = _Prepared(plan.query, plan, header, paging(message, header))
        if source is not snapshot:
            return source, reads, found
        if variant is not None:
            _keep(snapshot.definitions.shapes, (partition, variant.shape), found)
    _keep(known, asked, found)
    return snapshot, reads, found


def _like_another(
    snapshot: rows.Reader,
    message: messages.Query,
    partition: keys.Partition,
    variant: variants.Variant,
) -> _Prepared | None:
    """What a query comes to if one that differs in values was planned before."""
    other: _Prepared | None = snapshot.definitions.shapes.get((partition, variant.shape))
    if other is None:
        return None
    plan = variants.like(other.plan, variant.equals)
    header = cursors.header(message, partition.encoded)
    # Cursors name their query, values included; what else is said of paging is the shape's.
    has_cursors = message.start_cursor or message.end_cursor
    page = paging(message, header) if has_cursors else other.paging
    return _Prepared(plan.query, plan, header, page)


def _keep(known: dict[_Asked, Any], asked: _Asked, found: object) -> None:
    if len(asked[1]) <= _LONGEST_KEPT:
        if len(known) >= _MOST_KEPT:
            known.clear()
        known[asked] = found


def _plan(snapshot: rows.Reader, query: queries.Query) -> plans.Plan:
    return planner.plan(query, snapshot.definitions.by_kind.get(query.kind or "", ()))


def paging(query: messages.Query, header: bytes) -> walks.Paging:
    """Return the part of the results that a query message asks for."""
    if query.offset < 0:
        raise errors.InvalidArgument("The offset is negative.")
    limit = query.limit.value if query.HasField("limit") else None
    if limit is not None and limit < 0:
        raise errors.InvalidArgument("The limit is negative.")
    return walks.Paging(
        start=cursors.decode(query.start_cursor or header, header),
        end=cursors.decode(query.end_cursor, header) if query.end_cursor else None,
        offset=query.offset,
        limit=limit,
    )


def _gather(walk: walks.Walk, renderer: _Renderer, reads: readsets.ReadSet | None) -> _Batch:
    """Walk until the batch is full, the limit met or the results end."""
    paging = walk.paging
    batch = _Batch(paging, faults.batch_size(MAX_RESULTS), [], [])
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
        walk: walks.Walk,
        plan: plans.Plan,
        header: bytes,
        kind: int,
        reads: readsets.ReadSet | None,
        mask: masks.Mask | None,
    ) -> None:
        self._mask = mask
        self._walk = walk
        self._plan = plan
        self._header = header
        self._reads = reads
        writers = {_FULL: self._full, _KEY_ONLY: self._key_only, _PROJECTION: self._projection}
        self._write = writers[kind]
        # What a projection is written of, beside its position.
        self._form = (
            plan.query.partition,
            plan.query.projection,
            plan.columns,
            plan.is_key_descending,
        )

    def result(self, hit: walks.Hit) -> bytes:
        """Return one result, tag and length included."""
        return messages.field(2, self._write(hit) + messages.field(3, self._header + hit.position))

    def _full(self, hit: walks.Hit) -> bytes:
        proto, meta, version = self._walk.fetch(hit)
        if self._reads is not None:
            key = self._plan.query.partition.encoded + self._plan.path(hit.position)
            self._reads.entities[key] = version
        if self._mask is not None:
            proto = masks.narrowed_bytes(proto, self._mask)
        return messages.field(1, proto) + meta

    def _key_only(self, hit: walks.Hit) -> bytes:
        if self._reads is not None:
            self._walk.note_entry(self._reads, hit)
        return messages.field(1, messages.field(1, self._key(hit)))

    def _projection(self, hit: walks.Hit) -> bytes:
        if self._reads is not None:
            self._walk.note_entry(self._reads, hit)
        # Whoever asks whether anything has changed is mostly answered what he was answered before.
        asked = (self._form, hit.position)
        known = _projected.get(asked)
        if known is None:
            known = self._write_projection(hit)
            if len(_projected) >= _MOST_PROJECTED:
                _projected.clear()
            _projected[asked] = known
        return known

    def _write_projection(self, hit: walks.Hit) -> bytes:
        entity = messages.Entity()
        entity.key.MergeFromString(self._key(hit))
        projected = self._plan.projected(hit.position)
        for name, encoded in zip(self._plan.query.projection, projected, strict=True):
            entity.properties[name].CopyFrom(values.projected(encoded))
        return messages.field(1, entity.SerializeToString(deterministic=True))

    def _key(self, hit: walks.Hit) -> bytes:
        return keys.key_bytes(self._plan.query.partition, self._plan.path(hit.position))


def lookup(
    snapshot: rows.Reader | rows.Glance,
    asked: list[bytes],
    encoded: list[bytes],
    reads: readsets.ReadSet | None,
    mask: masks.Mask | None,
) -> tuple[bytes, int]:
    """Answer a lookup with the fields of a LookupResponse, and how many keys they answer.

    Keys are answered with the very bytes they were asked with: clients match answers by them. The
    last keys may be deferred.
    """
    parts: list[bytes | memoryview] = []
    size = 0
    waiting = sum(map(len, asked))
    if waiting > MAX_LOOKUP_BYTES:
        raise errors.InvalidArgument(
            f"The keys of a lookup may have at most {MAX_LOOKUP_BYTES} bytes: they are answered."
        )
    answered = 0
    for given, name in zip(asked, encoded, strict=True):
        if size + waiting > MAX_LOOKUP_BYTES:
            parts.append(messages.field(3, given))
            continue
        answered += 1
        waiting -= len(given)
        stored = snapshot.entity(name)
        if reads is not None:
            reads.entities[name] = 0 if stored is None else stored.version
        if stored is None:
            missing = messages.field(1, messages.field(1, given))
            part = messages.field(2, missing + messages.number_field(4, snapshot.version))
            parts.append(part)
            size += len(part)
        else:
            proto = stored.proto if mask is None else masks.narrowed_bytes(stored.proto, mask)
            size += _splice(parts, given, proto, stored.meta)
    parts.append(messages.field(7, messages.timestamp(snapshot.version)))
    return b"".join(parts), answered


def _splice(parts: list[bytes | memoryview], key: bytes, proto: bytes, meta: bytes) -> int:
    """Add an EntityResult to the parts of an answer; returns its size, tag and length included.

    What is large, the properties, is copied only when the parts are joined.
    """
    named = messages.field(1, key)
    properties = memoryview(proto)[messages.end_of_key(proto) :]
    entity = messages.opening(1, len(named) + len(properties)) + named
    size = len(entity) + len(properties) + len(meta)
    opening = messages.opening(1, size) + entity
    parts += (opening, properties, meta)
    return len(opening) + len(properties) + len(meta)
