"""Queries answered by looking at every entity: what the engine's walks are compared with.

Written from the rules of the API alone, over plain Python values. Nothing here is encoded, scanned
or merged; a result is found by trying all ways in which an entity can meet the filter.

An entity is `(path, values)`: the path of its key as a tuple of kinds and names, and for each
indexed property the set of its values. A filter is `(name, operator, value)`, or "and" or "or" and
filters. `Asked` is a whole query, `answer` its results: pairs of a path and the projected values.
"""

import dataclasses
import functools
import itertools
import math

MAX_DISJUNCTS = 30
KEY = "__key__"


class Refused(Exception):
    """The rules forbid the query."""


@dataclasses.dataclass(frozen=True)
class Asked:
    """One query; orders are (name, descends), `under` is the ancestor's path."""

    where: tuple | None = None
    order: tuple = ()
    projection: tuple = ()
    distinct: tuple = ()


def rank(value):
    """Return what a value sorts by: its type, then its worth."""
    match value:
        case None:
            return (0,)
        case bool():
            return (2, value)
        case int():
            return (1, value)
        case bytes():
            return (3, value)
        case str():
            return (4, value.encode())
        case float():
            return (5, math.isnan(value), 0 if math.isnan(value) else value, str(value))
    raise TypeError(value)


def path_rank(path):
    """Return what a key sorts by: kind and name, element by element; ids come before names."""
    return tuple(
        (kind.encode(), isinstance(name, str), name.encode() if isinstance(name, str) else name)
        for kind, name in zip(path[::2], path[1::2], strict=True)
    )


def leaves(tree):
    if tree[0] in ("and", "or"):
        return [leaf for part in tree[1:] for leaf in leaves(part)]
    return [tree]


def operators(tree):
    """Return all operators, an OR that is a choice included."""
    found = [leaf[1] for leaf in leaves(tree)]
    trees = [tree]
    while trees:
        each = trees.pop()
        if each[0] in ("and", "or"):
            found += ["or"] if each[0] == "or" and len(each) > 2 else []
            trees += each[1:]
    return found


def alternatives(tree):
    """Return the disjuncts of a filter as sets of `(name, operator, rank)`."""
    if tree is None:
        return {frozenset()}
    if tree[0] == "or":
        return set().union(*map(alternatives, tree[1:]))
    if tree[0] == "and":
        combined = itertools.product(*map(alternatives, tree[1:]))
        return {frozenset().union(*each) for each in combined}
    name, operator, value = tree
    ranked = path_rank if name == KEY else rank
    if operator == "in":
        return {frozenset([(name, "in", ranked(each))]) for each in value}
    if operator == "not in":
        return {frozenset((name, "!=", ranked(each)) for each in value)}
    return {frozenset([(name, operator, ranked(value))])}


HOLDS = {
    "<": lambda have, asked: have < asked,
    "<=": lambda have, asked: have <= asked,
    ">": lambda have, asked: have > asked,
    ">=": lambda have, asked: have >= asked,
    "!=": lambda have, asked: have != asked,
    "=": lambda have, asked: have == asked,
    "in": lambda have, asked: have == asked,
    "under": lambda have, asked: have[: len(asked)] == asked,
}
EQUAL = ("=", "in")


class Disjunct:
    """One way to meet the filter."""

    def __init__(self, conditions):
        self.keys = [each[1:] for each in conditions if each[0] == KEY]
        self.equal = {}
        self.limits = {}
        for name, operator, value in conditions:
            if name != KEY:
                kind = self.equal if operator in EQUAL else self.limits
                kind.setdefault(name, set()).add(value if kind is self.equal else (operator, value))
        for name, limits in list(self.limits.items()):
            low = {value for operator, value in limits if operator == ">="}
            for value in low & {value for operator, value in limits if operator == "<="}:
                if self.within(name, value):
                    self.equal.setdefault(name, set()).add(value)
            if any(self.within(name, value) for value in self.equal.get(name, ())):
                del self.limits[name]

    def within(self, name, value):
        return all(HOLDS[operator](value, asked) for operator, asked in self.limits[name])

    @property
    def inequalities(self):
        ranged = {
            (operator, value) for operator, value in self.keys if operator not in (*EQUAL, "under")
        }
        is_fixed = any(operator in EQUAL for operator, _ in self.keys) or any(
            (">=", value) in ranged
            and ("<=", value) in ranged
            and all(HOLDS[other](value, limit) for other, limit in ranged)
            for _, value in ranged
        )
        return set(self.limits) | ({KEY} if ranged and not is_fixed else set())

    def choices(self, entity, name):
        """Return the values by which an entity can sort in this disjunct."""
        have = entity[1].get(name, set())
        if name in self.limits:
            return {value for value in have if self.within(name, value)}
        return self.equal.get(name, have)

    def is_met(self, entity):
        path, have = entity
        return (
            all(HOLDS[operator](path_rank(path), asked) for operator, asked in self.keys)
            and all(values <= have.get(name, set()) for name, values in self.equal.items())
            and all(self.choices(entity, name) for name in self.limits)
        )


