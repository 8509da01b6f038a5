"""The lock table: places that transactions read or want to change, and the waits between them.

Owns the decisions about locks. This module is pure: `lock_manager` waits, and `shared_lock_files`
shares the locks between processes.

A *place* is a location at which a change is visible: an entity's key, or one entry of an index. A
place is a string of the characters 0 to 255, so that strings sort in byte order and JSON can
contain them:

    E key                                                an entity
    I length "," length "," partition code entry         an entry of an index

A holder is a transaction, or a single commit outside a transaction. Locks on missing entities and
on index ranges work like all other locks: a change conflicts with a lock if the lock covers one of
the changed places. A holder's locks only grow until the holder ends.

When holders wait for each other in a cycle, the youngest holder gives up, even if another holder
closed the cycle. Therefore the oldest transaction never gives up, and one of the transactions
always commits.
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from datastore_emulator.storage import read_sets

Event = list[Any]  # A verb, a holder's name and arguments (see `LockTable.apply`), as JSON types


class Footprint(NamedTuple):
    """The places that one request has read: single places, and ranges low <= place < high."""

    places: list[str]
    ranges: list[tuple[str, str]]


@dataclass(slots=True)
class Holder:
    """One holder of locks."""

    age: float  # Start of the first attempt; a lower value is older.
    until: float  # Time at which the locks expire.
    places: set[str] = field(default_factory=set)
    ranges: set[tuple[str, str]] = field(default_factory=set)
    has_entries: bool = False  # Whether the holder has read entries of an index.
    wanted: list[str] = field(default_factory=list)  # Sorted places that are about to change.
    awaited: frozenset[str] = frozenset()  # Names of the holders that this holder waits for.
    queued: frozenset[str] = frozenset()  # Places for which this holder queues.

    def conflicts_with(self, wanted: list[str]) -> bool:
        """Return whether a change to these sorted places touches a place that this holder read."""
        return not self.places.isdisjoint(wanted) or _has_any_in(wanted, self.ranges)

    def is_to_change(self, footprint: Footprint) -> bool:
        """Return whether the change that this holder is about to make touches a footprint."""
        if not self.wanted:
            return False
        return not set(self.wanted).isdisjoint(footprint.places) or _has_any_in(
            self.wanted, footprint.ranges
        )


class LockTable:
    """The holders of one process. `entry_reads` counts the holders' reads of index entries."""

    def __init__(self) -> None:
        self.holders: dict[str, Holder] = {}
        self.entry_reads = 0

    def apply(self, event: Event) -> None:
        """Apply one event.

        These are the possible events:

            ["open", name, age, until]               a holder begins
            ["read", name, until, places, ranges]    it has also read these places and ranges
            ["want", name, until, places]            it is about to change exactly these places
            ["wait", name, names, places]            it waits for exactly these holders, and queues
                                                     for exactly these places (optional)
            ["end", name]                            it ends, and its locks end with it
        """
        verb, name, *rest = event
        if verb == "open":
            self.holders[name] = Holder(*rest)
            return
        if verb == "end":
            self.holders.pop(name, None)
            return
        holder = self.holders[name]
        if verb == "wait":
            holder.awaited = frozenset(rest[0])
            holder.queued = frozenset(rest[1] if rest[1:] else ())
            return
        holder.until = rest[0]
        if verb == "want":
            holder.wanted = rest[1]
            return
        _, places, ranges = rest
        holder.places.update(places)
        holder.ranges.update((low, high) for low, high in ranges)
        if any(map(_is_entry, places)) or any(_is_entry(low) for low, _ in ranges):
            holder.has_entries = True
            self.entry_reads += 1

    def events(self) -> Iterator[Event]:
        """Yield events that rebuild this table from an empty one."""
        for name, holder in self.holders.items():
            yield ["open", name, holder.age, holder.until]
            yield ["read", name, holder.until, list(holder.places), list(holder.ranges)]
            yield ["want", name, holder.until, holder.wanted]
            yield ["wait", name, list(holder.awaited), list(holder.queued)]


def footprint(reads: read_sets.ReadSet) -> Footprint:
    """Return the places that a request has read."""
    places = [_place(read_sets.ENTITIES, key) for key in reads.entities]
    places += [_place(name, entry) for name, entry in reads.entries]
    ranges = [(_place(name, low), _place(name, high)) for name, low, high in reads.ranges]
    return Footprint(places, ranges)


def _is_entry(place: str) -> bool:
    return place.startswith("I")


def places(touched: Iterable[tuple[read_sets.IndexName, bytes]]) -> list[str]:
    """Return the sorted places that a change touches."""
    return sorted(_place(name, entry) for name, entry in touched)


def leads_to(holders: Mapping[str, Holder], names: Iterable[str], name: str) -> bool:
    """Return whether one of the named holders is `name`, or waits for it directly or indirectly."""
    return _leads_to(holders, names, name, through=holders.keys())


def is_victim(holders: Mapping[str, Holder], name: str) -> bool:
    """Return whether a holder is the youngest in a cycle of holders that wait for each other."""
    age = holders[name].age, name
    older = {other for other, holder in holders.items() if (holder.age, other) < age}
    return _leads_to(holders, holders[name].awaited, name, through=older)


def _leads_to(
    holders: Mapping[str, Holder], names: Iterable[str], name: str, *, through: AbstractSet[str]
) -> bool:
    todo, seen = list(names), set(names)
    while todo:
        current = todo.pop()
        if current == name:
            return True
        if current in through:
            new = holders[current].awaited - seen
            todo += new
            seen |= new
    return False


@functools.lru_cache(maxsize=4096)
def _prefix(name: read_sets.IndexName) -> str:
    partition, code = name
    if code is None:
        return "E"
    return f"I{len(partition)},{len(code)}," + (partition + code).decode("latin-1")


def _place(name: read_sets.IndexName, entry: bytes) -> str:
    return _prefix(name) + entry.decode("latin-1")


def _has_any_in(wanted: list[str], ranges: Iterable[tuple[str, str]]) -> bool:
    """Return whether any of the sorted places lies in any of the ranges."""
    for low, high in ranges:
        index = bisect.bisect_left(wanted, low)
        if index < len(wanted) and wanted[index] < high:
            return True
    return False
