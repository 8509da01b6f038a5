"""Query messages: check them and complete their sort orders.

Owns the rules for valid queries, except the rules for filters (`filters`) and for indexes
(`planner`). The parser is pure: it uses no data and no index.

The resulting orders are the actual orders of the results, without any property that has the same
value in all results. Properties with inequalities come first, followed by the properties of
distinct_on. If the client does not order by these properties, they are added in ascending order
after the given orders. In every branch, an order requires that its property exists. For example, b
orders the results of `a = 1 OR b > 2`, so this query finds no entity that lacks b.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import keys
from datastore_emulator.queries import filters

KEY = filters.KEY
MAX_INEQUALITIES = 10  # Maximum number of properties
_RESERVED = re.compile(r"__.*__", re.DOTALL)
_DESCENDING = 2


class Order(NamedTuple):
    """One sort order."""

    name: str
    is_descending: bool


class Query(NamedTuple):
    """A checked query.

    `projection` contains the names of the projected properties; it is empty for whole entities or
    keys. The projection never contains `__key__`: every result includes its key, so projecting the
    key along with properties changes nothing. If several results agree in the first `distinct`
    orders, only the first result is returned; None returns all results.
    """

    partition: keys.Partition
    kind: str | None
    ancestor: bytes | None
    branches: tuple[filters.Disjunct, ...]
    orders: tuple[Order, ...]
    projection: tuple[str, ...]
    is_keys_only: bool
    distinct: int | None


def parse(query: protobufs.Query, partition: keys.Partition) -> Query:
    """Check a query message.

    Raises:
        errors.InvalidArgument: The query is invalid, regardless of the stored data.
        errors.Unimplemented: The query is valid, but this engine does not support it.
    """
    if query.HasField("find_nearest"):
        raise errors.Unimplemented("Query.find_nearest")
    kind = _kind_of(query)
    given = filters.parse(query.filter, partition) if query.HasField("filter") else filters.Filter()
    fixed = _fixed_properties(given.branches)
    grouped = _distinct_properties(query, fixed)
    orders = _orders(query, fixed, grouped, _inequalities(given.branches))
    projection = _projection(query, given.branches)
    if kind is None:
        _check_kindless(query, given)
    return Query(
        partition=partition,
        kind=kind,
        ancestor=given.ancestor,
        branches=given.branches,
        orders=orders,
        projection=tuple(name for name in projection if name != KEY),
        is_keys_only=projection == (KEY,),
        distinct=len(grouped) if query.distinct_on else None,
    )


def _kind_of(query: protobufs.Query) -> str | None:
    if not query.kind:
        return None
    if len(query.kind) > 1:
        raise errors.InvalidArgument("A query may name at most one kind.")
    kind: str = query.kind[0].name
    if not kind:
        raise errors.InvalidArgument("The kind is the empty string.")
    return kind


def _fixed_properties(branches: tuple[filters.Disjunct, ...]) -> set[str]:
    """Return the properties that equalities fix to the same value in all results."""
    if len(branches) == 1:
        return {name for name, _ in branches[0].equalities}
    equalities = [set(branch.equalities) for branch in branches]
    return {
        name
        for name, _ in equalities[0]
        if all(_of(name, pairs) == _of(name, equalities[0]) for pairs in equalities)
    }


def _of(name: str, equalities: set[tuple[str, bytes]]) -> set[bytes]:
    return {value for other, value in equalities if other == name}


def _inequalities(branches: tuple[filters.Disjunct, ...]) -> set[str]:
    names = set().union(*(branch.inequalities for branch in branches))
    if len(names) > MAX_INEQUALITIES:
        raise errors.InvalidArgument(
            f"A query may have inequality filters on at most {MAX_INEQUALITIES} properties."
        )
    return names


def _distinct_properties(query: protobufs.Query, fixed: set[str]) -> list[str]:
    """Return the properties that make results distinct."""
    names = list(dict.fromkeys(reference.name for reference in query.distinct_on))
    for name in names:
        if not name or name == KEY:
            raise errors.InvalidArgument(f'Results cannot be distinct on the property "{name}".')
    return [name for name in names if name not in fixed]


def _orders(
    query: protobufs.Query, fixed: set[str], grouped: list[str], inequalities: set[str]
) -> tuple[Order, ...]:
    given = _given_orders(query, fixed - inequalities)
    if not inequalities and not grouped:
        return given
    _check_inequalities_first(given, inequalities)
    missing = sorted(inequalities - {KEY} - {order.name for order in given})
    if not given and grouped and not set(missing) <= set(grouped):
        raise errors.InvalidArgument(
            f"The inequality property {missing[0]} must be among the properties of distinct_on."
        )
    missing += [
        name for name in grouped if name not in {*missing, *(order.name for order in given)}
    ]
    if given and given[-1].name == KEY and missing:
        raise errors.InvalidArgument(f"{missing[0]} must be ordered before __key__.")
    orders = (*given, *(Order(name, is_descending=False) for name in missing))
    if {order.name for order in orders[: len(grouped)]} != set(grouped):
        raise errors.InvalidArgument(
            "items in the group by clause must be specified first in the ordering"
        )
    return orders


def _given_orders(query: protobufs.Query, ignored: set[str]) -> tuple[Order, ...]:
    orders: dict[str, Order] = {}
    is_total = False
    for given in query.order:
        name = given.property.name
        if not name:
            raise errors.InvalidArgument("An order's property name is the empty string.")
        if name not in ignored and not is_total:
            orders.setdefault(name, Order(name, given.direction == _DESCENDING))
        is_total = is_total or name == KEY
    return tuple(orders.values())


def _check_inequalities_first(given: tuple[Order, ...], inequalities: set[str]) -> None:
    wanted = set(inequalities)
    for order in given:
        if not wanted:
            return
        if order.name not in wanted:
            raise errors.InvalidArgument(
                "The first sort property must be the same as the property to which the inequality "
                f"filter is applied. In your query the first sort property is {given[0].name} but "
                f"the inequality filter is on {', '.join(sorted(inequalities))}"
            )
        wanted.remove(order.name)


def _projection(query: protobufs.Query, branches: tuple[filters.Disjunct, ...]) -> tuple[str, ...]:
    if not query.projection:
        return ()
    names = tuple(column.property.name for column in query.projection)
    if len(set(names)) < len(names):
        raise errors.InvalidArgument("A projection names a property twice.")
    for name in names:
        if not name:
            raise errors.InvalidArgument("A projection's property name is the empty string.")
        if name != KEY and _RESERVED.fullmatch(name):
            raise errors.InvalidArgument(f"The property {name} cannot be projected.")
        if all(name in branch.compared for branch in branches) and name != KEY:
            raise errors.InvalidArgument(
                f"cannot use projection on a property with an equality filter: {name}"
            )
    return names


def _check_kindless(query: protobufs.Query, given: filters.Filter) -> None:
    if given.names - {KEY}:
        raise errors.InvalidArgument("kind is required for non-__key__ filters")
    if any(order.property.name != KEY or order.direction == _DESCENDING for order in query.order):
        raise errors.InvalidArgument("kind is required for all orders except __key__ ascending")
    if any(column.property.name != KEY for column in query.projection):
        raise errors.InvalidArgument("kind is required for a projection")
    if query.distinct_on:
        raise errors.InvalidArgument("kind is required for distinct_on")
