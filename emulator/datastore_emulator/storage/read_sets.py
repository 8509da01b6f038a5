"""Read sets: a record of a transaction's reads.

Owns the record that Commit checks. No recorded item may have changed since the transaction's
snapshot:

* An entity that was read (or found missing) is recorded as its key and version; the version is 0 if
  the entity is missing.
* A query is recorded as the ranges of index entries that it scanned: a newer entry in a range is a
  phantom.
* A result read from an index alone (keys-only, projection, count, skipped) is recorded as its index
  entry, which must still exist. A result read as a whole entity needs no such record, because its
  entries are unchanged while its version is unchanged.
"""

from dataclasses import dataclass, field
from typing import Any

_MOST_FOUND = 256  # Entities of `found`.
_MOST_BYTES = 1024 * 1024  # Their total size.

# The name of an index: the encoded partition, and the code of the index. A code of None means the
# entities, sorted by key.
IndexName = tuple[bytes, bytes | None]
ENTITIES: IndexName = (b"", None)  # For all partitions, which the encoded keys contain


@dataclass(slots=True)
class ReadSet:
    """The reads of one transaction."""

    entities: dict[bytes, int] = field(default_factory=dict)
    ranges: set[tuple[IndexName, bytes, bytes]] = field(default_factory=set)
    entries: set[tuple[IndexName, bytes]] = field(default_factory=set)
    # Some of the entities that were looked up, or None for missing ones, as stored (`row_reader`).
    # A commit that changes them need not read them again.
    found: dict[bytes, Any] = field(default_factory=dict)
    found_bytes: int = 0

    def note(self, key: bytes, stored: Any) -> None:
        """Record the lookup of an entity; `stored` is None if the entity is missing."""
        self.entities[key] = 0 if stored is None else stored.version
        self._keep(key, stored)

    def _keep(self, key: bytes, stored: Any) -> None:
        size = self.found_bytes + (0 if stored is None else len(stored.proto))
        if size <= _MOST_BYTES and len(self.found) < _MOST_FOUND:
            self.found[key] = stored
            self.found_bytes = size

    def merge(self, other: "ReadSet") -> None:
        """Add the reads of one request."""
        self.entities.update(other.entities)
        self.ranges.update(other.ranges)
        self.entries.update(other.entries)
        for key, stored in other.found.items():
            self._keep(key, stored)