@functools.total_ordering
class Down:
    """Sorts the other way round."""

    def __init__(self, worth):
        self.worth = worth

    def __eq__(self, other):
        return self.worth == other.worth

    def __lt__(self, other):
        return other.worth < self.worth

    def __hash__(self):
        return hash(self.worth)


def shape(asked):
    """Return a query's disjuncts, complete orders and groups, or refuse it."""
    found = alternatives(asked.where)
    if len(found) > MAX_DISJUNCTS:
        raise Refused
    if asked.where:
        check_operators(operators(asked.where))
    ancestors = [{value for _, operator, value in each if operator == "under"} for each in found]
    if any(each != ancestors[0] for each in ancestors):
        raise Refused
    disjuncts = [Disjunct(each) for each in found]
    equal = [each.equal for each in disjuncts]
    fixed = {name for name in equal[0] if all(e.get(name) == equal[0][name] for e in equal)}
    inequalities = set().union(*(each.inequalities for each in disjuncts))
    compared = [{name for name, operator, _ in each if operator == "="} for each in found]
    if len(asked.projection) > 1 and KEY in asked.projection:
        raise Refused
    if any(name != KEY and all(name in each for each in compared) for name in asked.projection):
        raise Refused
    order = complete(asked, fixed, inequalities)
    return disjuncts, order, [name for name in asked.distinct if name not in fixed]


def check_operators(used):
    if used.count("!=") > 1 or used.count("not in") > 1:
        raise Refused
    if "not in" in used and {"or", "in", "!="} & set(used):
        raise Refused


def complete(asked, fixed, inequalities):
    """Return the orders that the results really have."""
    order = [each for each in asked.order if each[0] not in fixed - inequalities]
    order = [each for place, each in enumerate(order) if each[0] not in dict(order[:place])]
    names = [name for name, _ in order]
    if KEY in names:
        order = order[: names.index(KEY) + 1]
    names = [name for name, _ in order]
    missing = sorted(inequalities - set(names) - {KEY})
    ahead = names[: len(inequalities)]
    if not set(ahead) <= inequalities:
        raise Refused
    grouped = [name for name in asked.distinct if name not in fixed]
    if not names and grouped and not set(missing) <= set(grouped):
        raise Refused
    missing += [name for name in grouped if name not in names and name not in missing]
    if names and names[-1] == KEY and missing:
        raise Refused
    order += [(name, False) for name in missing]
    if {name for name, _ in order[: len(grouped)]} != set(grouped):
        raise Refused
    return order


def answer(entities, asked):
    """Return the results of a query, in order."""
    disjuncts, order, grouped = shape(asked)
    projection = [] if asked.projection == (KEY,) else list(asked.projection)
    named = [name for name, _ in order if name != KEY]
    columns = named + [name for name in projection if name not in named]
    down = dict(order)
    first = {}
    for entity, disjunct in itertools.product(entities, disjuncts):
        if disjunct.is_met(entity):
            for chosen in itertools.product(*(disjunct.choices(entity, n) for n in columns)):
                values = dict(zip(columns, chosen, strict=True))
                place = [Down(values[n]) if down.get(n) else values[n] for n in columns]
                key = path_rank(entity[0])
                place.append(Down(key) if down.get(KEY) else key)
                result = (entity[0], tuple(values[name] for name in projection))
                group = tuple(values[name] for name in grouped)
                first[result] = min(first.get(result, (place, group)), (place, group))
    found = sorted((*where, result) for result, where in first.items())
    if not asked.distinct:
        return [result for _, _, result in found]
    groups = {}
    for _, group, result in found:
        groups.setdefault(group, result)
    return list(groups.values())
