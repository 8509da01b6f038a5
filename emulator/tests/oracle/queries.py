"""The oracle's queries: a tree of filters, and the rules for valid queries.

This module owns the disjunctive normal form, a query's effective orders, and the decision about
which queries are refused or need a composite index. It uses no data.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from emulator.tests.oracle import values
from emulator.tests.oracle.values import KEY, Key, Rank

INEQUALITIES = ("<", "<=", ">", ">=")
EXCLUSIONS = ("!=", "not in")
MAX_DISJUNCTIONS = 30
MAX_EXCLUDED = 10


@dataclass(frozen=True, slots=True)
class Compare:
    """One filter: name, operator and operand. The operand of `in` and `not in` is a tuple."""

    name: str
    operator: str
    operand: Any


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Filter, ...]


Filter = Compare | And | Or


@dataclass(frozen=True, slots=True)
class Order:
    name: str
    is_descending: bool = False


@dataclass(frozen=True)
class Query:
    """A query on one partition, without paging. It has no slots because it caches values."""

    kind: str | None
    filter: Filter | None = None
    orders: tuple[Order, ...] = ()
    projection: tuple[str, ...] = ()
    distinct: tuple[str, ...] = ()
    namespace: str = ""
    database: str = ""

    @property
    def is_keys_only(self) -> bool:
        return self.projection == (KEY,)

    @property
    def projected(self) -> tuple[str, ...]:
        return tuple(name for name in self.projection if name != KEY)

    @property
    def place(self) -> tuple[str, str]:
        return self.database, self.namespace

    @functools.cached_property
    def branches(self) -> tuple[Branch, ...]:
        """The filter's disjunctive normal form, in which IN is an OR of equalities."""
        return tuple(map(Branch, _conjunctions(self.filter)))

    @functools.cached_property
    def orders_in_full(self) -> tuple[Order, ...]:
        """The given orders that have an effect, then those implied by inequalities and distinct."""
        given = given_orders(self)
        named = {each.name for each in given}
        implied = [*sorted(inequality_names(self) - {KEY}), *grouped_names(self)]
        return (*given, *map(Order, dict.fromkeys(each for each in implied if each not in named)))

    @functools.cached_property
    def columns(self) -> tuple[Order, ...]:
        """A position's columns. The key comes last if no order names it."""
        named = {each.name for each in self.orders_in_full}
        # Values after the key have its direction, so that the reversed query gives them reversed.
        is_descending = Order(KEY, is_descending=True) in self.orders_in_full
        rest = tuple(Order(name, is_descending) for name in self.projected if name not in named)
        key = () if KEY in named else (Order(KEY),)
        return (*self.orders_in_full, *rest, *key)

    @functools.cached_property
    def existing(self) -> frozenset[str]:
        """The properties that every result must have."""
        names = {each.name for each in self.columns} | inequality_names(self)
        return frozenset((names | set(self.projection) | set(self.distinct)) - {KEY})

    def reversed(self) -> Query:
        return replace(
            self, orders=tuple(Order(each.name, not each.is_descending) for each in self.orders)
        )


