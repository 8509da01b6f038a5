"""The cost meter: the operations that Google's service would bill for one process's requests.

Owns the billing rules, their two interpretations, and the counters. Only requests that succeed
count; a refused or aborted request costs nothing. Each process counts its own requests, even if
several processes share a data file, and a forked child starts at zero.

The rules, with their sources (cloud.google.com, read in November 2026):

* Lookup: one read for each key that is answered, whether found or missing. A key that is named
  twice counts once. A deferred key is billed when it is answered. Source: datastore/pricing, "one
  read operation for each entity read"; Firestore's rule for missing documents bills a missing
  entity at the same price.
* Query for whole entities: one read for each result, and for each result skipped by an offset.
  Source: firestore/pricing, "Managing large result sets".
* Keys-only and projection queries without distinct_on: one read for the query, and a small
  operation for each result. A skipped result costs the same as a returned result. Each RunQuery is
  a separate query, even if it continues an earlier query. Source: datastore/pricing, "Small
  operations".
* Keys-only and projection queries, with or without distinct_on, that find nothing: the sources
  contradict each other. The sources say both that a query with at most one range property has a
  minimum charge of zero and that a projection query counts as one entity read. `Pricing.LENIENT`
  bills nothing; `Pricing.STRICT` bills one read. Every other rule is the same in both
  interpretations.
* Index entries read: one read for every 1,000 entries or part of 1,000, but only if the query has
  more than one range property. The range properties are the properties with an inequality and, if
  there is an inequality, the properties of the orders. `__key__` is also a range property if it has
  any filter except an ancestor. A query with at most one range property may cost nothing; any other
  query costs at least one read. Source: datastore/pricing and firestore/pricing, "Index entries".
* Aggregation: one read for every 1,000 index entries or part of 1,000, and at least one read.
  Source: datastore/docs/aggregation-queries, "Pricing".
* Explain without analyze: one read. Source: firestore/pricing, "Query Explain".
* Commit: one write for each insert, update and upsert, and one delete for each delete, even of a
  missing entity. Source: firestore/pricing.
* AllocateIds and ReserveIds: one small operation per call. Source: datastore/pricing, "Small
  operations", which names "calls to allocate IDs". That reserving costs the same is an assumption.
* Bytes are the sizes of the request and response messages.

Beginning and ending a transaction is free. Counting costs a few additions under a lock for each
request; keys are recorded only while a Reading is open.
"""

from __future__ import annotations

import contextlib
import enum
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from datastore_emulator import protobufs
from datastore_emulator.queries import filters, parser

ENTRIES_PER_READ = 1000
PLAN_READS = 1  # The price of a query that is explained but not run

# A flat path: kinds alternate with ids or names, without the namespace.
FlatPath = tuple[str | int, ...]


class Pricing(enum.StrEnum):
    """How to bill keys-only and projection queries that find nothing."""

    LENIENT = "lenient"
    STRICT = "strict"


class Cost(NamedTuple):
    """The billed operations. `index_entries` counts all entries read, billed or not.

    `empty` is the number of additional reads that strict pricing bills.
    """

    reads: int = 0
    writes: int = 0
    deletes: int = 0
    small: int = 0
    index_entries: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    empty: int = 0


