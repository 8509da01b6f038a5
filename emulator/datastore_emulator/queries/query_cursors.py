"""Query cursors: positions in the results of a query.

Owns the bytes of a cursor, which clients store. Pure.

    01 flags digest(8) position...

`position` contains the encoded order values and key of the last result passed. Before the first
result, `position` is empty. A cursor therefore marks a place and does not count results. It remains
valid when entities before it are inserted, and when the entity at its position is deleted. `digest`
identifies the query, including the partition but excluding paging. Flag 1 means that the query's
first order is descending. If the last order is the key, the reversed query has the same digest, and
its positions are the complements of the original query's positions. Otherwise, the reversed query
has a different digest and cannot use the cursor.
"""

import hashlib
from typing import NamedTuple

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import values

_FORMAT = 1
_DIGEST_SIZE = 8
_HEADER_SIZE = 2 + _DIGEST_SIZE
_DESCENDING = 2


class Position(NamedTuple):
    """A gap between results: after the position `after` or, in the reversed query, before it."""

    after: bytes
    is_before: bool = False

    def is_behind(self, position: bytes) -> bool:
        """Return whether the gap comes after a result at a position."""
        return position < self.after or (position == self.after and not self.is_before)


def header(query: protobufs.Query, partition: bytes) -> bytes:
    """Return the first bytes of all cursors of a query."""
    plain = protobufs.Query()
    plain.CopyFrom(query)
    for paging in ("start_cursor", "end_cursor", "offset", "limit"):
        plain.ClearField(paging)
    is_descending = False
    if plain.order and plain.order[-1].property.name == "__key__":
        is_descending = plain.order[0].direction == _DESCENDING
        for order in plain.order:
            goes_down = order.direction == _DESCENDING
            order.direction = _DESCENDING if goes_down != is_descending else 1
    content = partition + plain.SerializeToString(deterministic=True)
    digest = hashlib.blake2b(content, digest_size=_DIGEST_SIZE).digest()
    return bytes((_FORMAT, is_descending)) + digest


def decode(cursor: bytes, expected: bytes) -> Position:
    """Return a cursor's position; `expected` is the first bytes of the query's cursors.

    Raises:
        errors.InvalidArgument: The cursor belongs to a different query or is malformed.
    """
    given = cursor[:_HEADER_SIZE]
    if len(given) < _HEADER_SIZE or given[0] != _FORMAT or given[1] > 1:
        raise errors.InvalidArgument("The cursor is not valid.")
    if given[2:] != expected[2:]:
        raise errors.InvalidArgument(
            "Cursor does not match query: it was issued for a query with a different kind, "
            "ancestor, filter, order or projection."
        )
    position = cursor[_HEADER_SIZE:]
    if given == expected:
        return Position(position)
    if not position:
        return Position(values.ABOVE)
    return Position(values.complement(position), is_before=True)
