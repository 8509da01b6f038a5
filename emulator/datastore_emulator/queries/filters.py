"""Query filters: check them and convert them to equalities and ranges.

Owns the operators, their operands and the rules for combining them. The result is in disjunctive
normal form. Pure.

    =  IN          equalities, one conjunction for each member
    <  <=  >  >=   a range
    !=  NOT_IN     the ranges around the excluded values

For an array, a single value must lie in all ranges of the property, while different values may
match its equalities. An index can decide exactly this rule, including for `!=`. Therefore `!= 1`
matches an array if any of its values is not 1.
"""

from __future__ import annotations

import collections
import functools
from collections.abc import Iterable
from typing import NamedTuple

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import keys, values

KEY = "__key__"
MAX_DISJUNCTIONS = 30
MAX_EXCLUDED = 10  # Maximum number of values in one NOT_IN
_NO_VALUES = (None, "entity_value", "array_value")

_LT, _LE, _GT, _GE, EQUAL, IN, NOT_EQUAL, HAS_ANCESTOR, NOT_IN = 1, 2, 3, 4, 5, 6, 9, 11, 13
_OPERATORS = (_LT, _LE, _GT, _GE, EQUAL, IN, NOT_EQUAL, HAS_ANCESTOR, NOT_IN)
_AND, _OR = 1, 2
_ANY_OF = -1  # Key under which the operators' OR is counted


class Range(NamedTuple):
    """The encoded values (or paths) between two bounds.

    A bound of None means that the range is unbounded on that side.
    """

    low: bytes | None = None
    high: bytes | None = None
    is_low_open: bool = False
    is_high_open: bool = False

    def narrow(self, operator: int, value: bytes) -> Range:
        """Return the part of the range that also satisfies an inequality."""
        if operator in (_GT, _GE):
            is_open = operator == _GT
            if self.low is not None and (self.low, self.is_low_open) >= (value, is_open):
                return self
            return Range(value, self.high, is_open, self.is_high_open)
        is_open = operator == _LT
        if self.high is not None and (self.high, not self.is_high_open) <= (value, not is_open):
            return self
        return Range(self.low, value, self.is_low_open, is_open)

    def contains(self, value: bytes) -> bool:
        """Return whether a value lies between the bounds."""
        if self.low is not None and (value < self.low or (self.is_low_open and value == self.low)):
            return False
        return self.high is None or (
            value <= self.high and not (self.is_high_open and value == self.high)
        )

    @property
    def is_empty(self) -> bool:
        """Whether no value can lie between the bounds."""
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (
            self.low == self.high and (self.is_low_open or self.is_high_open)
        )

    @property
    def is_point(self) -> bool:
        """Whether exactly one value lies between the bounds."""
        return self.low is not None and self.low == self.high and not self.is_empty


# The ranges are ascending and disjoint. If there are no ranges, no value can match the filter.
Ranges = tuple[Range, ...]
EVERYTHING: Ranges = (Range(),)


class Condition(NamedTuple):
    """A comparison with a single value. IN matches its value in the same way as EQUAL."""

    name: str
    operator: int
    value: bytes


Conjunction = frozenset[Condition]


class Disjunct(NamedTuple):
    """One conjunction of the filter's disjunctive normal form.

    `equalities` may contain a property twice, because an array can contain both values. `ranges`
    contains the properties that no equality fixes; `key_ranges` contains the ranges of `__key__`.
    `inequalities` contains the properties whose ranges order the results, possibly including
    `__key__`. `compared` contains the properties that the client compares with `=`.
    """

    equalities: tuple[tuple[str, bytes], ...] = ()
    ranges: tuple[tuple[str, Ranges], ...] = ()
    key_ranges: Ranges = EVERYTHING
    inequalities: frozenset[str] = frozenset()
    compared: frozenset[str] = frozenset()

    @property
    def is_void(self) -> bool:
        """Whether no entity can match the conjunction, regardless of the stored data."""
        return not self.key_ranges or not all(ranges for _, ranges in self.ranges)


class Filter(NamedTuple):
    """A whole filter: its branches, their common ancestor, and the properties that it names."""

    branches: tuple[Disjunct, ...] = (Disjunct(),)
    ancestor: bytes | None = None
    names: frozenset[str] = frozenset()


