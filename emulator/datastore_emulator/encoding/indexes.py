"""Index definitions, and the index entries of entities.

Owns the definition of an index and the stored form of an index entry. `index_yaml` owns the form of
a definition in index.yaml.

    code   text(kind) (N | A) { text(property) (+ | -) }       A: with ancestors
    entry  [path of one ancestor] value... path
           descending values are complemented, and also the path if the code ends with __key__ -

`keys` defines `text` and `path`; `values` defines the encoded values. For each entity, an index
contains one entry for each combination of the distinct values of the indexed properties. An index
with ancestors repeats each of these entries for every ancestor and for the entity itself. An entity
has no entry if one of the indexed properties is missing or unindexed. Changing this module's
encoding makes every data file wrong.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from datastore_emulator import errors, protobufs
from datastore_emulator.encoding import keys, values

KEY = "__key__"
_NESTED = ("array_value", "entity_value")
MAX_ENTRIES = 20_000  # Maximum number of an entity's indexed values and composite entries.
MAX_COMPOSITE_BYTES = 2 * 1024 * 1024  # Maximum size of an entity's composite entries, in bytes.


@dataclass(frozen=True, slots=True)
class Index:
    """One index of one kind. An index without properties contains the kind's keys."""

    kind: str
    properties: tuple[tuple[str, bool], ...] = ()
    has_ancestor: bool = False
    is_key_descending: bool = False
    code: bytes = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        parts = [keys.encode_text(self.kind), b"A" if self.has_ancestor else b"N"]
        for name, is_descending in self.properties:
            parts += (keys.encode_text(name), b"-" if is_descending else b"+")
        if self.is_key_descending:
            parts += (keys.encode_text(KEY), b"-")
        object.__setattr__(self, "code", b"".join(parts))

    @property
    def is_builtin(self) -> bool:
        """Whether every kind has this index without an entry in index.yaml."""
        return len(self.properties) < 2 and not (self.has_ancestor or self.is_key_descending)  # noqa: PLR2004


@functools.lru_cache(maxsize=4096)
def builtin(kind: str, name: str | None = None, *, is_descending: bool = False) -> Index:
    """Return the index of a kind's keys, or the index of one of its properties."""
    return Index(kind) if name is None else Index(kind, ((name, is_descending),))


@functools.lru_cache(maxsize=4096)
def decode(code: bytes) -> Index:
    """Return the index that a code represents."""
    kind, position = keys.decode_text(code, 0)
    has_ancestor = code[position : position + 1] == b"A"
    position += 1
    properties = []
    while position < len(code):
        name, position = keys.decode_text(code, position)
        properties.append((name.decode(), code[position : position + 1] == b"-"))
        position += 1
    is_key_descending = bool(properties) and properties[-1] == (KEY, True)
    if is_key_descending:
        properties.pop()
    return Index(kind.decode(), tuple(properties), has_ancestor, is_key_descending)


def indexed_values(entity: protobufs.Entity, partition: keys.Partition) -> dict[str, list[bytes]]:
    """Return the distinct encoded values of each indexed property.

    Properties of embedded entities are named `outer.inner`.

    An empty array counts as null.
    """
    single: dict[str, list[bytes]] = {}
    collected: dict[str, set[bytes]] = {}
    properties = entity.properties
    for name in properties:  # `items` of a protobuf map is slow
        value = properties[name]
        if value.exclude_from_indexes:
            continue
        kind = value.WhichOneof("value_type")
        if kind not in _NESTED:
            single[name] = [values.encode_as(kind, value, partition)]
        elif kind == "array_value" and not value.array_value.values:
            single[name] = [values.NULL]
        else:
            _collect(name, value, partition, collected)
    for name, encoded in collected.items():
        # A property `outer.inner` can exist beside an embedded entity `outer`.
        single[name] = sorted(encoded.union(single.get(name, ())))
    return single


