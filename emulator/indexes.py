"""Indexes: their definitions, and the entries an entity has in them.

Owns what is an index, how index.yaml names one, and the entry's stored form.

    code   text(kind) (N | A) { text(property) (+ | -) }       A: with ancestors
    entry  [path of one ancestor] value... path
           a descending value is complemented; so is the path if the code ends with __key__ -

`text` and `path` are those of `keys`, values those of `values`. An entity is in an index once for
each combination of distinct values (and each ancestor, itself included), and not at all if one of
the properties is missing or unindexed. A change here makes every data file wrong.
"""

from __future__ import annotations

import functools
import itertools
import math
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from emulator import errors, keys, messages, values

KEY = "__key__"
MAX_ENTRIES = 20_000  # of one entity: its indexed values and composite entries
MAX_COMPOSITE_BYTES = 2 * 1024 * 1024  # of one entity's composite entries together
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_WORDS = frozenset({"yes", "no", "true", "false", "on", "off", "null"})  # YAML: no texts


@dataclass(frozen=True, slots=True)
class Index:
    """One index of one kind. No properties: the kind's keys."""

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
        """Tell whether every kind has this index without index.yaml."""
        return len(self.properties) < 2 and not (self.has_ancestor or self.is_key_descending)  # noqa: PLR2004


@functools.lru_cache(maxsize=4096)
def builtin(kind: str, name: str | None = None, *, is_descending: bool = False) -> Index:
    """Return the index of a kind's keys, or of one of its properties."""
    return Index(kind) if name is None else Index(kind, ((name, is_descending),))


@functools.lru_cache(maxsize=4096)
def decode(code: bytes) -> Index:
    """Return the index that a code names."""
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


