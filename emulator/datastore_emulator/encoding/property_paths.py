r"""Property paths: the names that masks and transforms use for properties inside embedded entities.

Owns the syntax of paths. Pure.

    path     name { "." name }      a dot or a backslash in a name is escaped by a backslash

`a.b` is the property b of the embedded entity a; `a\.b` is the property named "a.b". Unlike in
Firestore's field paths, a backquote is an ordinary character.
"""

from __future__ import annotations

import re

from datastore_emulator import errors
from datastore_emulator.encoding import entities

Path = tuple[str, ...]

_SEGMENT = re.compile(r"(?:[^.\\]|\\[.\\])+", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def parse(text: str) -> Path:
    """Return the names in a path.

    Raises:
        errors.InvalidArgument: The text is not a path, or names an invalid property.
    """
    names: list[str] = []
    position = 0
    while True:
        segment = _SEGMENT.match(text, position)
        if segment is None:
            raise errors.InvalidArgument(f'"{_shorten(text)}" is not a property path.')
        names.append(_ESCAPED.sub(r"\1", segment.group()))
        position = segment.end()
        if position == len(text):
            break
        if text[position] != ".":
            raise errors.InvalidArgument(
                f'"{_shorten(text)}" has a backslash that escapes nothing.'
            )
        position += 1
        if len(names) > entities.MAX_NESTING:
            raise errors.InvalidArgument(f'"{_shorten(text)}" has too many levels.')
    for name in names:
        entities.check_property_name(name)
    return tuple(names)


def _shorten(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:100]}..."  # noqa: PLR2004 - enough to recognize the text
