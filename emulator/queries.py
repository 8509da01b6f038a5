"""A query as the client meant it: checked, with its filters in disjunctive normal form.

Owns the rules about what may be asked, apart from indexes. Pure: it knows no data and no index.
"""

from __future__ import annotations

from dataclasses import dataclass

from emulator import errors, keys, messages, values

KEY = "__key__"
MAX_DISJUNCTIONS = 30
_NO_VALUES = (None, "entity_value", "array_value")

_LT, _LE, _GT, _GE, _EQ, _IN, _NE, _HAS_ANCESTOR, _NOT_IN = 1, 2, 3, 4, 5, 6, 9, 11, 13
_INEQUALITIES = (_LT, _LE, _GT, _GE)
_UNIMPLEMENTED = {_NE: "A NOT_EQUAL filter", _NOT_IN: "A NOT_IN filter"}
_AND, _OR = 1, 2
_DESCENDING = 2


@dataclass(frozen=True, slots=True)
class Order:
    """One sort order."""

    name: str
    is_descending: bool


@dataclass(frozen=True, slots=True)
class Range:
    """The encoded values (or paths) between two bounds. None is no bound."""

    low: bytes | None = None
    high: bytes | None = None
    is_low_open: bool = False
    is_high_open: bool = False

    def narrowed(self, operator: int, value: bytes) -> Range:
        """Return the part of the range that also meets one inequality."""
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
        """Tell whether a value lies between the bounds."""
        if self.low is not None and (value < self.low or (self.is_low_open and value == self.low)):
            return False
        return self.high is None or (
            value <= self.high and not (self.is_high_open and value == self.high)
        )

    @property
    def is_empty(self) -> bool:
        """Tell whether no value can lie between the bounds."""
        if self.low is None or self.high is None:
            return False
        return self.low > self.high or (
            self.low == self.high and (self.is_low_open or self.is_high_open)
        )

    @property
    def is_point(self) -> bool:
        """Tell whether exactly one value lies between the bounds."""
        return self.low is not None and self.low == self.high and not self.is_empty


@dataclass(frozen=True, slots=True)
class Branch:
    """One conjunction of the filter's disjunctive normal form.

    `equalities` may name a property twice: an array may hold both values. `inequality` is the range
    of `Query.inequality`, `key_range` that of `__key__`.
    """

    equalities: tuple[tuple[str, bytes], ...]
    inequality: Range | None
    key_range: Range | None


@dataclass(frozen=True, slots=True)
class Query:
    """A checked query.

    `orders` begins with the inequality property and never names a property that all results
    share. `projection` holds names, none for whole entities.
    """

    partition: keys.Partition
    kind: str | None
    ancestor: bytes | None
    branches: tuple[Branch, ...]
    orders: tuple[Order, ...]
    projection: tuple[str, ...]
    is_keys_only: bool


@dataclass(slots=True)
class _Conditions:
    """The filter, taken apart."""

    equalities: list[tuple[str, bytes]]
    choices: list[tuple[str, list[bytes]]]
    ranges: dict[str, Range]
    ancestors: list[bytes]


def parse(query: messages.Query, partition: keys.Partition) -> Query:
    """Check a query message.

    Raises:
        errors.InvalidArgument: no data could make the query legal.
        errors.Unimplemented: the query is legal, this engine does not serve it.
    """
    _refuse_unimplemented(query)
    kind = _kind_of(query)
    conditions = _Conditions([], [], {}, [])
    if query.HasField("filter"):
        _read_filter(query.filter, partition, conditions)
    inequality = _inequality_of(conditions)
    branches = _branches(conditions, inequality)
    fixed = {name for name, _ in conditions.equalities}
    orders = _orders_of(query, fixed, inequality if _is_ranged(branches) else None)
    projection = _projection_of(query, fixed)
    if kind is None:
        _check_kindless(conditions, query.order, projection)
    return Query(
        partition=partition,
        kind=kind,
        ancestor=conditions.ancestors[0] if conditions.ancestors else None,
        branches=branches,
        orders=orders,
        projection=() if projection == (KEY,) else projection,
        is_keys_only=projection == (KEY,),
    )


def _refuse_unimplemented(query: messages.Query) -> None:
    if query.distinct_on:
        raise errors.Unimplemented("Query.distinct_on")
    if query.HasField("find_nearest"):
        raise errors.Unimplemented("Query.find_nearest")


