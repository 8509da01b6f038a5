"""Read sets: a record of a transaction's reads.

Owns the record that Commit checks. No recorded item may have changed since the transaction's
snapshot:

* For an entity that was read or found missing, the key and version are recorded; the version is 0
  if the entity is missing.
* For a query, the scanned ranges of index entries are recorded. A newer entry in such a range is a
  phantom.
* For a result that was read from an index alone (keys-only, projection, count, skipped), the index
  entry is recorded. This entry must still exist. For a result that was read as a whole entity, no
  entry is recorded, because an entity's entries stay the same as long as its version does.
"""

from dataclasses import dataclass, field
from typing import Any

_MOST_FOUND = 256  # Maximum number of entities in `found`.
_MOST_BYTES = 1024 * 1024  # Maximum total size of these entities.

# Names an index by the encoded partition and the code of the index. A code of None means the
# entities, sorted by key.
IndexName = tuple[bytes, bytes | None]
ENTITIES: IndexName = (b"", None)  # For all partitions: each encoded key contains its partition


@dataclass(slots=True)
class ReadSet:
    """The reads of one transaction."""

    entities: dict[bytes, int] = field(default_factory=dict)
    ranges: set[tuple[IndexName, bytes, bytes]] = field(default_factory=set)
    entries: set[tuple[IndexName, bytes]] = field(default_factory=set)
    # Some of the looked-up entities in their stored form (`row_reader`), or None for missing ones.
    # A commit that changes one of these entities need not read it again.
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
