"""The query planner: choose the index scans that serve a query.

Owns the choice of the scans for a query, and of the index.yaml entries to recommend if no existing
index serves the query. Pure.

A branch is served by a built-in or composite index, or by a join of several such indexes. The
entries of such an index begin with a prefix of values that equality filters fix, and end with the
values that order the results, in that order. The index must contain these values even if only a
different branch's inequality needs them. A filter that no entity can match still requires its
indexes, because the values in a query must not affect whether the query is allowed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from datastore_emulator import errors
from datastore_emulator.encoding import index_yaml, indexes, keys, values
from datastore_emulator.queries import filters, parser, query_plan

KEY = parser.KEY
Columns = tuple[tuple[str, bool], ...]


def plan(query: parser.Query, composites: Sequence[indexes.Index]) -> query_plan.QueryPlan:
    """Choose the scans that serve a query.

    Raises:
        errors.MissingIndex: The query needs indexes that are missing from index.yaml.
    """
    if query.kind is None:
        return _plan_kindless(query)
    ordered = tuple(
        (order.name, order.is_descending) for order in query.orders if order.name != KEY
    )
    is_key_descending = any(order.name == KEY and order.is_descending for order in query.orders)
    candidates = [index for index in composites if index.kind == query.kind]
    wanted: list[indexes.Index] = []
    trailing = _trailing_properties(query, ordered)
    for columns in _column_choices(query, ordered, candidates, trailing):
        directions = tuple(is_descending for _, is_descending in columns)
        shape = query_plan.QueryPlan(query, (), columns, is_key_descending, directions, trailing)
        needs = [_Need(branch, _varying_columns(shape, branch)) for branch in query.branches]
        served = [(need, _serve(shape, need, candidates)) for need in needs]
        if all(scans for _, scans in served):
            branches = (_branches(shape, need, scans) for need, scans in served)
            return shape._replace(branches=tuple(itertools.chain.from_iterable(branches)))
        wanted = wanted or [_index_for(shape, need) for need, scans in served if not scans]
    raise errors.MissingIndex("".join(map(index_yaml.entry, dict.fromkeys(wanted))))


def _plan_kindless(query: parser.Query) -> query_plan.QueryPlan:
    scans = (query_plan.Scan(None, query.partition.encoded),)
    branches = [
        query_plan.MergeJoin(scans, _key_spans(query, branch, is_descending=False))
        for branch in query.branches
    ]
    return query_plan.QueryPlan(query, tuple(branches), (), is_key_descending=False, directions=())


def _trailing_properties(query: parser.Query, ordered: Columns) -> tuple[str, ...]:
    """Return the projected properties that come after the key in the query's order."""
    if all(order.name != KEY for order in query.orders):
        return ()
    named = dict(ordered)
    return tuple(name for name in query.projection if name not in named)


def _column_choices(
    query: parser.Query,
    ordered: Columns,
    candidates: list[indexes.Index],
    trailing: tuple[str, ...],
) -> Iterator[Columns]:
    """Yield each possible list of columns for a position.

    Projected properties without an order come after the ordered properties, in the same sequence as
    in one of the indexes.
    """
    named = {*dict(ordered), *trailing}
    extra = [name for name in query.projection if name not in named]
    yield (*ordered, *((name, False) for name in extra))
    for index in candidates if extra else ():
        tail = index.properties[-len(extra) :]
        if sorted(name for name, _ in tail) == sorted(extra):
            yield (*ordered, *tail)


def _varying_columns(
    shape: query_plan.QueryPlan, branch: filters.Disjunct
) -> dict[int, tuple[str, bool]]:
    """Return the columns that a branch does not fix, keyed by their place in a position."""
    if not shape.columns:
        return {}
    fixed = {name for name, _ in branch.equalities} - dict(branch.ranges).keys()
    return {place: column for place, column in enumerate(shape.columns) if column[0] not in fixed}


class _Need(NamedTuple):
    """A branch of the query, and the columns that the branch does not fix, keyed by their place."""

    branch: filters.Disjunct
    varying: dict[int, tuple[str, bool]]


# An index whose entries end with the required suffix, and the columns before that suffix.
_Candidate = tuple[indexes.Index, Columns]


def _serve(
    shape: query_plan.QueryPlan, need: _Need, composites: list[indexes.Index]
) -> tuple[query_plan.Scan, ...]:
    """Choose the scans for a branch; return an empty tuple if no index serves it."""
    query = shape.query
    suffix = tuple(need.varying.values())
    fixed = dict(need.branch.equalities)
    has_ancestor = query.ancestor is not None
    needs_ancestor = has_ancestor and bool(suffix or shape.is_key_descending)
    candidates = []
    for index in (*_builtins(query, fixed, suffix), *composites):
        if index.is_key_descending != shape.is_key_descending:
            continue
        if has_ancestor if index.has_ancestor else not needs_ancestor:
            prefix = _prefix(index, fixed, suffix)
            if prefix is not None:
                candidates.append((index, prefix))
    return _cover(candidates, need.branch.equalities, query.ancestor)


def _builtins(
    query: parser.Query, fixed: Iterable[str], suffix: Columns
) -> Iterator[indexes.Index]:
    kind = query.kind or ""
    yield indexes.builtin(kind)
    for name in fixed:
        yield indexes.builtin(kind, name)
    for name, is_descending in suffix[:1]:
        yield indexes.builtin(kind, name, is_descending=is_descending)