def _kind_of(query: messages.Query) -> str | None:
    if not query.kind:
        return None
    if len(query.kind) > 1:
        raise errors.InvalidArgument("A query may name at most one kind.")
    kind: str = query.kind[0].name
    if not kind:
        raise errors.InvalidArgument("The kind is the empty string.")
    return kind


def _read_filter(
    given: messages.Filter, partition: keys.Partition, conditions: _Conditions
) -> None:
    match given.WhichOneof("filter_type"):
        case "composite_filter":
            composite = given.composite_filter
            if composite.op not in (_AND, _OR):
                raise errors.InvalidArgument("A composite filter's operator is not set.")
            if not composite.filters:
                raise errors.InvalidArgument("A composite filter must have at least one filter.")
            if composite.op == _OR and len(composite.filters) > 1:
                raise errors.Unimplemented("An OR filter")
            for part in composite.filters:
                _read_filter(part, partition, conditions)
        case "property_filter":
            _read_property_filter(given.property_filter, partition, conditions)
        case _:
            raise errors.InvalidArgument("A filter is neither composite nor on a property.")


def _read_property_filter(
    given: messages.PropertyFilter, partition: keys.Partition, conditions: _Conditions
) -> None:
    name = given.property.name
    if not name:
        raise errors.InvalidArgument("A filter's property name is the empty string.")
    if given.value.exclude_from_indexes:
        raise errors.InvalidArgument(f"The filter value for {name} is excluded from indexes.")
    _check_operator(name, given.op)
    match given.op:
        case _ if given.op == _IN:
            conditions.choices.append((name, _choices(name, given.value, partition)))
        case _ if given.op == _HAS_ANCESTOR:
            _add_ancestor(name, given.value, partition, conditions)
        case _ if given.op == _EQ and name != KEY:
            conditions.equalities.append((name, _operand(name, given.value, partition)))
        case _:
            _narrow(name, given.op, _operand(name, given.value, partition), conditions)


def _check_operator(name: str, operator: int) -> None:
    if operator in _UNIMPLEMENTED:
        raise errors.Unimplemented(_UNIMPLEMENTED[operator])
    if operator not in (_EQ, _IN, _HAS_ANCESTOR, *_INEQUALITIES):
        raise errors.InvalidArgument(f"The operator of the filter on {name} is unset or unknown.")


def _narrow(name: str, operator: int, value: bytes, conditions: _Conditions) -> None:
    for each in (_GE, _LE) if operator == _EQ else (operator,):
        conditions.ranges[name] = conditions.ranges.get(name, Range()).narrowed(each, value)


def _operand(name: str, value: messages.Value, partition: keys.Partition) -> bytes:
    if name == KEY:
        return _key_operand(value, partition, "__key__ filter value must be a Key")
    kind = value.WhichOneof("value_type")
    if kind in _NO_VALUES:
        raise errors.InvalidArgument(f"The filter on {name} cannot compare with {kind}.")
    if kind == "key_value" and not (value.key_value.path and keys.is_complete(value.key_value)):
        raise errors.InvalidArgument(f"The key in the filter on {name} is incomplete.")
    return values.encode(value, partition)


def _key_operand(value: messages.Value, partition: keys.Partition, complaint: str) -> bytes:
    if value.WhichOneof("value_type") != "key_value":
        raise errors.InvalidArgument(complaint)
    key = value.key_value
    if not key.path or not all(map(_is_whole, key.path)):
        raise errors.InvalidArgument("A key in a filter must be complete.")
    if keys.partition_of(key, partition) != partition:
        raise errors.InvalidArgument("A key in a filter is of another partition than the query.")
    return keys.encode_path(key)


def _is_whole(element: messages.PathElement) -> bool:
    return bool(element.kind) and bool(element.id or element.name)


def _choices(name: str, value: messages.Value, partition: keys.Partition) -> list[bytes]:
    if value.WhichOneof("value_type") != "array_value" or not value.array_value.values:
        raise errors.InvalidArgument(
            f"'IN' property filter for '{name}' requires a non-empty ArrayValue"
        )
    return sorted({_operand(name, each, partition) for each in value.array_value.values})


def _add_ancestor(
    name: str, value: messages.Value, partition: keys.Partition, conditions: _Conditions
) -> None:
    if name != KEY:
        raise errors.InvalidArgument("HAS_ANCESTOR is only for the property __key__.")
    if conditions.ancestors:
        raise errors.InvalidArgument("duplicate ancestor or parent constraint")
    path = _key_operand(value, partition, "The ancestor must be a Key.")
    conditions.ancestors.append(path)