def parse(given: protobufs.Filter, partition: keys.Partition) -> Filter:
    """Check a filter and convert it to disjunctive normal form.

    Raises:
        errors.InvalidArgument: The filter is invalid, regardless of the stored data.
    """
    tally: dict[int, int] = collections.defaultdict(int)
    conjunctions = _read(given, partition, tally)
    _check_tally(tally)
    ancestor = _ancestor_of(conjunctions[0])
    if any(_ancestor_of(conjunction) != ancestor for conjunction in conjunctions[1:]):
        raise errors.InvalidArgument("All disjunctions must have the same HAS_ANCESTOR filter.")
    return Filter(
        branches=tuple(
            dict.fromkeys(map(_branch, conjunctions))
            if conjunctions[1:]
            else map(_branch, conjunctions)
        ),
        ancestor=ancestor,
        names=frozenset(
            condition.name for conjunction in conjunctions for condition in conjunction
        ),
    )


def _check_tally(tally: dict[int, int]) -> None:
    if tally[NOT_EQUAL] > 1:
        raise errors.InvalidArgument("A query may have only one NOT_EQUAL filter.")
    if tally[NOT_IN] and (
        tally[NOT_IN] > 1 or any(tally[operator] for operator in (_ANY_OF, IN, NOT_EQUAL))
    ):
        raise errors.InvalidArgument(
            "A NOT_IN filter cannot be combined with OR, IN, NOT_EQUAL or another NOT_IN."
        )


def _read(
    given: protobufs.Filter, partition: keys.Partition, tally: dict[int, int]
) -> list[Conjunction]:
    match given.WhichOneof("filter_type"):
        case "composite_filter":
            return _read_composite(given.composite_filter, partition, tally)
        case "property_filter":
            return _read_property(given.property_filter, partition, tally)
        case _:
            raise errors.InvalidArgument(
                "A filter must be a composite filter or a property filter."
            )


def _read_composite(
    given: protobufs.CompositeFilter, partition: keys.Partition, tally: dict[int, int]
) -> list[Conjunction]:
    if given.op not in (_AND, _OR):
        raise errors.InvalidArgument("A composite filter's operator is not set.")
    if not given.filters:
        raise errors.InvalidArgument("A composite filter must have at least one filter.")
    parts = [_read(part, partition, tally) for part in given.filters]
    if given.op == _AND:
        return functools.reduce(_conjoin, parts)
    tally[_ANY_OF] += len(parts) > 1
    return _deduplicate(conjunction for part in parts for conjunction in part)


def _conjoin(left: list[Conjunction], right: list[Conjunction]) -> list[Conjunction]:
    for one in left:
        for other in right:
            if _ancestor_of(one) is not None and _ancestor_of(other) is not None:
                raise errors.InvalidArgument("duplicate ancestor or parent constraint")
    return _deduplicate(one | other for one in left for other in right)


def _deduplicate(conjunctions: Iterable[Conjunction]) -> list[Conjunction]:
    unique = list(dict.fromkeys(conjunctions))
    if len(unique) > MAX_DISJUNCTIONS:
        raise errors.InvalidArgument(
            f"The query has more than {MAX_DISJUNCTIONS} disjunctions in disjunctive normal form."
        )
    return unique


def _ancestor_of(conjunction: Conjunction) -> bytes | None:
    for condition in conjunction:
        if condition.operator == HAS_ANCESTOR:
            return condition.value
    return None


def _read_property(
    given: protobufs.PropertyFilter, partition: keys.Partition, tally: dict[int, int]
) -> list[Conjunction]:
    name, operator = given.property.name, given.op
    if not name:
        raise errors.InvalidArgument("A filter's property name is the empty string.")
    if operator not in _OPERATORS:
        raise errors.InvalidArgument(f"The operator of the filter on {name} is unset or unknown.")
    if operator == HAS_ANCESTOR and name != KEY:
        raise errors.InvalidArgument("HAS_ANCESTOR applies only to the property __key__.")
    tally[operator] += 1
    if operator == IN:
        members = _members(name, "IN", given.value, partition)
        return _deduplicate(frozenset((Condition(name, IN, member),)) for member in sorted(members))
    if operator == NOT_IN:
        members = _members(name, "NOT_IN", given.value, partition)
        return [frozenset(Condition(name, NOT_EQUAL, member) for member in members)]
    return [frozenset((Condition(name, operator, _operand(name, given.value, partition)),))]


