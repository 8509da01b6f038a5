"""The text of an index.yaml: parsing it and formatting its entries.

Owns the syntax that the parser accepts and the form of an entry. This module does no I/O:
`automatic_indexes` reads the file.
"""

import functools
import re

from datastore_emulator import errors
from datastore_emulator.encoding import indexes

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_WORDS = frozenset(
    {"yes", "no", "true", "false", "on", "off", "null"}
)  # YAML reads these words as other types


def parse(text: str, path: object) -> tuple[indexes.Index, ...]:
    """Return the composite indexes in the text of an index.yaml; errors name `path`."""
    import yaml  # noqa: PLC0415 - a quarter of the start time; most engines don't need it

    try:
        return _composites(text)
    except yaml.YAMLError as error:
        text = " ".join(str(error).split())
        raise errors.InvalidArgument(f"{path} is not YAML: {text}") from error
    except ValueError as error:
        raise errors.InvalidArgument(f"{path} is not an index.yaml: {error}") from error


@functools.lru_cache(maxsize=16)  # One process often opens many engines with the same index.yaml
def _composites(text: str) -> tuple[indexes.Index, ...]:
    """Return the distinct composite indexes in the text."""
    import yaml  # noqa: PLC0415 - see `parse`

    # The C loader is eight times as fast, but some builds of PyYAML lack it.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    document = yaml.load(text, loader)  # noqa: S506 - one of the safe loaders
    listed = [_index(entry) for entry in _entries(document or {}, "indexes")]
    return tuple(dict.fromkeys(index for index in listed if not index.is_builtin))


def _entries(mapping: object, name: str) -> list[dict[str, object]]:
    """Return the entries of a list in a mapping; a missing list is empty."""
    entries = mapping.get(name) or [] if isinstance(mapping, dict) else None
    if not isinstance(entries, list) or not all(isinstance(item, dict) for item in entries):
        raise ValueError(f"it needs `{name}:` and a list of entries")
    return entries


def _text(entry: dict[str, object], name: str) -> str:
    if name not in entry:
        raise ValueError(f"`{name}` is missing in {entry}")
    return str(entry[name])


def _index(entry: dict[str, object]) -> indexes.Index:
    kind = _text(entry, "kind")
    properties: list[tuple[str, bool]] = []
    for part in _entries(entry, "properties"):
        direction = part.get("direction", "asc")
        if direction not in ("asc", "desc"):
            raise ValueError(f"`direction: {direction}` of {kind} is neither asc nor desc")
        properties.append((_text(part, "name"), direction == "desc"))
    # Properties after the key cannot affect the order, and every index ends with an ascending key
    # anyway.
    names = [name for name, _ in properties]
    is_key_descending = False
    if indexes.KEY in names:
        is_key_descending = properties[names.index(indexes.KEY)][1]
        properties = properties[: names.index(indexes.KEY)]
    has_ancestor = entry.get("ancestor") in (True, "yes")
    return indexes.Index(kind, tuple(properties), has_ancestor, is_key_descending)


def entry(index: indexes.Index) -> str:
    """Format an index as an entry of index.yaml."""
    lines = [f"- kind: {_scalar(index.kind)}"]
    if index.has_ancestor:
        lines.append("  ancestor: yes")
    lines.append("  properties:")
    key = ((indexes.KEY, True),) if index.is_key_descending else ()
    for name, is_descending in (*index.properties, *key):
        lines.append(f"  - name: {_scalar(name)}")
        if is_descending:
            lines.append("    direction: desc")
    return "\n".join(lines) + "\n"


def _scalar(text: str) -> str:
    """Quote a text for YAML if needed; most names need no quotes."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    parts = (
        char if char.isprintable() and char not in '"\\' else f"\\U{ord(char):08x}" for char in text
    )
    return f'"{"".join(parts)}"'
