"""History: reading the file's state at an earlier moment.

Owns the range of readable moments, and the reconstruction of the past. There are two sources:
current rows that already existed at the moment, and `history` rows of entities that were changed or
deleted later. The rows in `history` have no stored index entries, so these are computed from the
entities. Therefore a query of the past can use every index that exists today, and finds the data
that the file contained at that moment.

A read of the past costs as much as the same read of the present, plus a cost for the later changes
in the kinds that it reads. The batches of a query share this cost. An entity's state at a moment is
the current state if its version is not newer than the moment. Otherwise, it is the only revision
that began at or before the moment and ended after it.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import operator
from collections.abc import Iterable, Iterator

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import indexes, keys
from datastore_emulator.storage import read_sets, row_reader

MAX_AGE = 3600  # Seconds that Google's service can look back
_entry_of = operator.itemgetter(0)


def micros(timestamp: protobufs.Timestamp) -> int:
    """Return a request's read_time as microseconds since 1970.

    Raises:
        errors.InvalidArgument: The timestamp is invalid or has fractions of a microsecond.
    """
    if not 0 <= timestamp.nanos < 1_000_000_000 or timestamp.nanos % 1000:  # noqa: PLR2004
        raise errors.InvalidArgument("read_time must be a timestamp of whole microseconds.")
    return timestamp.seconds * 1_000_000 + timestamp.nanos // 1000


def check(moment: int, state: row_reader.State, now: int, history: int) -> None:
    """Check that a moment can be read; `history` is the retention period in microseconds.

    Raises:
        errors.InvalidArgument: The moment is in the future, or is too old.
        errors.Unimplemented: No history is kept.
    """
    if not history:
        raise errors.Unimplemented("read_time, with the history switched off,")
    if moment > max(now, state.version):
        raise errors.InvalidArgument("read_time is in the future.")
    if moment < now - history:
        raise errors.InvalidArgument(
            f"read_time is older than the {history // 1_000_000} seconds that are kept."
        )
    if moment < state.kept_since:
        raise errors.InvalidArgument("read_time is older than the history of this data file.")


class PastEntries:
    """Index entries computed for a past moment; readers share them because they never change.

    `entries` contains, for each index, the rows of entities that have changed since the moment, and
    the version up to which these changes are known. `keys` contains the keys of the entities in
    these rows.
    """

    def __init__(self, moment: int) -> None:
        self.moment = moment
        self.entries: dict[read_sets.IndexName, tuple[list[row_reader.Row], int]] = {}
        self.keys: dict[int, bytes] = {}


class PastReader(row_reader.RowReader):
    """Reads the state at an earlier moment. Call `look_back` before the first read."""

    moment: int
    _gone: PastEntries

    def look_back(self, gone: PastEntries) -> None:
        """Set the moment to read."""
        self.moment = gone.moment
        self._gone = gone

    @property
    def version(self) -> int:
        """The moment to read: changes up to this moment are visible, and later changes are not."""
        return self.moment

    def entity(self, key: bytes) -> row_reader.StoredEntity | None:
        """Return the entity with the given encoded key as it was at the moment."""
        current = super().entity(key)
        if current is not None and current.version <= self.moment:
            return current
        row = self._connection.execute(
            "SELECT entity_id, proto, version, created FROM history "
            "WHERE key = ? AND until > ? ORDER BY until LIMIT 1",
            (key, self.moment),
        ).fetchone()
        if row is None or row[2] > self.moment:
            return None
        entity_id, proto, version, created = row
        return row_reader.StoredEntity(
            entity_id, proto, version, created, row_reader.meta(version, created)
        )

    def entity_by_id(self, entity_id: int) -> row_reader.StoredEntity:
        """Return the entity to which an index entry belongs."""
        key = self._gone.keys.get(entity_id)
        if key is None:
            row = self._connection.execute(
                "SELECT key FROM entities WHERE id = ?", (entity_id,)
            ).fetchone()
            key = row[0] if row else b""
        stored = self.entity(key)
        if stored is None:
            raise errors.Damaged(f"An index entry names the entity {entity_id}, which is missing.")
        return stored

    def entity_version(self, key: bytes) -> int:
        """Return an entity's version at the moment, or 0 if the entity did not exist."""
        stored = self.entity(key)
        return 0 if stored is None else stored.version

    def scan(
        self, name: read_sets.IndexName, low: bytes, high: bytes, *, with_entities: bool
    ) -> Iterator[row_reader.Row]:
        """Yield the rows that an index had with low <= entry < high, in order, without entities."""
        del with_entities  # An entry and its entity may belong to different revisions
        if name[1] is None:
            return heapq.merge(
                (
                    row
                    for row in super().scan(name, low, high, with_entities=True)
                    if self._is_past(row)
                ),
                self._ended_revisions(low, high),
                key=_entry_of,
            )
        # An index without an id has no current entries, and may never have had any.
        current = self._connection.execute(
            "SELECT entry, entity_id, is_multiple, NULL, NULL, 0 FROM index_entries "
            "WHERE index_id = ? AND entry >= ? AND entry < ? AND version <= ? ORDER BY entry",
            (self.index_id(name), low, high, self.moment),
        )
        gone = self._past_entries(name[0], name[1])
        first = bisect.bisect_left(gone, low, key=_entry_of)
        last = bisect.bisect_left(gone, high, key=_entry_of)
        return _merge(current, gone[first:last]) if first < last else current

    def count(self, name: read_sets.IndexName, low: bytes, high: bytes, most: int | None) -> int:
        """Return the number of rows that an index had in a range, counting at most `most`."""
        return row_reader.count_rows(self.scan(name, low, high, with_entities=False), most)

    def _is_past(self, row: row_reader.Row) -> bool:
        return row[5] <= self.moment

    def _ended_revisions(self, low: bytes, high: bytes) -> Iterator[row_reader.Row]:
        """Yield the revisions in a key range that were current at the moment but are not now."""
        rows = self._connection.execute(
            "SELECT key, entity_id, proto, version, created FROM history "
            "WHERE key >= ? AND key < ? AND until > ? AND version <= ? ORDER BY key",
            (low, high, self.moment, self.moment),
        )
        for key, entity_id, proto, version, created in rows:
            yield key, entity_id, 0, proto, row_reader.meta(version, created), version

    def _past_entries(self, partition: bytes, code: bytes) -> list[row_reader.Row]:
        """Return the sorted index rows of all entities that have changed since the moment."""
        name = (partition, code)
        entries, known = self._gone.entries.get(name, ([], self.moment))
        if self.state.version > known:
            entries = sorted(itertools.chain(entries, self._compute_past_entries(name, known)))
            self._gone.entries[name] = entries, self.state.version
        return entries

    def _compute_past_entries(
        self, name: tuple[bytes, bytes], known: int
    ) -> Iterator[row_reader.Row]:
        """Yield the past index rows of entities that existed then and changed after a version."""
        index = indexes.decode(name[1])
        rows = self._connection.execute(
            "SELECT entity_id, key, proto FROM history WHERE key >= ? AND key < ? "
            "AND kind_id = ? AND until > ? AND version <= ?",
            (
                *keys.partition_range(name[0]),
                self.index_id((name[0], indexes.builtin(index.kind).code)),
                known,
                self.moment,
            ),
        )
        for entity_id, key, proto in rows:
            partition, path = keys.decode(key)
            indexed = indexes.indexed_values(row_reader.parse(proto), partition)
            entries = indexes.entries(index, path, indexed)
            if entries:
                self._gone.keys[entity_id] = key
            for entry in entries:
                yield entry, entity_id, int(len(entries) > 1), None, None, 0


def _merge(
    current: Iterable[row_reader.Row], gone: Iterable[row_reader.Row]
) -> Iterator[row_reader.Row]:
    """Merge two sorted lists; an entry is in both if its entity changed but the entry did not."""
    previous = None
    for row in heapq.merge(current, gone, key=_entry_of):
        if row[0] != previous:
            yield row
        previous = row[0]