def _members(
    name: str, operator: str, value: protobufs.Value, partition: keys.Partition
) -> list[bytes]:
    if value.WhichOneof("value_type") != "array_value" or not value.array_value.values:
        raise errors.InvalidArgument(
            f"'{operator}' property filter for '{name}' requires a non-empty ArrayValue"
        )
    if operator == "NOT_IN" and len(value.array_value.values) > MAX_EXCLUDED:
        raise errors.InvalidArgument(f"A NOT_IN filter takes at most {MAX_EXCLUDED} values.")
    _check_is_indexed(name, value)
    return [_operand(name, element, partition) for element in value.array_value.values]


def _operand(name: str, value: protobufs.Value, partition: keys.Partition) -> bytes:
    _check_is_indexed(name, value)
    if name == KEY:
        return _key_operand(value, partition)
    kind = value.WhichOneof("value_type")
    if kind in _NO_VALUES:
        raise errors.InvalidArgument(f"The filter on {name} cannot compare with {kind}.")
    if kind == "key_value" and not (value.key_value.path and keys.is_complete(value.key_value)):
        raise errors.InvalidArgument(f"The key in the filter on {name} is incomplete.")
    return values.encode(value, partition)


def _check_is_indexed(name: str, value: protobufs.Value) -> None:
    if value.exclude_from_indexes:
        raise errors.InvalidArgument(f"The filter value for {name} is excluded from indexes.")


def _key_operand(value: protobufs.Value, partition: keys.Partition) -> bytes:
    if value.WhichOneof("value_type") != "key_value":
        raise errors.InvalidArgument("__key__ filter value must be a Key")
    key = value.key_value
    if not key.path or not all(map(_is_whole, key.path)):
        raise errors.InvalidArgument("A key in a filter must be complete.")
    if keys.partition_of(key, partition) != partition:
        raise errors.InvalidArgument("A key in a filter is not in the query's partition.")
    return keys.encode_path(key)


def _is_whole(element: protobufs.PathElement) -> bool:
    return bool(element.kind) and bool(element.id or element.name)


def _branch(conjunction: Conjunction) -> Disjunct:
    equalities: set[tuple[str, bytes]] = set()
    compared: set[str] = set()
    is_key_equal = False
    ranges: dict[str, Ranges] = {}
    for condition in sorted(conjunction):
        is_equal = condition.operator in (EQUAL, IN)
        if condition.operator == EQUAL:
            compared.add(condition.name)
        if is_equal and condition.name != KEY:
            equalities.add((condition.name, condition.value))
        elif condition.operator != HAS_ANCESTOR:
            is_key_equal = is_key_equal or is_equal
            ranges[condition.name] = _narrow(ranges.get(condition.name, EVERYTHING), condition)
    if not ranges:
        return Disjunct(tuple(sorted(equalities)), compared=frozenset(compared))
    key_ranges = ranges.pop(KEY, EVERYTHING)
    equalities |= {(name, point) for name, parts in ranges.items() for point in _points(parts)}
    ranges = {
        name: parts
        for name, parts in ranges.items()
        # If an equality's value lies in the range, that value also satisfies the inequality.
        if not any(name == other and _has_value(parts, value) for other, value in equalities)
    }
    inequalities = set(ranges)
    if key_ranges != EVERYTHING and not _points(key_ranges) and not is_key_equal:
        inequalities.add(KEY)
    return Disjunct(
        equalities=tuple(sorted(equalities)),
        ranges=tuple(ranges.items()),
        key_ranges=key_ranges,
        inequalities=frozenset(inequalities),
        compared=frozenset(compared),
    )


def _narrow(ranges: Ranges, condition: Condition) -> Ranges:
    """Return the parts of the ranges that also satisfy a condition."""
    operator, value = condition.operator, condition.value
    parts: list[Range] = []
    for part in ranges:
        if operator == NOT_EQUAL:
            parts += (part.narrow(_LT, value), part.narrow(_GT, value))
        elif operator in (EQUAL, IN):
            parts.append(part.narrow(_GE, value).narrow(_LE, value))
        else:
            parts.append(part.narrow(operator, value))
    return tuple(part for part in parts if not part.is_empty)


def _points(ranges: Ranges) -> list[bytes]:
    """Return a list with the only value that the ranges allow, or else an empty list."""
    low = ranges[0].low if len(ranges) == 1 and ranges[0].is_point else None
    return [] if low is None else [low]


def _has_value(ranges: Ranges, value: bytes) -> bool:
    return any(part.contains(value) for part in ranges)
