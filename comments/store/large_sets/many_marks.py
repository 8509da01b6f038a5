"""Add members to several sets and remove members, all in one transaction.

The call costs the same reads and writes as one mark for each change (`membership`), except that
each set is read only once. The call makes two round trips, no matter how many members change.
"""

import dataclasses
from collections.abc import Mapping

from comments.domain import records
from comments.store import ownership, reads
from comments.store.large_sets import membership
from comments.store.models import set_rows

# For each set: the ids that change, and whether each belongs to the set from now on.
Changes = Mapping[records.SetName, Mapping[str, bool]]


@dataclasses.dataclass(frozen=True, slots=True)
class ManyMarked:
    """The writes for the marks, and the sets for which a mark requests a compaction."""

    writes: ownership.Writes
    asking: tuple[records.SetName, ...]


def mark_many(changes: Changes) -> ManyMarked:
    """Change sets in the current transaction. The ids must be valid (`membership.check`)."""
    heads = reads.get_multi([set_rows.set_key(name) for name in changes]) if changes else []
    at = dict(zip(changes, map(membership.pointer_from, heads), strict=True))
    wanted = [(name, member, changes[name][member]) for name in changes for member in changes[name]]
    keys = [set_rows.mark_key(name, at[name].generation, member) for name, member, _ in wanted]
    rows = reads.get_multi(keys) if keys else []
    marked = {
        (name, member): membership.make_mark(name, at[name], member, row, belongs=belongs)
        for (name, member, belongs), row in zip(wanted, rows, strict=True)
    }
    put = tuple(row for mark in marked.values() for row in mark.writes.put)
    asking = dict.fromkeys(name for (name, _), mark in marked.items() if mark.asks)
    return ManyMarked(ownership.Writes(membership.OWNER, put=put), tuple(asking))
