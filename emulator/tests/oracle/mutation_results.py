"""Compute the results of mutations: masks and transforms of whole properties.

This module owns the arithmetic of transforms. The strategies draw no paths into embedded entities,
because other tests cover these paths.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from emulator.tests.oracle import values
from emulator.tests.oracle.values import Properties, Value

INCREMENT, MAXIMUM, MINIMUM = "increment", "maximum", "minimum"
APPEND, REMOVE = "append_missing_elements", "remove_all_from_array"
MAX_INTEGER, MIN_INTEGER = 2**63 - 1, -(2**63)


@dataclass(frozen=True, slots=True)
class Transform:
    """One transform. The operand is a number or a tuple of Values."""

    kind: str
    name: str
    operand: Any


def merged(old: Properties | None, given: Properties, mask: tuple[str, ...]) -> Properties:
    """Return the stored properties after replacing the masked properties by the given ones."""
    found = {} if old is None else dict(old.items)
    new = dict(given.items)
    for name in mask:
        found.pop(name, None)
        if name in new:
            found[name] = new[name]
    return of(found)


def of(found: Mapping[str, Value]) -> Properties:
    return Properties(tuple(sorted(found.items(), key=lambda item: item[0])))


def transformed(
    given: Properties, transforms: tuple[Transform, ...]
) -> tuple[Properties, list[Value]]:
    """Return the properties after all transforms, and each transform's result."""
    found = dict(given.items)
    answers = []
    for each in transforms:
        current = found.get(each.name)
        new = _computed(current, each)
        found[each.name] = new
        is_array = isinstance(new.content, tuple)
        answers.append(Value(None) if is_array else Value(new.content))
    return of(found), answers


def _computed(current: Value | None, transform: Transform) -> Value:
    if transform.kind in (APPEND, REMOVE):
        return Value(_elements(current, transform))
    flag = True if current is None else current.is_indexed
    stored: Any = None if current is None else current.content
    if not is_number(stored):
        return Value(transform.operand, flag)
    return Value(_number(stored, transform), flag)


def _number(stored: float, transform: Transform) -> float:
    given = transform.operand
    if transform.kind == INCREMENT:
        if isinstance(stored, int) and isinstance(given, int):
            return min(max(stored + given, MIN_INTEGER), MAX_INTEGER)
        total = float(stored) + float(given)
        return math.nan if math.isnan(total) else total
    if math.isnan(stored) or math.isnan(given):
        return stored if math.isnan(stored) else given  # The bits decide whether results are equal
    is_further = given > stored if transform.kind == MAXIMUM else given < stored
    return given if is_further else stored


def _elements(current: Value | None, transform: Transform) -> tuple[Value, ...]:
    is_array = current is not None and isinstance(current.content, tuple)
    found = list(current.content) if is_array else []
    if transform.kind == REMOVE:
        unwanted = {identity(each.content) for each in transform.operand}
        return tuple(each for each in found if identity(each.content) not in unwanted)
    for each in transform.operand:
        if identity(each.content) not in {identity(other.content) for other in found}:
            found.append(each)
    return tuple(found)


def is_number(content: Any) -> bool:
    return isinstance(content, int | float) and not isinstance(content, bool)


def identity(content: Any) -> Any:
    """Return a key that equal values share. Across types, only numbers can be equal (3, 3.0)."""
    if is_number(content):
        return "NaN" if math.isnan(content) else content
    return type(content).__name__, values.rank(content)
