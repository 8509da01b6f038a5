"""The JSON form of values that are sent to Node and received from it.

A value is {"type": ..., "value": ...}. Integers and doubles are text, because JSON numbers cannot
represent every integer, or NaN.
"""

from __future__ import annotations

import base64
import datetime as dt
from typing import Any

from emulator.tests.clients import driver

_JS_NUMBERS = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def encoded(value: Any) -> dict[str, Any]:
    """Return the JSON form of a plain value."""
    for kind, name, encode in _ENCODERS:
        if isinstance(value, kind):
            return {"type": name, "value": encode(value)}
    return {"type": "plain", "value": value}


def decoded(given: dict[str, Any]) -> Any:
    """Return the plain value for a JSON form."""
    decode = _DECODERS.get(given["type"])
    return given["value"] if decode is None else decode(given["value"])


def _object(value: dict[str, Any]) -> dict[str, Any]:
    return {name: encoded(each) for name, each in value.items()}


# The first matching type applies, because a bool is also an int and a point is also a tuple.
_ENCODERS: tuple[tuple[type, str, Any], ...] = (
    (bool, "bool", lambda value: value),
    (int, "int", str),
    (float, "double", lambda value: _JS_NUMBERS.get(str(value), repr(value))),
    (bytes, "bytes", lambda value: base64.b64encode(value).decode()),
    (dt.datetime, "time", dt.datetime.isoformat),
    (driver.Point, "point", list),
    (driver.Path, "key", lambda value: value.parts),
    (list, "array", lambda value: [encoded(each) for each in value]),
    (dict, "entity", _object),
)

_DECODERS: dict[str, Any] = {
    "int": int,
    "double": float,
    "bytes": base64.b64decode,
    "time": dt.datetime.fromisoformat,
    "point": lambda value: driver.Point(*value),
    "key": lambda value: driver.Path(tuple(value)),
    "array": lambda value: [decoded(each) for each in value],
    "entity": lambda value: {name: decoded(each) for name, each in value.items()},
}
