"""What a transaction has read.

Owns the record that Commit checks: nothing in it may have changed since the transaction's snapshot.

* An entity read (or found missing) is its key with the version seen, 0 for missing.
* A query is the ranges of index entries it walked: a newer entry in one of them is a phantom.
* A result read from an index alone (keys-only, projection, count, skipped) is its index entry,
  which must still be there. A whole entity needs no such record: while its version stands, so do
  its entries.
"""

from dataclasses import dataclass, field

# The key of an index: the partition's encoding and the index's code. None: the entities by key.
IndexName = tuple[bytes, bytes | None]
ENTITIES: IndexName = (b"", None)  # all of them: an encoded key names its partition


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