def _inequality_of(conditions: _Conditions) -> str | None:
    """Return the property whose range orders the results; ranges of one value are equalities."""
    open_ranges = []
    for name, limits in list(conditions.ranges.items()):
        if limits.is_point and name != KEY and limits.low is not None:
            conditions.equalities.append((name, limits.low))
            del conditions.ranges[name]
        elif not limits.is_point:
            open_ranges.append(name)
    if len(open_ranges) > 1:
        raise errors.Unimplemented("Inequality filters on more than one property")
    return open_ranges[0] if open_ranges else None


def _branches(conditions: _Conditions, inequality: str | None) -> tuple[Branch, ...]:
    combinations: list[tuple[tuple[str, bytes], ...]] = [()]
    for name, choices in conditions.choices:
        combinations = [(*each, (name, value)) for each in combinations for value in choices]
        if len(combinations) > MAX_DISJUNCTIONS:
            raise errors.InvalidArgument(
                f"The query has more than {MAX_DISJUNCTIONS} disjunctions in disjunctive normal "
                "form."
            )
    found = [_branch(conditions, inequality, each) for each in combinations]
    return tuple(branch for branch in found if branch is not None)


def _branch(
    conditions: _Conditions, inequality: str | None, chosen: tuple[tuple[str, bytes], ...]
) -> Branch | None:
    equalities = {*conditions.equalities, *(pair for pair in chosen if pair[0] != KEY)}
    key_range = conditions.ranges.get(KEY)
    for name, path in chosen:
        if name == KEY:
            key_range = (key_range or Range()).narrowed(_GE, path).narrowed(_LE, path)
    limits = conditions.ranges[inequality] if inequality and inequality != KEY else None
    if (limits and limits.is_empty) or (key_range and key_range.is_empty):
        return None
    # An equal value that lies in the range meets the inequality too.
    if limits and any(name == inequality and limits.contains(at) for name, at in equalities):
        limits = None
    return Branch(tuple(sorted(equalities)), limits, key_range)


def _is_ranged(branches: tuple[Branch, ...]) -> bool:
    """Tell whether an inequality is left that orders the results."""
    return any(
        branch.inequality or (branch.key_range and not branch.key_range.is_point)
        for branch in branches
    )


def _orders_of(query: messages.Query, fixed: set[str], inequality: str | None) -> tuple[Order, ...]:
    orders: dict[str, Order] = {}
    for given in query.order:
        name = given.property.name
        if not name:
            raise errors.InvalidArgument("An order's property name is the empty string.")
        if name not in fixed or name == inequality:
            orders.setdefault(name, Order(name, given.direction == _DESCENDING))
        if name == KEY:
            break
    if inequality is None:
        return tuple(orders.values())
    if not query.order:
        return (Order(inequality, is_descending=False),)
    if next(iter(orders), None) != inequality:
        raise errors.InvalidArgument(
            "The first sort property must be the same as the property to which the inequality "
            "filter is applied. In your query the first sort property is "
            f"{query.order[0].property.name} but the inequality filter is on {inequality}"
        )
    return tuple(orders.values())


def _projection_of(query: messages.Query, fixed: set[str]) -> tuple[str, ...]:
    names = tuple(each.property.name for each in query.projection)
    if len(set(names)) < len(names):
        raise errors.InvalidArgument("A projection names a property twice.")
    for name in names:
        if not name:
            raise errors.InvalidArgument("A projection's property name is the empty string.")
        if name in fixed:
            raise errors.InvalidArgument(
                f"cannot use projection on a property with an equality filter: {name}"
            )
        if name == KEY and len(names) > 1:
            raise errors.InvalidArgument("__key__ cannot be projected together with properties.")
    return names


def _check_kindless(
    conditions: _Conditions, orders: messages.Orders, projection: tuple[str, ...]
) -> None:
    named = {name for name, _ in (*conditions.equalities, *conditions.choices)}
    if (named | set(conditions.ranges)) - {KEY}:
        raise errors.InvalidArgument("kind is required for non-__key__ filters")
    if any(order.property.name != KEY or order.direction == _DESCENDING for order in orders):
        raise errors.InvalidArgument("kind is required for all orders except __key__ ascending")
    if projection not in ((), (KEY,)):
        raise errors.InvalidArgument("kind is required for a projection")
