"""The choice of indexes: from a query to a plan.

Owns which scans serve a query, and which index.yaml entries are recommended if none do. Pure.

A branch is served by a built-in or composite index whose entries end with the values that order the
results, in that order, behind a prefix of equality filters; or by several such indexes, joined. The
values must be there even if only another branch's inequality asks for them. A filter that nothing
can meet asks for its indexes all the same: whether a query is legal must not depend on its values.

Nothing here may ever sort entities or look at one: a query that no index serves is refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from emulator import errors, filters, indexes, keys, plans, queries, values

KEY = queries.KEY
Columns = tuple[tuple[str, bool], ...]


def plan(query: queries.Query, composites: Sequence[indexes.Index]) -> plans.Plan:
    """Choose the scans that serve a query.

    Raises:
        errors.MissingIndex: index.yaml would have to name more indexes.
    """
    if query.kind is None:
        return _plan_kindless(query)
    ordered = tuple((each.name, each.is_descending) for each in query.orders if each.name != KEY)
    is_key_descending = any(each.name == KEY and each.is_descending for each in query.orders)
    candidates = [index for index in composites if index.kind == query.kind]
    wanted: list[indexes.Index] = []
    for columns in _column_choices(query, ordered, candidates):
        shape = plans.Plan(query, (), columns, is_key_descending)
        found = [(branch, _serve(shape, branch, candidates)) for branch in query.branches]
        if all(scans for _, scans in found):
            branches = (_branches(shape, branch, scans) for branch, scans in found)
            return plans.Plan(
                query, tuple(itertools.chain.from_iterable(branches)), columns, is_key_descending
            )
        wanted = wanted or [_wanted(shape, branch) for branch, scans in found if not scans]
    raise errors.MissingIndex("".join(map(indexes.to_yaml, dict.fromkeys(wanted))))


def _plan_kindless(query: queries.Query) -> plans.Plan:
    scans = (plans.Scan(None, query.partition.encoded),)
    branches = [
        plans.Branch(scans, _key_spans(query, each, is_descending=False)) for each in query.branches
    ]
    return plans.Plan(query, tuple(branches), (), is_key_descending=False)


def _column_choices(
    query: queries.Query, ordered: Columns, candidates: list[indexes.Index]
) -> Iterator[Columns]:
    """Yield the columns that a position may have.

    Projected properties that nothing orders come behind those that are, as some index has them.
    """
    named = dict(ordered)
    extra = [name for name in query.projection if name not in named]
    if extra and any(each.name == KEY for each in query.orders):
        # No index holds a value behind the key.
        raise errors.Unimplemented(f"A projection of {extra[0]} with an order by __key__ before it")
    yield (*ordered, *((name, False) for name in extra))
    for index in candidates if extra else ():
        tail = index.properties[-len(extra) :]
        if sorted(name for name, _ in tail) == sorted(extra):
            yield (*ordered, *tail)


def _varying(shape: plans.Plan, branch: filters.Branch) -> dict[int, tuple[str, bool]]:
    """Return the columns that a branch does not fix, by their place."""
    fixed = {name for name, _ in branch.equalities} - dict(branch.ranges).keys()
    return {place: each for place, each in enumerate(shape.columns) if each[0] not in fixed}


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An index whose entries end with the suffix that is wanted."""

    index: indexes.Index
    prefix: Columns


def _serve(
    shape: plans.Plan, branch: filters.Branch, composites: list[indexes.Index]
) -> tuple[plans.Scan, ...]:
    """Choose the scans of a branch; none if no index serves it."""
    query = shape.query
    suffix = tuple(_varying(shape, branch).values())
    needs_ancestor = query.ancestor is not None and bool(suffix or shape.is_key_descending)
    candidates = [
        found
        for index in (*_builtins(query, branch, suffix), *composites)
        if (index.has_ancestor or not needs_ancestor)
        and (not index.has_ancestor or query.ancestor is not None)
        and (found := _candidate(shape, branch, index, suffix))
    ]
    return _cover(candidates, branch.equalities, query.ancestor)


def _builtins(query: queries.Query, branch: filters.Branch, suffix: Columns) -> list[indexes.Index]:
    kind = query.kind or ""
    found = [indexes.builtin(kind)]
    found += [indexes.builtin(kind, name) for name in dict(branch.equalities)]
    found += [indexes.builtin(kind, name, is_descending=down) for name, down in suffix[:1]]
    return list(dict.fromkeys(found))


def _candidate(
    shape: plans.Plan, branch: filters.Branch, index: indexes.Index, suffix: Columns
) -> _Candidate | None:
    split = len(index.properties) - len(suffix)
    if split < 0 or index.properties[split:] != suffix:
        return None
    if index.is_key_descending != shape.is_key_descending:
        return None
    prefix = index.properties[:split]
    names = [name for name, _ in prefix]
    if len(set(names)) < len(names) or not set(names) <= dict(branch.equalities).keys():
        return None
    return _Candidate(index, prefix)


