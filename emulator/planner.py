"""From a query to range scans of index entries.

Owns the choice of indexes and the arithmetic of positions. Pure.

A plan is a union of branches (one for each conjunction), a branch a merge join of scans. An index
entry is `prefix + suffix`: the prefix holds what equality filters fix, the suffix the values that
order the results and the key. All scans of a branch have the same kind of suffix, so the join is
one walk along equal suffixes; all branches give the same kind of *position*, so the union is a
merge by position. A position is the suffix, with the values put back in that a branch fixes (IN on
a property that also orders). Positions are total, and cursors hold nothing else.

Nothing here may ever sort entities or look at one: a query that no index serves is refused.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from emulator import cursors, errors, indexes, keys, queries, values

KEY = queries.KEY


@dataclass(frozen=True, slots=True)
class Scan:
    """The entries of one index that begin with `prefix`. No index: the entities by key."""

    index: indexes.Index | None
    prefix: bytes


@dataclass(frozen=True, slots=True)
class Branch:
    """A merge join of scans over suffixes in [low, high).

    `constants` are the values (encoded as in a descending or ascending entry) that the position has
    and the suffix lacks, by their place in the position.
    """

    scans: tuple[Scan, ...]
    low: bytes
    high: bytes
    constants: tuple[tuple[int, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """How to walk the results of a query in order.

    `columns` are the names and directions of the position's values; its key follows them.
    """

    query: queries.Query
    branches: tuple[Branch, ...]
    columns: tuple[tuple[str, bool], ...]
    is_key_descending: bool

    @property
    def directions(self) -> tuple[bool, ...]:
        """Tell for each value of a position whether it is complemented."""
        return tuple(is_descending for _, is_descending in self.columns)

    def position(self, branch: Branch, suffix: bytes) -> bytes:
        """Put a branch's constants into a suffix."""
        if not branch.constants:
            return suffix
        fixed = dict(branch.constants)
        varying = tuple(
            is_descending
            for place, is_descending in enumerate(self.directions)
            if place not in fixed
        )
        parts = iter(values.split(suffix, varying))
        places = range(len(self.columns) + 1)
        return b"".join(fixed[place] if place in fixed else next(parts) for place in places)

    def suffix_from(self, branch: Branch, position: bytes, *, past: bool) -> bytes:
        """Return the first suffix of a branch at a position, or past it."""
        end = b"\x00" if past else b""
        if not branch.constants or not position or position == values.ABOVE:
            return position and position + end
        fixed = dict(branch.constants)
        suffix = b""
        for place, part in enumerate(values.split(position, self.directions)):
            constant = fixed.get(place, part)
            if constant != part:
                return suffix if constant > part else suffix + values.ABOVE
            if place not in fixed:
                suffix += part
        return suffix + end

    def path(self, position: bytes) -> bytes:
        """Return the encoded key path that a position ends with."""
        path = values.split(position, self.directions)[-1] if self.columns else position
        return values.complement(path) if self.is_key_descending else path

    def projected(self, position: bytes) -> tuple[bytes, ...]:
        """Return the encoded values of the projected properties."""
        if not self.query.projection:
            return ()
        parts = values.split(position, self.directions)
        found = {
            name: values.complement(part) if is_descending else part
            for (name, is_descending), part in zip(self.columns, parts, strict=False)
        }
        return tuple(found[name] for name in self.query.projection)


def bounds(
    plan: Plan, branch: Branch, start: cursors.Position, end: cursors.Position | None
) -> tuple[bytes, bytes]:
    """Return the suffixes [low, high) of a branch between two cursors."""
    low = plan.suffix_from(branch, start.after, past=not start.is_before)
    high = branch.high
    if end is not None:
        high = min(high, plan.suffix_from(branch, end.after, past=not end.is_before))
    return max(low, branch.low), high


def plan(query: queries.Query, composites: Sequence[indexes.Index]) -> Plan:
    """Choose the scans that serve a query.

    Raises:
        errors.MissingIndex: index.yaml would have to name one more index.
    """
    ordered = [(each.name, each.is_descending) for each in query.orders if each.name != KEY]
    is_key_descending = any(each.name == KEY and each.is_descending for each in query.orders)
    if query.kind is None:
        return _plan_kindless(query)
    candidates = [index for index in composites if index.kind == query.kind]
    for columns in _column_choices(query, ordered, candidates):
        planned = Plan(query, (), tuple(columns), is_key_descending)
        found = [_plan_branch(planned, branch, candidates) for branch in query.branches]
        if all(found):
            branches = tuple(branch for branch in found if branch is not None)
            return Plan(query, branches, tuple(columns), is_key_descending)
    raise errors.MissingIndex(_recommendation(query, ordered, is_key_descending))


def _plan_kindless(query: queries.Query) -> Plan:
    scan = Scan(None, query.partition.encoded)
    branches = []
    for branch in query.branches:
        low, high = _key_bounds(query, branch, is_descending=False)
        branches.append(Branch((scan,), low, high))
    return Plan(query, tuple(branches), (), is_key_descending=False)