def read_yaml(path: str | os.PathLike[str]) -> tuple[Index, ...]:
    """Read the composite indexes that an index.yaml names.

    Raises:
        errors.InvalidArgument: the file is not an index.yaml.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise errors.InvalidArgument(f"{path} is not UTF-8: {error}") from error
    return parse_yaml(text, path)


def parse_yaml(text: str, path: str | os.PathLike[str]) -> tuple[Index, ...]:
    """Return the composite indexes that an index.yaml's text names; `path` is for the errors."""
    import yaml  # noqa: PLC0415 - a quarter of the start-up time, and most engines need it not

    try:
        return _named(text)
    except yaml.YAMLError as error:
        text = " ".join(str(error).split())
        raise errors.InvalidArgument(f"{path} is not YAML: {text}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise errors.InvalidArgument(f"{path} is not an index.yaml: {error!r}") from error


@functools.lru_cache(maxsize=16)  # many engines of one process are opened with one file
def _named(text: str) -> tuple[Index, ...]:
    """The composite indexes that a text names, each once."""
    import yaml  # noqa: PLC0415 - see `parse_yaml`

    # Eight times as fast, and not in every build of PyYAML.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document = yaml.load(text, loader)  # noqa: S506 - one of the safe loaders
    named = [_from_yaml(entry) for entry in (document or {}).get("indexes") or ()]
    return tuple(dict.fromkeys(index for index in named if not index.is_builtin))


def _from_yaml(entry: dict[str, object]) -> Index:
    properties: list[tuple[str, bool]] = []
    listed = entry.get("properties") or ()
    if not isinstance(listed, Iterable):
        raise TypeError("properties is not a list")
    for each in listed:
        direction = each.get("direction", "asc")
        if direction not in ("asc", "desc"):
            raise ValueError(f"direction: {direction}")
        properties.append((str(each["name"]), direction == "desc"))
    # Nothing sorts below a key, and an ascending key ends every index anyway.
    names = [name for name, _ in properties]
    is_key_descending = False
    if KEY in names:
        is_key_descending = properties[names.index(KEY)][1]
        properties = properties[: names.index(KEY)]
    has_ancestor = entry.get("ancestor") in (True, "yes")
    return Index(str(entry["kind"]), tuple(properties), has_ancestor, is_key_descending)


def to_yaml(index: Index) -> str:
    """Return the index.yaml entry of an index."""
    lines = [f"- kind: {_scalar(index.kind)}"]
    if index.has_ancestor:
        lines.append("  ancestor: yes")
    lines.append("  properties:")
    key = ((KEY, True),) if index.is_key_descending else ()
    for name, is_descending in (*index.properties, *key):
        lines.append(f"  - name: {_scalar(name)}")
        if is_descending:
            lines.append("    direction: desc")
    return "\n".join(lines) + "\n"


def _scalar(text: str) -> str:
    """Write a text as YAML reads it back: most names need no quotes."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    parts = (
        each if each.isprintable() and each not in '"\\' else f"\\U{ord(each):08x}" for each in text
    )
    return f'"{"".join(parts)}"'


def indexed_values(entity: messages.Entity, partition: keys.Partition) -> dict[str, list[bytes]]:
    """Return the distinct encoded values of each indexed property, embedded ones as `outer.inner`.

    An empty array counts as null.
    """
    found: dict[str, set[bytes]] = {}
    for name, value in entity.properties.items():
        _collect(name, value, partition, found)
    return {name: sorted(encoded) for name, encoded in found.items()}


def _collect(
    name: str, value: messages.Value, partition: keys.Partition, found: dict[str, set[bytes]]
) -> None:
    if value.exclude_from_indexes:
        return
    kind = value.WhichOneof("value_type")
    if kind == "array_value":
        elements = value.array_value.values
        if not elements:
            found.setdefault(name, set()).add(values.NULL)
        for element in elements:
            _collect(name, element, partition, found)
    elif kind == "entity_value":
        for inner, part in value.entity_value.properties.items():
            _collect(f"{name}.{inner}", part, partition, found)
    else:
        found.setdefault(name, set()).add(values.encode(value, partition))


def entries(index: Index, path: bytes, indexed: dict[str, list[bytes]]) -> list[bytes]:
    """Return an entity's entries in one index."""
    columns: list[list[bytes]] = []
    for name, is_descending in index.properties:
        column = indexed.get(name)
        if column is None:
            return []
        columns.append([values.complement(each) for each in column] if is_descending else column)
    if math.prod(map(len, columns)) > MAX_ENTRIES:
        raise errors.InvalidArgument(
            f"The entity has more than {MAX_ENTRIES} entries in one composite index."
        )
    last = values.complement(path) if index.is_key_descending else path
    joined = [b"".join(each) + last for each in itertools.product(*columns)]
    if not index.has_ancestor:
        return joined
    return [ancestor + each for ancestor in keys.ancestors(path) for each in joined]


def are_several(code: bytes, listed: list[bytes]) -> bool:
    """Tell whether a walk along an index can meet an entity, whose entries these are, repeatedly.

    A walk stays below one ancestor. Entries below the same one are listed one after the other.
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


def check_limits(found: Mapping[bytes, list[bytes]]) -> None:
    """Refuse more entries of one entity, by the codes of their indexes, than Datastore takes.

    A value counts once, though it stands in an ascending and a descending index.
    """
    count = size = 0
    for code, listed in found.items():
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
    """Tell whether an index's entries count, and whether their bytes do."""
    index = decode(code)
    is_ascending = bool(index.properties) and not index.properties[0][1]
    return is_ascending or not index.is_builtin, not index.is_builtin


Values = dict[str, list[bytes]]  # of an entity, as `indexed_values` returns them
Entries = dict[bytes, list[bytes]]  # of an entity, by the code of their index


def membership(
    entity: messages.Entity, partition: keys.Partition, path: bytes, composites: Iterable[Index]
) -> Entries:
    """Return the codes of the indexes that an entity is in, each with its entries there."""
    kind = entity.key.path[-1].kind
    indexed = indexed_values(entity, partition)
    found = _in_some(kind, indexed, path, indexed, composites)
    found[_builtin_codes(kind, None)[0]] = [path]
    return found


def differing(
    kind: str, path: bytes, before: Values, after: Values, composites: Iterable[Index]
) -> tuple[Entries, Entries]:
    """Return what an entity had and has in the indexes in which a change of it may show.

    In all others, that of its kind's keys among them, its entries are the same before and after.
    """
    # In an order of their own, not a set's: the same history gives the same file.
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    if not names:
        return {}, {}
    among = [index for index in composites if any(name in names for name, _ in index.properties)]
    return (
        _in_some(kind, before, path, names, among),
        _in_some(kind, after, path, names, among),
    )


def _in_some(
    kind: str, indexed: Values, path: bytes, names: Iterable[str], composites: Iterable[Index]
) -> Entries:
    """Return an entity's entries in the indexes of some properties, and in some composite ones."""
    found: Entries = {}
    for name in names:
        column = indexed.get(name)
        if column is None:
            continue
        ascending, descending = _builtin_codes(kind, name)
        found[ascending] = [each + path for each in column]
        found[descending] = [values.complement(each) + path for each in column]
    for index in composites:
        listed = entries(index, path, indexed)
        if listed:
            found[index.code] = listed
    return found


def are_few(path: bytes, indexed: Values, composites: Sequence[Index]) -> bool:
    """Tell quickly that an entity is far within the limits; one that is not may be, too."""
    longest = 0
    for column in indexed.values():
        if len(column) > 1:
            return False
        longest = max(longest, len(column[0]))
    depth = len(keys.path_ends(path))
    width = sum(len(index.properties) for index in composites)
    size = depth * (width * longest + 2 * len(composites) * len(path))
    return len(indexed) + depth * len(composites) <= MAX_ENTRIES and size <= MAX_COMPOSITE_BYTES


@functools.lru_cache(maxsize=4096)
def _builtin_codes(kind: str, name: str | None) -> tuple[bytes, bytes]:
    return builtin(kind, name).code, builtin(kind, name, is_descending=True).code