def _cover(
    candidates: list[_Candidate],
    equalities: tuple[tuple[str, bytes], ...],
    ancestor: bytes | None,
) -> tuple[plans.Scan, ...]:
    """Choose scans that together meet all equalities, the longest prefixes first."""
    if not equalities:
        bare = [each for each in candidates if not each.prefix]
        return (_scan(bare[0].index, [], ancestor),) if bare else ()
    open_pairs = list(equalities)
    scans = []
    while open_pairs:
        best: list[tuple[str, bytes]] = []
        best_candidate = None
        for candidate in candidates:
            pairs = _pairs(candidate, open_pairs, equalities)
            gain = len(set(pairs) & set(open_pairs))
            if gain > len(set(best) & set(open_pairs)):
                best, best_candidate = pairs, candidate
        if best_candidate is None:
            return ()
        down = [is_descending for _, is_descending in best_candidate.prefix]
        fixed = [
            values.complement(value) if is_descending else value
            for (_, value), is_descending in zip(best, down, strict=True)
        ]
        scans.append(_scan(best_candidate.index, fixed, ancestor))
        open_pairs = [pair for pair in open_pairs if pair not in best]
    return tuple(scans)


def _pairs(
    candidate: _Candidate,
    open_pairs: list[tuple[str, bytes]],
    equalities: tuple[tuple[str, bytes], ...],
) -> list[tuple[str, bytes]]:
    """Pick a value for each property of a prefix, one that is still to be met if there is one."""
    ranked = {name: (name, value) for name, value in (*equalities, *open_pairs)}
    return [ranked[name] for name, _ in candidate.prefix]


def _scan(index: indexes.Index, fixed: list[bytes], ancestor: bytes | None) -> plans.Scan:
    above = ancestor if index.has_ancestor and ancestor is not None else b""
    return plans.Scan(index, above + b"".join(fixed))


def _branches(
    shape: plans.Plan, branch: filters.Branch, scans: tuple[plans.Scan, ...]
) -> Iterator[plans.Branch]:
    """Yield the branches of a plan that walk one of a query's."""
    varying = _varying(shape, branch)
    directions = tuple(is_descending for _, is_descending in varying.values())
    spans = _spans(shape, branch, list(varying.values()))
    single = _single(branch) if varying else None
    if single is not None and keys.kind_of(single) != shape.query.kind:
        spans = [()]
    for constants in itertools.product(*_constants(shape, branch, varying)):
        yield plans.Branch(
            scans=scans,
            segments=() if branch.is_void else spans[0],
            constants=constants,
            spans=() if all(each == plans.ANYTHING for each in spans[1:]) else tuple(spans),
            directions=directions,
            single=single,
        )


def _single(branch: filters.Branch) -> bytes | None:
    """Return the only key that can meet a branch."""
    ranges = branch.key_ranges
    return ranges[0].low if len(ranges) == 1 and ranges[0].is_point else None


def _constants(
    shape: plans.Plan, branch: filters.Branch, varying: dict[int, tuple[str, bool]]
) -> list[list[tuple[int, bytes]]]:
    """Return for each fixed place of a position the values that it takes in turn.

    Equalities may fix several values of an array. It sorts by the first of them; only a projection
    gives them all.
    """
    found = []
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
        found.append([(place, value) for value in fixed])
    return found


def _spans(
    shape: plans.Plan, branch: filters.Branch, varying: list[tuple[str, bool]]
) -> list[plans.Spans]:
    """Return the spans of each value of a suffix, and of its key."""
    ranges = dict(branch.ranges)
    found = [
        plans.spans(ranges.get(name, filters.EVERYTHING), is_descending=is_descending)
        for name, is_descending in varying
    ]
    return [*found, _key_spans(shape.query, branch, is_descending=shape.is_key_descending)]


def _key_spans(query: queries.Query, branch: filters.Branch, *, is_descending: bool) -> plans.Spans:
    found = plans.spans(branch.key_ranges, is_descending=is_descending)
    if query.ancestor is None or is_descending:
        return found
    return plans.within(keys.descendants(query.ancestor), found)


def _wanted(shape: plans.Plan, branch: filters.Branch) -> indexes.Index:
    """Return the one index that would serve a branch."""
    prefix = sorted({(name, False) for name, _ in branch.equalities})
    return indexes.Index(
        kind=shape.query.kind or "",
        properties=(*prefix, *_varying(shape, branch).values()),
        has_ancestor=shape.query.ancestor is not None,
        is_key_descending=shape.is_key_descending,
    )
