"""Query plans: the scans that serve a query, and the arithmetic of positions. Pure.

A plan is a union of branches, and a branch is a merge join of scans. An index entry is
`prefix + suffix`: the prefix contains the values that equality filters fix, and the suffix contains
the values that order the results, followed by the key. All scans of a branch have suffixes of the
same form, so the join is one pass over equal suffixes. All branches yield *positions* of the same
form, so the union is a merge by position. A position is the suffix plus the values that the branch
fixes, inserted at their places. For example, an IN filter on a property that also orders the
results fixes such a value. Positions are totally ordered, and a cursor stores only a position.

Inequalities restrict the possible values of a property to a few *spans* of bytes. The spans of a
suffix's first value divide the scan into segments. The spans of later values are applied by
skipping: `MergeJoin.next_suffix` returns the next suffix whose values lie in all spans, and the
scan seeks that suffix.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from datastore_emulator import errors
from datastore_emulator.encoding import indexes, keys, values
from datastore_emulator.queries import filters, parser, query_cursors

# Half-open ranges [first, beyond) of encoded values in ascending order; in a descending index, the
# values are complemented. No encoded value is a prefix of another encoded value, so a span also
# covers values that are followed by other bytes.
Spans = tuple[tuple[bytes, bytes], ...]
ANYTHING: Spans = ((b"", values.ABOVE),)


@dataclass(frozen=True, slots=True)
class Scan:
    """The entries of one index that begin with `prefix`.

    Without an index, the scan reads the entities by key.
    """

    index: indexes.Index | None
    prefix: bytes


class MergeJoin(NamedTuple):
    """A merge join of scans over the suffixes in its segments.

    `constants` contains the values that are in the position but not in the suffix, keyed by their
    place in the position. Each value is encoded as in an index entry, that is, complemented if its
    direction is descending. `spans` contains the spans for each value in a suffix and for the key;
    it is empty if the segments suffice. `directions` contains, for each value of a suffix, whether
    the value is complemented. `single` is the path of the only entity that can match, if that
    entity is known. The branch's suffixes are then computed from that entity itself, because a scan
    for them could read the whole index. `trailing` contains, for each value after the key, the
    values that the branch fixes, or None if the branch fixes none.
    """

    scans: tuple[Scan, ...]
    segments: Spans
    constants: tuple[tuple[int, bytes], ...] = ()
    spans: tuple[Spans, ...] = ()
    directions: tuple[bool, ...] = ()
    single: bytes | None = None
    trailing: tuple[tuple[bytes, ...] | None, ...] = ()

    def next_suffix(self, suffix: bytes) -> bytes:
        """Return the first suffix at or after this one whose values can all lie in their spans."""
        if not self.spans:
            return suffix
        passed = b""
        for part, spans in zip(values.split(suffix, self.directions), self.spans, strict=False):
            for first, beyond in spans:
                if part < first:
                    return passed + first
                if part < beyond:
                    break
            else:
                return passed + values.ABOVE
            passed += part
        return suffix

    def contains(self, suffix: bytes) -> bool:
        """Return whether a suffix belongs to the branch."""
        return (
            any(low <= suffix < high for low, high in self.segments)
            and self.next_suffix(suffix) == suffix
        )


class QueryPlan(NamedTuple):
    """A plan for scanning a query's results in order.

    `columns` contains the names and directions of a position's values; the key follows them.
    `directions` contains, for each value, whether the value is complemented. `trailing` names the
    projected properties that the query orders after the key. No index contains values after a key,
    so the scan takes these values from the entity; they have the direction of the key.
    """

    query: parser.Query
    branches: tuple[MergeJoin, ...]
    columns: tuple[tuple[str, bool], ...]
    is_key_descending: bool
    directions: tuple[bool, ...]
    trailing: tuple[str, ...] = ()

    def position(self, branch: MergeJoin, suffix: bytes) -> bytes:
        """Insert a branch's constants into a suffix."""
        if not branch.constants:
            return suffix
        fixed = dict(branch.constants)
        parts = iter(values.split(suffix, branch.directions))
        places = range(len(self.columns) + 1)
        return b"".join(fixed[place] if place in fixed else next(parts) for place in places)

    def suffix_from(self, branch: MergeJoin, position: bytes, *, past: bool) -> bytes:
        """Return the first suffix of a branch at or, with `past`, after a position.

        A position may end after any of its values if ABOVE follows that value.
        """
        end = b"\x00" if past else b""
        if not branch.constants or not position:
            return position and position + end
        fixed = dict(branch.constants)
        suffix = b""
        for place, is_descending in enumerate(self.directions):
            constant = fixed.get(place)
            if constant is None and position == values.ABOVE:
                return suffix + values.ABOVE
            if constant is None:
                part, position = values.split(position, (is_descending,))
                suffix += part
            elif position.startswith(constant):
                position = position[len(constant) :]
            else:
                return suffix if constant > position else suffix + values.ABOVE
        return suffix + position + end

    def check(self, position: bytes) -> None:
        """Refuse a cursor position that no result of this plan can have.

        Raises:
            errors.InvalidArgument: The cursor's bytes were changed or truncated, or the indexes
                have changed.
        """
        if position in (b"", values.ABOVE):
            return
        try:
            path = self.path(position)
            is_whole = path.endswith(keys.PATH_END) and keys.path_ends(path)[-1] == len(path) - 1
            is_whole = is_whole and len(self._tail(position)) == len(self.trailing)
        except (IndexError, KeyError, ValueError):
            is_whole = False
        if not is_whole:
            raise errors.InvalidArgument("The cursor is not valid.")

    def path(self, position: bytes) -> bytes:
        """Return the encoded key path in a position."""
        path = self._from_path(position)
        return path[: keys.path_ends(path)[-1] + 1] if self.trailing else path

    def _from_path(self, position: bytes) -> bytes:
        """Return the key path and the values after it, not complemented."""
        rest = values.split(position, self.directions)[-1] if self.columns else position
        return values.complement(rest) if self.is_key_descending else rest

    def _tail(self, position: bytes) -> list[bytes]:
        """Return the encoded values after the key."""
        if not self.trailing:
            return []
        rest = self._from_path(position)
        *tail, beyond = values.split(
            rest[keys.path_ends(rest)[-1] + 1 :], (False,) * len(self.trailing)
        )
        return tail if not beyond else []

    def base(self, position: bytes) -> bytes:
        """Return a position without the values after its key: the position that a scan reads."""
        rest = position
        for is_descending in self.directions:
            if rest in (b"", values.ABOVE):
                return position
            rest = values.split(rest, (is_descending,))[1]
        if not self.trailing or rest in (b"", values.ABOVE):
            return position
        return position[: len(position) - len(rest) + len(self.path(position))]

    def after(self, position: bytes, listed: Sequence[Sequence[bytes]]) -> list[bytes]:
        """Return the positions, in order, of an entity whose values after the key are listed."""
        tails = sorted(map(b"".join, itertools.product(*listed)))
        if self.is_key_descending:
            tails = [values.complement(tail) for tail in reversed(tails)]
        return [position + tail for tail in tails]

    def group(self, position: bytes) -> bytes:
        """Return those values of a position that make results distinct."""
        return b"".join(values.split(position, self.directions[: self.query.distinct or 0])[:-1])

    def projected_values(self, position: bytes) -> tuple[bytes, ...]:
        """Return the encoded values of the projected properties."""
        if not self.query.projection:
            return ()
        parts = values.split(position, self.directions)
        by_name = {
            name: values.complement(part) if is_descending else part
            for (name, is_descending), part in zip(self.columns, parts, strict=False)
        }
        by_name.update(zip(self.trailing, self._tail(position), strict=True))
        return tuple(by_name[name] for name in self.query.projection)

    def segments(
        self, branch: MergeJoin, start: query_cursors.Position, end: query_cursors.Position | None
    ) -> Spans:
        """Return a branch's suffixes between two cursors as non-empty spans.

        If values follow the key, a cursor can be between two results that share a suffix; the spans
        then contain that suffix.
        """
        starts, ends = self.base(start.after), b"" if end is None else self.base(end.after)
        is_cut = starts != start.after
        first = self.suffix_from(branch, starts, past=not (start.is_before or is_cut))
        beyond = values.ABOVE
        if end is not None:
            is_cut = ends != end.after
            beyond = self.suffix_from(branch, ends, past=is_cut or not end.is_before)
        cut = ((max(low, first), min(high, beyond)) for low, high in branch.segments)
        return tuple((low, high) for low, high in cut if low < high)


def spans(ranges: filters.Ranges, *, is_descending: bool) -> Spans:
    """Return the byte spans of the values in the ranges, in ascending order."""
    if ranges == filters.EVERYTHING:
        return ANYTHING
    ordered = sorted(_span(part, is_descending=is_descending) for part in ranges)
    return tuple((first, beyond) for first, beyond in ordered if first < beyond)


def _span(limits: filters.Range, *, is_descending: bool) -> tuple[bytes, bytes]:
    low, low_open = limits.low, limits.is_low_open
    high, high_open = limits.high, limits.is_high_open
    if is_descending:
        low, high = (None if limit is None else values.complement(limit) for limit in (high, low))
        low_open, high_open = high_open, low_open
    first = b"" if low is None else low + (values.ABOVE if low_open else b"")
    beyond = values.ABOVE if high is None else high + (b"" if high_open else values.ABOVE)
    return first, beyond


def within(outer: tuple[bytes, bytes], parts: Spans) -> Spans:
    """Return the parts of spans that lie within an outer span."""
    cut = ((max(first, outer[0]), min(beyond, outer[1])) for first, beyond in parts)
    return tuple((first, beyond) for first, beyond in cut if first < beyond)