def _collect(
    name: str, value: protobufs.Value, partition: keys.Partition, collected: dict[str, set[bytes]]
) -> None:
    if value.exclude_from_indexes:
        return
    kind = value.WhichOneof("value_type")
    if kind == "array_value":
        elements = value.array_value.values
        if not elements:
            collected.setdefault(name, set()).add(values.NULL)
        for element in elements:
            _collect(name, element, partition, collected)
    elif kind == "entity_value":
        for inner, part in value.entity_value.properties.items():
            _collect(f"{name}.{inner}", part, partition, collected)
    else:
        collected.setdefault(name, set()).add(values.encode_as(kind, value, partition))


def entries(index: Index, path: bytes, indexed: dict[str, list[bytes]]) -> list[bytes]:
    """Return an entity's entries in one index."""
    columns: list[list[bytes]] = []
    number = 1
    for name, is_descending in index.properties:
        column = indexed.get(name)
        if column is None:
            return []
        number *= len(column)
        columns.append([values.complement(value) for value in column] if is_descending else column)
    if number > MAX_ENTRIES:
        raise errors.InvalidArgument(
            f"The entity has more than {MAX_ENTRIES} entries in one composite index."
        )
    last = values.complement(path) if index.is_key_descending else path
    if number == 1:
        joined = [b"".join([value for (value,) in columns]) + last]
    else:
        joined = [b"".join(row) + last for row in itertools.product(*columns)]
    if not index.has_ancestor:
        return joined
    return [ancestor + entry for ancestor in keys.ancestors(path) for entry in joined]


def are_several(code: bytes, listed: list[bytes]) -> bool:
    """Return whether one scan of an index can find an entity twice if these are its entries.

    A scan is limited to one ancestor. Entries below the same ancestor are adjacent in the list.
    """
    if len(listed) < 2:  # noqa: PLR2004
        return False
    if not _has_ancestor(code):
        return True
    first = listed[0]
    return listed[1].startswith(first[: keys.path_ends(first)[-1] + 1])


@functools.lru_cache(maxsize=4096)
def _has_ancestor(code: bytes) -> bool:
    return decode(code).has_ancestor


def check_limits(by_code: Mapping[bytes, list[bytes]]) -> None:
    """Refuse an entity with more index entries than Datastore allows.

    `by_code` maps index codes to entries. A value counts once, even though both an ascending and a
    descending index contain it.
    """
    count = size = 0
    for code, listed in by_code.items():
        counted, is_composite = _weight(code)
        count += len(listed) * counted
        if is_composite:
            size += sum(map(len, listed))
    if count > MAX_ENTRIES:
        raise errors.InvalidArgument(f"The entity has more than {MAX_ENTRIES} index entries.")
    if size > MAX_COMPOSITE_BYTES:
        raise errors.InvalidArgument(
            f"The entity's composite index entries are larger than {MAX_COMPOSITE_BYTES} bytes."
        )


@functools.lru_cache(maxsize=4096)
def _weight(code: bytes) -> tuple[bool, bool]:
    """Return whether an index's entries count toward the limit, and whether their bytes count."""
    index = decode(code)
    is_ascending = bool(index.properties) and not index.properties[0][1]
    return is_ascending or not index.is_builtin, not index.is_builtin


Values = dict[str, list[bytes]]  # An entity's values, as `indexed_values` returns them.
Entries = dict[bytes, list[bytes]]  # An entity's entries by index code.


class _Every:
    """A set that contains the code of every index."""

    def __contains__(self, code: object) -> bool:
        return True


EVERY = _Every()
Codes = _Every | frozenset[bytes]


def membership(
    entity: protobufs.Entity, partition: keys.Partition, path: bytes, composites: Iterable[Index]
) -> Entries:
    """Return an entity's entries by index code."""
    kind = entity.key.path[-1].kind
    return all_entries(kind, path, indexed_values(entity, partition), composites)