def _prefix(index: indexes.Index, fixed: dict[str, bytes], suffix: Columns) -> Columns | None:
    """Return an index's columns before a suffix, or None if the branch does not fix all of them."""
    split = len(index.properties) - len(suffix)
    if split < 0 or index.properties[split:] != suffix:
        return None
    prefix = index.properties[:split]
    names = {name for name, _ in prefix}
    return prefix if len(names) == len(prefix) and names <= fixed.keys() else None


def _cover(
    candidates: list[_Candidate],
    equalities: tuple[tuple[str, bytes], ...],
    ancestor: bytes | None,
) -> tuple[query_plan.Scan, ...]:
    """Choose scans that together cover all equalities; prefer long prefixes."""
    if not equalities:
        bare = [index for index, prefix in candidates if not prefix]
        return (_scan(bare[0], [], ancestor),) if bare else ()
    open_pairs = list(equalities)
    scans = []
    while open_pairs:
        # Pick one value for each property, preferably one that no chosen scan covers yet.
        picked = {pair[0]: pair for pair in (*equalities, *open_pairs)}
        gains = [sum(picked[name] in open_pairs for name, _ in prefix) for _, prefix in candidates]
        most = max(gains, default=0)
        if not most:
            return ()
        index, prefix = candidates[gains.index(most)]
        fixed = [
            values.complement(picked[name][1]) if is_descending else picked[name][1]
            for name, is_descending in prefix
        ]
        scans.append(_scan(index, fixed, ancestor))
        met = [picked[name] for name, _ in prefix]
        open_pairs = [pair for pair in open_pairs if pair not in met]
    return tuple(scans)


def _scan(index: indexes.Index, fixed: list[bytes], ancestor: bytes | None) -> query_plan.Scan:
    above = ancestor if index.has_ancestor and ancestor is not None else b""
    return query_plan.Scan(index, above + b"".join(fixed))


def _branches(
    shape: query_plan.QueryPlan, need: _Need, scans: tuple[query_plan.Scan, ...]
) -> Iterator[query_plan.MergeJoin]:
    """Yield the plan branches for one query branch."""
    branch, varying = need
    directions = tuple(is_descending for _, is_descending in varying.values())
    spans = _spans(shape, branch, list(varying.values()))
    single = _single(branch) if varying else None
    if single is not None and keys.kind_of(single) != shape.query.kind:
        spans = [()]
    for constants in itertools.product(*_constants(shape, branch, varying)):
        yield query_plan.MergeJoin(
            scans=scans,
            segments=() if branch.is_void else spans[0],
            constants=constants,
            spans=()
            if all(value_spans == query_plan.ANYTHING for value_spans in spans[1:])
            else tuple(spans),
            directions=directions,
            single=single,
            trailing=tuple(_fixed_values(branch, name) for name in shape.trailing),
        )


def _fixed_values(branch: filters.Disjunct, name: str) -> tuple[bytes, ...] | None:
    """Return the values that a branch's equalities fix for a property, or None."""
    return tuple(value for other, value in branch.equalities if other == name) or None


def _single(branch: filters.Disjunct) -> bytes | None:
    """Return the only key that can match a branch, or None if there is not exactly one."""
    ranges = branch.key_ranges
    return ranges[0].low if len(ranges) == 1 and ranges[0].is_point else None


def _constants(
    shape: query_plan.QueryPlan, branch: filters.Disjunct, varying: dict[int, tuple[str, bool]]
) -> list[list[tuple[int, bytes]]]:
    """Return the possible values for each fixed place in a position.

    Equalities may fix several values of an array. The array sorts by the first of these values;
    only a projection returns all of them.
    """
    constants = []
    for place, (name, is_descending) in enumerate(shape.columns):
        if place in varying:
            continue
        fixed = sorted(
            values.complement(value) if is_descending else value
            for other, value in branch.equalities
            if other == name
        )
        if name not in shape.query.projection:
            fixed = fixed[:1]
        constants.append([(place, value) for value in fixed])
    return constants


def _spans(
    shape: query_plan.QueryPlan, branch: filters.Disjunct, varying: list[tuple[str, bool]]
) -> list[query_plan.Spans]:
    """Return the spans for each value of a suffix and for its key."""
    ranges = dict(branch.ranges)
    value_spans = [
        query_plan.spans(ranges.get(name, filters.EVERYTHING), is_descending=is_descending)
        for name, is_descending in varying
    ]
    return [*value_spans, _key_spans(shape.query, branch, is_descending=shape.is_key_descending)]


def _key_spans(
    query: parser.Query, branch: filters.Disjunct, *, is_descending: bool
) -> query_plan.Spans:
    spans = query_plan.spans(branch.key_ranges, is_descending=is_descending)
    if query.ancestor is None or is_descending:
        return spans
    return query_plan.within(keys.descendants(query.ancestor), spans)


def _index_for(shape: query_plan.QueryPlan, need: _Need) -> indexes.Index:
    """Return the single index that would serve a branch."""
    prefix = sorted({(name, False) for name, _ in need.branch.equalities})
    return indexes.Index(
        kind=shape.query.kind or "",
        properties=(*prefix, *need.varying.values()),
        has_ancestor=shape.query.ancestor is not None,
        is_key_descending=shape.is_key_descending,
    )