class Bill(NamedTuple):
    """The lenient bill of one query, in the units of the service's explain metrics.

    `empty` is the number of additional reads that strict pricing bills.
    """

    documents: int = 0
    index_entries: int = 0
    small: int = 0
    minimum: int = 0
    empty: int = 0

    @property
    def reads(self) -> int:
        """The number of billed read operations."""
        return self.documents + -(-self.index_entries // ENTRIES_PER_READ) + self.minimum

    def with_more(self, more: Bill) -> Bill:
        """Return the sum of the bills of two requests for the same query."""
        return Bill(
            self.documents + more.documents,
            self.index_entries + more.index_entries,
            self.small + more.small,
            self.minimum + more.minimum,
            self.empty + more.empty,
        )


def bill_query(query: parser.Query, *, met: int, entries: int) -> Bill:
    """Price one RunQuery by its results, including skipped ones, and the entries that it read."""
    is_partial = query.is_keys_only or bool(query.projection)
    is_small = is_partial and query.distinct is None
    documents, small = (0, met) if is_small else (met, 0)
    if len(_range_properties(query)) > 1:
        return Bill(documents, entries, small, minimum=int(not entries and not documents))
    is_empty = is_partial and met == 0
    return Bill(documents, 0, small, minimum=int(is_small and met > 0), empty=int(is_empty))


def bill_aggregation(entries: int) -> Bill:
    return Bill(index_entries=entries, minimum=int(not entries))


def _range_properties(query: parser.Query) -> set[str]:
    names = {name for branch in query.branches for name in branch.inequalities}
    if any(branch.key_ranges != filters.EVERYTHING for branch in query.branches):
        names.add(parser.KEY)
    if names:
        names.update(order.name for order in query.orders)
    return names


class _Counters:
    """Counters that only grow until the next reset."""

    __slots__ = ("bytes_in", "bytes_out", "deletes", "empty", "entries", "reads", "small", "writes")

    def __init__(self) -> None:
        self.reads = self.writes = self.deletes = self.small = self.entries = 0
        self.bytes_in = self.bytes_out = self.empty = 0

    def cost(self, pricing: Pricing) -> Cost:
        return Cost(
            self.reads + (self.empty if pricing is Pricing.STRICT else 0),
            self.writes,
            self.deletes,
            self.small,
            self.entries,
            self.bytes_in,
            self.bytes_out,
            self.empty,
        )


class Reading:
    """The operations billed since this reading was opened; a reading grows until it is closed."""

    def __init__(self, counters: _Counters, pricing: Pricing) -> None:
        self._counters = counters
        self._pricing = pricing
        self._keys_read: set[FlatPath] = set()
        self._keys_written: set[FlatPath] = set()

    def __repr__(self) -> str:
        return f"<{self.total()}, keys_read={self._keys_read}, keys_written={self._keys_written}>"

    def total(self) -> Cost:
        """Return all costs so far."""
        return self._counters.cost(self._pricing)

    @property
    def reads(self) -> int:
        """Entities read, plus everything else that is billed as a read."""
        return self.total().reads

    @property
    def empty(self) -> int:
        """The number of queries that only strict pricing bills, at one read each."""
        return self._counters.empty

    @property
    def writes(self) -> int:
        """Entities written."""
        return self._counters.writes

    @property
    def deletes(self) -> int:
        """Entities deleted."""
        return self._counters.deletes

    @property
    def small(self) -> int:
        """Small operations."""
        return self._counters.small

    @property
    def index_entries(self) -> int:
        """Index entries read, whether billed or not."""
        return self._counters.entries

    @property
    def bytes_in(self) -> int:
        """Bytes of requests."""
        return self._counters.bytes_in

    @property
    def bytes_out(self) -> int:
        """Bytes of responses."""
        return self._counters.bytes_out

    @property
    def keys_read(self) -> frozenset[FlatPath]:
        """The keys of lookups and of query results, as flat paths: ("Kind", "name")."""
        return frozenset(self._keys_read)

    @property
    def keys_written(self) -> frozenset[FlatPath]:
        """The keys written and deleted, as flat paths."""
        return frozenset(self._keys_written)

    def note(self, read: set[FlatPath], written: set[FlatPath]) -> None:
        """Record keys. Called by the meter."""
        self._keys_read |= read
        self._keys_written |= written


def _flat(key: protobufs.Key) -> FlatPath:
    return tuple(
        part for element in key.path for part in (element.kind, element.name or element.id)
    )


class Meter:
    """Counts the cost of all requests to one engine in this process.

    Args:
        pricing: The interpretation of the rules for the totals. A reading may use a different
            interpretation.
    """

    def __init__(self, pricing: Pricing = Pricing.LENIENT) -> None:
        self.pricing = pricing
        self.forget()

    def forget(self) -> None:
        """Reset the counters in a forked child process, with a new lock."""
        self._lock = threading.Lock()
        self._total = _Counters()
        self._all: tuple[_Counters, ...] = (self._total,)
        self._readings: tuple[Reading, ...] = ()

    def total(self) -> Cost:
        """Return the cost of all requests since the start or the last reset."""
        with self._lock:
            return self._total.cost(self.pricing)

    def reset(self) -> None:
        """Restart the total at zero. Open readings continue to count."""
        with self._lock:
            self._all = tuple(other for other in self._all if other is not self._total)
            self._total = _Counters()
            self._all = (self._total, *self._all)

    def count(
        self,
        *,
        reads: int = 0,
        writes: int = 0,
        deletes: int = 0,
        small: int = 0,
        entries: int = 0,
        empty: int = 0,
    ) -> None:
        """Add the cost of one request."""
        with self._lock:
            for counters in self._all:
                counters.reads += reads
                counters.writes += writes
                counters.deletes += deletes
                counters.small += small
                counters.entries += entries
                counters.empty += empty

    def count_lookup(self, read: Sequence[protobufs.Key]) -> None:
        """Add the cost of a lookup that answered the given keys."""
        self.count(reads=len(read))
        if self._readings:
            self._note(read, ())

    def count_query(
        self, bill: Bill, entries: int, keys_of: Callable[[], Iterable[protobufs.Key]] = tuple
    ) -> None:
        """Add the cost of a query; `entries` counts the index entries that it read."""
        self.count(reads=bill.reads, small=bill.small, entries=entries, empty=bill.empty)
        if self._readings:
            self._note(keys_of(), ())

    def count_commit(self, written: Iterable[protobufs.Key], *, writes: int, deletes: int) -> None:
        """Add the cost of a commit; `written` contains the keys of its writes and deletes."""
        self.count(writes=writes, deletes=deletes)
        if self._readings:
            self._note((), written)

    def count_bytes(self, received: int, sent: int) -> None:
        """Add the size of one request and its response."""
        with self._lock:
            for counters in self._all:
                counters.bytes_in += received
                counters.bytes_out += sent

    def _note(self, read: Iterable[protobufs.Key], written: Iterable[protobufs.Key]) -> None:
        flat_read, flat_written = set(map(_flat, read)), set(map(_flat, written))
        with self._lock:
            for reading in self._readings:
                reading.note(flat_read, flat_written)

    @contextlib.contextmanager
    def listen(self, pricing: Pricing | None = None) -> Iterator[Reading]:
        """Open a reading. After the block, the reading remains readable but no longer grows."""
        counters = _Counters()
        reading = Reading(counters, pricing or self.pricing)
        with self._lock:
            self._all = (*self._all, counters)
            self._readings = (*self._readings, reading)
        try:
            yield reading
        finally:
            with self._lock:
                self._all = tuple(other for other in self._all if other is not counters)
                self._readings = tuple(other for other in self._readings if other is not reading)