def all_entries(
    kind: str,
    path: bytes,
    indexed: Values,
    composites: Iterable[Index],
    built_ins: Codes = EVERY,
) -> Entries:
    """Return an entity's entries by index code, with its properties' indexes in `built_ins`."""
    by_code = _some_entries(kind, indexed, path, indexed, composites, built_ins)
    by_code[_builtin_codes(kind, None)[0]] = [path]
    return by_code


def changed_entries(
    kind: str,
    path: bytes,
    before: Values,
    after: Values,
    composites: Iterable[Index],
    built_ins: Codes = EVERY,
) -> tuple[Entries, Entries]:
    """Return an entity's entries before and after a change, in the indexes that it may affect.

    In all other indexes, including the index of the kind's keys, the entries stay the same. Of the
    properties' own indexes, only those in `built_ins` are included.
    """
    # Keep the order of the properties (a set has none), so that the same history produces the same
    # file.
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    if not names:
        return {}, {}
    among = [index for index in composites if any(name in names for name, _ in index.properties)]
    return (
        _some_entries(kind, before, path, names, among, built_ins),
        _some_entries(kind, after, path, names, among, built_ins),
    )


def unmade_updates(kind: str, before: Values, after: Values, built_ins: Codes) -> int:
    """Return how many entries a change affects in the properties' indexes outside `built_ins`.

    The number is the same as if these indexes were maintained. Each entry has a flag that
    says whether the entity has several entries in the index. An entry that exists before and after
    the change counts only if this flag differs.
    """
    if built_ins is EVERY:
        return 0
    number = 0
    for name, new in after.items():
        old = before.get(name)
        if old != new:
            changed = _updates(old, new) if old else len(new)
            number += changed * (2 - len(_property_codes(kind, name, built_ins)))
    for name, old in before.items():
        if name not in after:
            number += len(old) * (2 - len(_property_codes(kind, name, built_ins)))
    return number


@functools.lru_cache(maxsize=4096)
def _property_codes(kind: str, name: str, built_ins: Codes) -> tuple[tuple[bytes, bool], ...]:
    """Return the codes of a property's indexes in `built_ins`, and whether each is descending."""
    both = zip(_builtin_codes(kind, name), (False, True), strict=True)
    return tuple((code, is_descending) for code, is_descending in both if code in built_ins)


def _updates(old: list[bytes], new: list[bytes]) -> int:
    is_flag_same = (len(old) > 1) == (len(new) > 1)
    return len(set(old) ^ set(new) if is_flag_same else set(old) | set(new))


def _some_entries(
    kind: str,
    indexed: Values,
    path: bytes,
    names: Iterable[str],
    composites: Iterable[Index],
    built_ins: Codes,
) -> Entries:
    """Return an entity's entries in composite indexes and in indexes of the named properties."""
    by_code: Entries = {}
    for name in names:
        column = indexed.get(name)
        if column is None:
            continue
        for code, is_descending in _property_codes(kind, name, built_ins):
            by_code[code] = [
                (values.complement(value) if is_descending else value) + path for value in column
            ]
    for index in composites:
        listed = entries(index, path, indexed)
        if listed:
            by_code[index.code] = listed
    return by_code


def are_surely_few(path: bytes, indexed: Values, composites: Sequence[Index]) -> bool:
    """Check quickly whether an entity is within the limits; False means a full check is needed."""
    columns = indexed.values()
    if max(map(len, columns), default=0) > 1:
        return False
    longest = max([len(column[0]) for column in columns], default=0)
    depth = path.count(keys.ELEMENT)  # Or less, as the byte may be part of a name
    width = sum(len(index.properties) for index in composites)
    size = depth * (width * longest + 2 * len(composites) * len(path))
    return len(indexed) + depth * len(composites) <= MAX_ENTRIES and size <= MAX_COMPOSITE_BYTES


@functools.lru_cache(maxsize=4096)
def _builtin_codes(kind: str, name: str | None) -> tuple[bytes, bytes]:
    return builtin(kind, name).code, builtin(kind, name, is_descending=True).code
