"""Filtering and paging for the admin API's lists. Pure.

Owns the content of page tokens and the filter syntax `FIELD = VALUE AND FIELD = VALUE`, which is a
small part of the syntax that Google's APIs share. A filter may use `:` instead of `=` and enclose a
value in double quotes. Values are compared case-insensitively. Any other syntax is refused, because
ignoring a condition would list results that the caller excluded.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from datastore_emulator import errors

_CONDITION = re.compile(r'\s*([A-Za-z][\w.-]*)\s*[=:]\s*("[^"]*"|[^\s"]+)\s*')
_AND = re.compile(r"\s+AND\s+")

_Item = TypeVar("_Item")


def parse(text: str, known: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return the field and value of each condition in a filter.

    Args:
        text: The filter.
        known: The known field names; a name that ends with a dot is a prefix.

    Raises:
        errors.InvalidArgument: The text is not a valid filter, or names an unknown field.
    """
    return tuple(_condition(part, tuple(known)) for part in _AND.split(text) if text.strip())


def _condition(text: str, known: tuple[str, ...]) -> tuple[str, str]:
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise errors.InvalidArgument(
            f'filter: "{text.strip()[:80]}" is not supported. Write FIELD=VALUE, and join several '
            "with AND."
        )
    name = match[1]
    if not any(
        name == field or (field.endswith(".") and name.startswith(field)) for field in known
    ):
        raise errors.InvalidArgument(
            f'filter: the field "{name}" does not exist. Use one of {", ".join(known)}.'
        )
    return name, match[2].strip('"').lower()


def matches(conditions: tuple[tuple[str, str], ...], field: Callable[[str], str]) -> bool:
    """Return whether a result meets all conditions; `field` returns the value of a field."""
    return all(field(name).lower() == wanted for name, wanted in conditions)


def page(
    results: list[_Item], name: Callable[[_Item], str], *, size: int, token: str
) -> tuple[list[_Item], str]:
    """Return the requested page of a list and the token for the next page.

    A token contains the last name on the previous page, so adding or removing results between two
    requests never makes other results appear twice or go missing.

    Args:
        results: All results.
        name: Returns a result's name, which is the sort key.
        size: The number of results on a page; 0 means all.
        token: The previous page's token, or empty.

    Raises:
        errors.InvalidArgument: The size is negative, or the token is not valid.
    """
    if size < 0:
        raise errors.InvalidArgument("page_size must not be negative.")
    rest = sorted(results, key=name)
    if token:
        after = _last_name(token)
        rest = [item for item in rest if name(item) > after]
    if not size or len(rest) <= size:
        return rest, ""
    return rest[:size], base64.urlsafe_b64encode(name(rest[size - 1]).encode()).decode()


def _last_name(token: str) -> str:
    try:
        return base64.b64decode(token.encode(), altchars=b"-_", validate=True).decode()
    except ValueError as error:
        raise errors.InvalidArgument("page_token is not valid.") from error