@dataclass(frozen=True)
class Branch:
    """One conjunction of the normal form; all its leaves must match."""

    leaves: tuple[Compare, ...]

    @functools.cached_property
    def equalities(self) -> dict[str, frozenset[Rank]]:
        """The values that equalities require for each property."""
        found: dict[str, set[Rank]] = {}
        for leaf in self.leaves:
            if leaf.operator in ("=", "member"):
                found.setdefault(leaf.name, set()).add(operand_rank(leaf.name, leaf.operand))
        return {name: frozenset(ranks) for name, ranks in found.items()}

    @functools.cached_property
    def settled(self) -> dict[str, frozenset[Rank]]:
        """The equalities, and pairs of inequalities that amount to an equality: >= x with <= x."""
        found = dict(self.equalities)
        for name in self.ranged:
            mine = [leaf for leaf in self.leaves if leaf.name == name]
            lows = {operand_rank(name, leaf.operand) for leaf in mine if leaf.operator == ">="}
            highs = {operand_rank(name, leaf.operand) for leaf in mine if leaf.operator == "<="}
            for point in lows & highs:
                if self.admits(name, point):
                    found[name] = found.get(name, frozenset()) | {point}
        return found

    @functools.cached_property
    def ranged(self) -> frozenset[str]:
        """The properties that inequalities compare."""
        operators = (*INEQUALITIES, *EXCLUSIONS)
        return frozenset(leaf.name for leaf in self.leaves if leaf.operator in operators)

    @functools.cached_property
    def inequalities(self) -> frozenset[str]:
        """The properties with inequalities that no required value already satisfies."""
        return frozenset(
            name
            for name in self.ranged
            if not any(self.admits(name, each) for each in self.settled.get(name, ()))
            and not (name == KEY and KEY in self.settled)
        )

    @functools.cached_property
    def ancestors(self) -> tuple[Key, ...]:
        return tuple(leaf.operand for leaf in self.leaves if leaf.operator == "under")

    def admits(self, name: str, found: Rank) -> bool:
        """Return whether a value satisfies all inequalities on a property."""
        return all(
            meets(leaf, found)
            for leaf in self.leaves
            if leaf.name == name and leaf.operator not in ("=", "member", "under")
        )


def operand_rank(name: str, operand: Any) -> Rank:
    return values.path_rank(operand) if name == KEY else values.rank(operand)


def meets(leaf: Compare, found: Rank) -> bool:  # noqa: PLR0911 - one line for each operator
    """Return whether a value matches a filter."""
    if leaf.operator in ("in", "not in"):
        is_in = found in {operand_rank(leaf.name, each) for each in leaf.operand}
        return is_in == (leaf.operator == "in")
    wanted = operand_rank(leaf.name, leaf.operand)
    match leaf.operator:
        case "=" | "member":
            return found == wanted
        case "!=":
            return found != wanted
        case "<":
            return found < wanted
        case "<=":
            return found <= wanted
        case ">":
            return found > wanted
        case _:
            return found >= wanted


def leaves(given: Filter | None) -> Iterator[Compare]:
    if isinstance(given, Compare):
        yield given
    elif given is not None:
        for part in given.parts:
            yield from leaves(part)


def _conjunctions(given: Filter | None) -> list[tuple[Compare, ...]]:
    match given:
        case None:
            return [()]
        case Compare(name, "in", operand):
            return [(Compare(name, "member", each),) for each in operand]
        case Compare():
            return [(given,)]
        case Or(parts):
            return [each for part in parts for each in _conjunctions(part)]
        case And(parts):
            products = itertools.product(*map(_conjunctions, parts))
            return [tuple(itertools.chain(*each)) for each in products]


def inequality_names(query: Query) -> set[str]:
    """Return the properties with inequalities that order the results."""
    return set().union(*(branch.inequalities for branch in query.branches))


def fixed_names(query: Query) -> set[str]:
    """Return the properties for which every branch requires the same values."""
    first, *others = query.branches
    return {
        name
        for name, ranks in first.settled.items()
        if name != KEY and all(other.settled.get(name) == ranks for other in others)
    }


def grouped_names(query: Query) -> list[str]:
    """Return the properties by which distinct results differ."""
    fixed = fixed_names(query)
    return [name for name in dict.fromkeys(query.distinct) if name not in fixed]


def given_orders(query: Query) -> tuple[Order, ...]:
    """Return the client's orders without those that have no effect."""
    ignored = fixed_names(query) - inequality_names(query)
    found: dict[str, Order] = {}
    for each in query.orders:
        if each.name not in ignored:
            found.setdefault(each.name, each)
        if each.name == KEY:
            break
    return tuple(found.values())


def has_open_order(query: Query) -> bool:
    """Return whether only the index decides the order of some projected columns."""
    named = {each.name for each in query.orders_in_full}
    return KEY not in named and len(set(query.projected) - named) > 1


def complaints(query: Query) -> list[str]:
    """Return the reasons why a query is INVALID_ARGUMENT regardless of the data."""
    return [*_filter_complaints(query), *_order_complaints(query), *_shape_complaints(query)]


