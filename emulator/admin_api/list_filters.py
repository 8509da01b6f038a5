"""Filters and pages of the admin API's lists. Pure.

Owns the syntax of filters, `FIELD = VALUE AND FIELD = VALUE`, a small part of the one that Google's
APIs share, and what a page token holds. `:` may stand for `=`, and a
value may be in double quotes. Values are compared without regard to case. A filter that says more
is refused: passing over a condition would list what the caller excluded.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from emulator import errors

_CONDITION = re.compile(r'\s*([A-Za-z][\w.-]*)\s*[=:]\s*("[^"]*"|[^\s"]+)\s*')
_AND = re.compile(r"\s+AND\s+")

_Item = TypeVar("_Item")


def parse(text: str, known: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return the fields and values that a filter asks for.

    Args:
        text: the filter.
        known: the names of fields; one that ends with a dot is the beginning of names.

    Raises:
        errors.InvalidArgument: the text is no such filter, or names another field.
    """
    return tuple(_condition(each, tuple(known)) for each in _AND.split(text) if text.strip())


def _condition(text: str, known: tuple[str, ...]) -> tuple[str, str]:
    found = _CONDITION.fullmatch(text)
    if found is None:
        raise errors.InvalidArgument(
            f'filter: "{text.strip()[:80]}" is not supported. Write FIELD=VALUE, and join several '
            "with AND."
        )
    name = found[1]
    if not any(name == each or (each.endswith(".") and name.startswith(each)) for each in known):
        raise errors.InvalidArgument(
            f'filter: there is no field "{name}". There are: {", ".join(known)}.'
        )
    return name, found[2].strip('"').lower()


def meets(conditions: tuple[tuple[str, str], ...], field: Callable[[str], str]) -> bool:
    """Tell whether all conditions hold for the values of a result's fields."""
    return all(field(name).lower() == wanted for name, wanted in conditions)


def page(
    found: list[_Item], name: Callable[[_Item], str], *, size: int, token: str
) -> tuple[list[_Item], str]:
    """Return the page of a list that a request asks for, and the token of the next one.

    A token holds the name that the page before ends with, so results that come or go between two
    requests make no other result appear twice or not at all.

    Args:
        found: all results.
        name: returns what a result is sorted by.
        size: how many results there are on a page; 0 is all.
        token: of the page before, or empty.

    Raises:
        errors.InvalidArgument: the size is negative, or the token is not valid.
    """
    if size < 0:
        raise errors.InvalidArgument("page_size is negative.")
    rest = sorted(found, key=name)
    if token:
        after = _last_name(token)
        rest = [each for each in rest if name(each) > after]
    if not size or len(rest) <= size:
        return rest, ""
    return rest[:size], base64.urlsafe_b64encode(name(rest[size - 1]).encode()).decode()


def _last_name(token: str) -> str:
    try:
        return base64.b64decode(token.encode(), altchars=b"-_", validate=True).decode()
    except ValueError as error:
        raise errors.InvalidArgument("page_token is not valid.") from error