def _column_choices(
    query: queries.Query, ordered: list[tuple[str, bool]], candidates: list[indexes.Index]
) -> Iterator[list[tuple[str, bool]]]:
    """Yield the columns that a position may have.

    Projected properties that nothing orders come behind those that are, as some index has them.
    """
    named = {name for name, _ in ordered}
    extra = {name for name in query.projection if name not in named}
    if not extra:
        yield ordered
        return
    if len(extra) == 1:
        yield [*ordered, (next(iter(extra)), False)]
    for index in candidates:
        tail = list(index.properties[len(index.properties) - len(extra) :])
        if {name for name, _ in tail} == extra:
            yield [*ordered, *tail]


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An index whose entries end with the suffix that is wanted."""

    index: indexes.Index
    prefix: tuple[tuple[str, bool], ...]


def _plan_branch(
    planned: Plan, branch: queries.Branch, composites: list[indexes.Index]
) -> Branch | None:
    query = planned.query
    constants = _constants(planned, branch)
    fixed = dict(constants)
    suffix = tuple(column for place, column in enumerate(planned.columns) if place not in fixed)
    needs_ancestor = query.ancestor is not None and bool(suffix or planned.is_key_descending)
    candidates = [
        found
        for index in (*_builtins(query, branch, suffix), *composites)
        if (index.has_ancestor or not needs_ancestor)
        and (not index.has_ancestor or query.ancestor is not None)
        and (found := _candidate(index, suffix, branch, planned.is_key_descending))
    ]
    scans = _cover(candidates, branch.equalities, query.ancestor)
    if scans is None:
        return None
    low, high = _suffix_bounds(planned, branch, suffix)
    return Branch(scans, low, high, constants)


def _constants(planned: Plan, branch: queries.Branch) -> tuple[tuple[int, bytes], ...]:
    fixed: dict[str, list[bytes]] = {}
    for name, value in branch.equalities:
        fixed.setdefault(name, []).append(value)
    ranged = planned.columns[0][0] if branch.inequality and planned.columns else None
    return tuple(
        (place, values.complement(fixed[name][0]) if is_descending else fixed[name][0])
        for place, (name, is_descending) in enumerate(planned.columns)
        if len(fixed.get(name, ())) == 1 and name != ranged
    )


def _builtins(
    query: queries.Query, branch: queries.Branch, suffix: tuple[tuple[str, bool], ...]
) -> list[indexes.Index]:
    kind = query.kind or ""
    found = [indexes.builtin(kind)]
    found += [indexes.builtin(kind, name) for name in dict(branch.equalities)]
    found += [indexes.builtin(kind, name, is_descending=down) for name, down in suffix[:1]]
    return list(dict.fromkeys(found))


def _candidate(
    index: indexes.Index,
    suffix: tuple[tuple[str, bool], ...],
    branch: queries.Branch,
    is_key_descending: bool,  # noqa: FBT001 - a part of the suffix
) -> _Candidate | None:
    split = len(index.properties) - len(suffix)
    if split < 0 or index.properties[split:] != suffix:
        return None
    if index.is_key_descending != is_key_descending:
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
) -> tuple[Scan, ...] | None:
    """Choose scans that together meet all equalities, the longest prefixes first."""
    if not equalities:
        bare = [each for each in candidates if not each.prefix]
        return (_scan(bare[0].index, [], ancestor),) if bare else None
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
            return None
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


def _scan(index: indexes.Index, fixed: list[bytes], ancestor: bytes | None) -> Scan:
    above = ancestor if index.has_ancestor and ancestor is not None else b""
    return Scan(index, above + b"".join(fixed))


def _suffix_bounds(
    planned: Plan, branch: queries.Branch, suffix: tuple[tuple[str, bool], ...]
) -> tuple[bytes, bytes]:
    if not suffix:
        return _key_bounds(planned.query, branch, is_descending=planned.is_key_descending)
    if branch.key_range is not None:
        raise errors.Unimplemented("A __key__ filter with an order on another property")
    if branch.inequality is None:
        return b"", values.ABOVE
    return _range_bounds(branch.inequality, is_descending=suffix[0][1])


def _key_bounds(
    query: queries.Query, branch: queries.Branch, *, is_descending: bool
) -> tuple[bytes, bytes]:
    low, high = b"", values.ABOVE
    if branch.key_range is not None:
        low, high = _range_bounds(branch.key_range, is_descending=is_descending)
    if query.ancestor is not None and not is_descending:
        first, beyond = keys.descendants(query.ancestor)
        low, high = max(low, first), min(high, beyond)
    return low, high


def _range_bounds(limits: queries.Range, *, is_descending: bool) -> tuple[bytes, bytes]:
    """Return the bytes [low, high) of the suffixes whose first value lies in a range."""
    low, low_open = limits.low, limits.is_low_open
    high, high_open = limits.high, limits.is_high_open
    if is_descending:
        low, high = (None if each is None else values.complement(each) for each in (high, low))
        low_open, high_open = high_open, low_open
    first = b"" if low is None else low + (values.ABOVE if low_open else b"")
    beyond = values.ABOVE if high is None else high + (b"" if high_open else values.ABOVE)
    return first, beyond


def _recommendation(
    query: queries.Query,
    ordered: Iterable[tuple[str, bool]],
    is_key_descending: bool,  # noqa: FBT001 - a part of the order
) -> str:
    named = dict(ordered)
    fixed = {name for branch in query.branches for name, _ in branch.equalities} - named.keys()
    extra = [name for name in query.projection if name not in named and name not in fixed]
    properties = [(name, False) for name in sorted(fixed)]
    properties += named.items()
    properties += [(name, False) for name in extra]
    wanted = indexes.Index(
        kind=query.kind or "",
        properties=tuple(properties),
        has_ancestor=query.ancestor is not None,
        is_key_descending=is_key_descending,
    )
    return indexes.to_yaml(wanted)
