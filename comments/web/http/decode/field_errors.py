"""Errors about values that do not match a request type: translate msgspec's messages to codes.

The type of a field with a special format names the error code:
`msgspec.Meta(extra={CODE: "not-a-comment-id"})`.
"""

import re
from collections.abc import Iterable

import msgspec

from comments import errors

CODE = "code"
BODY = "body"  # The field name in errors about the whole body.
_LONGEST_NAME = 64

_FIELD = re.compile(r"`\$\.([A-Za-z_]+)|field `([^`]*)`$")
_BOUND = re.compile("Expected `(int|str|array)`(?: of length)? (<=|>=) ([0-9]+)")
_KIND = re.compile("Expected `([a-z| ]+)`, got ")
# msgspec's names of types, and their names in JSON Schema.
_KINDS = {
    "array": "array",
    "bool": "boolean",
    "float": "number",
    "int": "integer",
    "object": "object",
    "str": "string",
}


def refusal(error: msgspec.ValidationError, shape: type[msgspec.Struct]) -> errors.BadInput:
    """Return the error that says why a value does not match a type."""
    name = field(error)
    shown = name[:_LONGEST_NAME] or BODY
    message, _, place = str(error).partition(" - at ")
    if message.startswith("Object contains unknown field"):
        return errors.BadInput(shown, "unknown-field")
    if message.startswith("Object missing required field"):
        return errors.BadInput(shown, "required")
    if "[" in place:
        return _item_error(message, shown)
    return _declared_error(shape, name, message, shown) or _value_error(message, shown)


def field(error: msgspec.ValidationError) -> str:
    """Return the name of the wrong field; "" if the whole value is not an object."""
    match = _FIELD.search(str(error))
    return (match[1] or match[2]) if match else ""


def _item_error(said: str, shown: str) -> errors.BadInput:
    bound = _BOUND.fullmatch(said)
    if bound and bound[1] == "str" and bound[2] == "<=":
        return errors.BadInput(shown, "item-too-long", limit=int(bound[3]))
    return errors.BadInput(shown, "bad-item")


def _value_error(said: str, shown: str) -> errors.BadInput:
    if bound := _BOUND.fullmatch(said):
        return _bound_error(bound[1], bound[2], int(bound[3]), shown)
    if match := _KIND.match(said):
        kinds = [_KINDS[kind] for kind in match[1].split(" | ") if kind in _KINDS]
        if kinds:
            return errors.BadInput(shown, "wrong-type", expected=" or ".join(kinds))
    return errors.BadInput(shown, "bad-input")


def _bound_error(kind: str, relation: str, bound: int, shown: str) -> errors.BadInput:
    if relation == "<=":
        return errors.BadInput(
            shown, "too-long" if kind == "str" else "too-many-items", limit=bound
        )
    if bound == 1:
        return errors.BadInput(shown, "required")
    return errors.BadInput(shown, "too-short" if kind == "str" else "too-few-items", minimum=bound)


def _declared_error(
    shape: type[msgspec.Struct], name: str, said: str, shown: str
) -> errors.BadInput | None:
    """Return the error for a field whose type defines a code, a list of values, or two bounds."""
    # Imported late, because a process needs the module only when it refuses a value.
    from msgspec import inspect  # noqa: PLC0415

    types = [entry.type for entry in msgspec.structs.fields(shape) if entry.encode_name == name]
    parts = [part for type_ in types for part in _parts(inspect.type_info(type_))]
    for part in parts:
        if isinstance(part, inspect.Metadata) and part.extra and CODE in part.extra:
            return errors.BadInput(shown, part.extra[CODE])
        if isinstance(part, inspect.EnumType):
            return _choice_error(shown, [member.value for member in part.cls])
        if isinstance(part, inspect.LiteralType) and len(parts) == 1:
            return _choice_error(shown, part.values)
        if isinstance(part, inspect.IntType) and _BOUND.fullmatch(said):
            # All numbers in request types have both bounds.
            least, most = part.ge or 0, part.le or 0
            return errors.BadInput(shown, "out-of-range", minimum=least, maximum=most)
    return None


def _choice_error(shown: str, values: Iterable[object]) -> errors.BadInput:
    allowed = ", ".join(str(value) or '""' for value in values)
    return errors.BadInput(shown, "unknown-value", allowed=allowed)


def _parts(found: object) -> tuple[object, ...]:
    """Return the members of a union, or the type itself."""
    parts: tuple[object, ...] = getattr(found, "types", (found,))
    return parts
