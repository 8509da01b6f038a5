"""A name that the store cannot have is the caller's mistake: too long, reserved, or not one part.

Every path, parameter and field of every route gets such names, from a caller with all roles.
"""

import dataclasses
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.every_route import ROWS, AllRoles, Row

pytestmark = pytest.mark.slow

NAMES = {"too long": "a" * 2_000, "reserved": "__a__", "with separators": "a/../b#c"}
CALLERS = ("owner", "author")


def _with_name(row: Row, name: str) -> Iterator[tuple[str, Row]]:
    """Yield the row's request once for each value that is replaced by the name."""
    for argument in re.findall(r"<(?:\w+:)?(\w+)>", row.rule):
        rule = re.sub(rf"<(?:\w+:)?{argument}>", name.replace("#", "%23"), row.rule)
        yield argument, dataclasses.replace(row, rule=rule)
    for part in ("query", "form", "json"):
        values = getattr(row, part) or {}
        for field in values:
            if isinstance(values[field], str):
                changed: dict[str, Any] = {part: {**values, field: name}}
                yield field, dataclasses.replace(row, **changed)


@pytest.mark.parametrize("kind", NAMES)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.method} {row.rule}")
def test_no_name_makes_a_request_fail_in_the_store(
    all_roles: AllRoles, row: Row, kind: str
) -> None:
    faults = []
    for place, asked in _with_name(row, NAMES[kind]):
        for caller in CALLERS:
            answer = all_roles.ask(asked, caller, all_roles.comment().id)
            if answer.status_code >= 500:
                faults.append((caller, place, answer.status_code, answer.text[:200]))
    assert faults == []
