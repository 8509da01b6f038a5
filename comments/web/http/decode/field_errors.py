"""Why a value does not fit a shape, in words that need no knowledge of parsers.

The parser speaks of types and patterns, to whoever wrote the shape. Whoever sent the value is told
what is wrong with it. A field whose form no number of characters describes says so itself:
`msgspec.Meta(extra={FORM: "is not ..."})`.
"""

import re
from collections.abc import Iterable

import msgspec

from comments import errors

FORM = "form"
BODY = "body"  # the field at fault where the value itself is no object
_LONGEST_NAME = 64

_FIELD = re.compile(r"`\$\.([A-Za-z_]+)|field `([^`]*)`$")
_BOUND = re.compile("Expected `(int|str|array)`(?: of length)? (<=|>=) ([0-9]+)")
_BEYOND = {
    ("int", "<="): "is above {}",
    ("int", ">="): "is below {}",
    ("str", "<="): "is longer than {} characters",
    ("str", ">="): "is shorter than {} characters",
    ("array", "<="): "has more than {} items",
    ("array", ">="): "has fewer than {} items",
}
_KIND = re.compile("Expected `([a-z| ]+)`, got ")
_KINDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "object": "an object",
    "str": "text",
}
_STARTS = {
    "Object contains unknown field": "is not known here",
    "Object missing required field": "is missing",
}
_OTHERWISE = "is not what this field takes"


def refusal(error: msgspec.ValidationError, shape: type[msgspec.Struct]) -> errors.BadInput:
    """What a caller is told of a value that does not fit a shape."""
    said = reason(error, shape)
    return errors.BadInput((field(error) or BODY)[:_LONGEST_NAME], said[: 3 * _LONGEST_NAME])


def field(error: msgspec.ValidationError) -> str:
    """The field at fault; empty where the value itself is no object."""
    match = _FIELD.search(str(error))
    return (match[1] or match[2]) if match else ""


def reason(error: msgspec.ValidationError, shape: type[msgspec.Struct]) -> str:
    """What is wrong with the value of `field`: words that go behind its name."""
    said, _, place = str(error).partition(" - at ")
    for start, words in _STARTS.items():
        if said.startswith(start):
            return words
    if "[" in place:
        return f"has an item that {_of_value(said)}"
    return _declared(shape, field(error)) or _of_value(said)


def _of_value(said: str) -> str:
    if bound := _BOUND.fullmatch(said):
        kind, relation, number = bound.groups()
        if (kind, relation, number) == ("str", ">=", "1"):
            return "is empty"
        return _BEYOND[kind, relation].format(number)
    if found := _KIND.match(said):
        kinds = [_KINDS[kind] for kind in found[1].split(" | ") if kind in _KINDS]
        return f"is not {' or '.join(kinds)}" if kinds else _OTHERWISE
    return _OTHERWISE


def _declared(shape: type[msgspec.Struct], name: str) -> str:
    """What a field says of its form, or the words it takes where it takes no others."""
    # A process that is never asked in vain does not load it.
    from msgspec import inspect  # noqa: PLC0415

    types = [each.type for each in msgspec.structs.fields(shape) if each.encode_name == name]
    parts = [part for each in types for part in _parts(inspect.type_info(each))]
    for part in parts:
        if isinstance(part, inspect.Metadata) and part.extra and FORM in part.extra:
            return str(part.extra[FORM])
        if isinstance(part, inspect.EnumType):
            return _one_of([member.value for member in part.cls])
        if isinstance(part, inspect.LiteralType) and len(parts) == 1:
            return _one_of(part.values)
    return ""


def _one_of(values: Iterable[object]) -> str:
    return f"is one of {', '.join(str(value) or 'nothing' for value in values)}"


def _parts(found: object) -> tuple[object, ...]:
    """The types that a union is made of."""
    parts: tuple[object, ...] = getattr(found, "types", (found,))
    return parts