def _filter_complaints(query: Query) -> Iterator[str]:
    every = list(leaves(query.filter))
    for leaf in every:
        operands = leaf.operand if leaf.operator in ("in", "not in") else (leaf.operand,)
        if not operands:
            yield "an empty choice"
        if leaf.name == KEY and not all(isinstance(each, Key) for each in operands):
            yield "a __key__ filter without a key"
        elif leaf.name == KEY and any(each.place != query.place for each in operands):
            yield "a key elsewhere"
    yield from _exclusion_complaints(query, every)
    if len({_conditions(branch) for branch in query.branches}) > MAX_DISJUNCTIONS:
        yield "too many disjunctions"
    under = [branch.ancestors for branch in query.branches]
    if any(len(each) > 1 for each in under) or len(set(under)) > 1:
        yield "ancestors"


def _exclusion_complaints(query: Query, every: list[Compare]) -> Iterator[str]:
    operators = [leaf.operator for leaf in every]
    excluded = [leaf for leaf in every if leaf.operator == "not in"]
    if operators.count("!=") + len(excluded) > 1:
        yield "two exclusions"
    if excluded and ("in" in operators or _has_or(query.filter)):
        yield "not in with a disjunction"
    if any(len(leaf.operand) > MAX_EXCLUDED for leaf in excluded):
        yield "too many excluded values"


def _conditions(branch: Branch) -> frozenset[tuple[str, str, Rank]]:
    """Return a conjunction as a set, in which each condition occurs only once."""
    return frozenset(
        (leaf.name, leaf.operator, operand_rank(leaf.name, leaf.operand))
        for leaf in branch.leaves
        if leaf.operator != "not in"
    )


def _has_or(given: Filter | None) -> bool:
    match given:
        case Or(parts) if len(parts) > 1:
            return True
        case Or(parts) | And(parts):
            return any(map(_has_or, parts))
        case _:
            return False


def _order_complaints(query: Query) -> Iterator[str]:
    given = given_orders(query)
    awaited = inequality_names(query)
    for each in given[: len(awaited)]:
        if each.name not in awaited:
            yield "an inequality that does not come first"
    grouped = grouped_names(query)
    if not given and grouped and not awaited - {KEY} <= set(grouped):
        yield "an inequality that is not distinct"
    full = query.orders_in_full
    if {each.name for each in full[: len(grouped)]} != set(grouped):
        yield "distinct that does not come first"
    if KEY in {each.name for each in full[:-1]}:
        yield "an order after the key"


def _shape_complaints(query: Query) -> Iterator[str]:
    if len(set(query.projection)) < len(query.projection):
        yield "projected twice"
    compared: list[set[str]] = [
        {each.name for each in b.leaves if each.operator == "="} for b in query.branches
    ]
    if set(query.projected).intersection(*compared):
        yield "a projected equality"
    if query.kind is None:
        if any(leaf.name != KEY for leaf in leaves(query.filter)):
            yield "a kindless filter"
        if any(each != Order(KEY) for each in query.orders) or query.projected or query.distinct:
            yield "a kindless order"


def needs_index(query: Query) -> bool | None:
    """Return whether a query needs an index from index.yaml, or None if the engine may decide."""
    if query.kind is None:
        return False
    verdicts = {_branch_needs_index(query, branch) for branch in query.branches}
    if True in verdicts:
        return True
    return None if None in verdicts else False


def _branch_needs_index(query: Query, branch: Branch) -> bool | None:
    equal = set(branch.settled) - {KEY}
    fixed = equal - branch.inequalities
    # The values after the key come from the entities.
    columns = itertools.takewhile(lambda each: each.name != KEY, query.columns)
    varying = [each for each in columns if each.name not in fixed]
    if Order(KEY, is_descending=True) in query.columns:
        return True
    if varying and (KEY in branch.ranged or KEY in branch.equalities):
        return None
    return bool(varying) and (len(varying) > 1 or bool(equal) or bool(branch.ancestors))
