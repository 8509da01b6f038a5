"""Read sets: a record of the reads of a transaction.

Owns the record that Commit checks. No recorded item may have changed since the transaction's
snapshot:

* An entity that was read (or found missing) is recorded as its key with its version, 0 if it is
  missing.
* A query is recorded as the ranges of index entries it scanned: a newer entry in one of them is a
  phantom.
* A result read from an index alone (keys-only, projection, count, skipped) is recorded as its index
  entry, which must still exist. A whole entity needs no such record: while its version is
  unchanged, so are its entries.
"""

from dataclasses import dataclass, field

# The name of an index: the partition's encoding and the index's code. None means the entities by
# key.
IndexName = tuple[bytes, bytes | None]
ENTITIES: IndexName = (b"", None)  # for all partitions: an encoded key names its partition


@dataclass(slots=True)
class ReadSet:
    """The reads of one transaction."""

    entities: dict[bytes, int] = field(default_factory=dict)
    ranges: set[tuple[IndexName, bytes, bytes]] = field(default_factory=set)
    entries: set[tuple[IndexName, bytes]] = field(default_factory=set)

    def merge(self, other: "ReadSet") -> None:
        """Add the reads of one request."""
        self.entities.update(other.entities)
        self.ranges.update(other.ranges)
        self.entries.update(other.entries)
