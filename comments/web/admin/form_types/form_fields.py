"""The types of fields that several forms of the console share, and how they are parsed."""

import re
from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec

from comments import errors
from comments.moderation import review_queue
from comments.web.http.decode.parameters import Typed

_NUMBER = re.compile("[0-9]+")
Box = Literal["", "on"]
TextLine = Annotated[str, msgspec.Meta(max_length=30_000)]
Words = Annotated[str, msgspec.Meta(max_length=review_queue.LONGEST_TEXT)]


class CursorQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The base of queries for a page of a list.

    Unknown parameters are errors. `cursor` is empty for the first page.
    """

    cursor: Typed = ""

    @property
    def start(self) -> str | None:
        """The cursor of the page; None for the first page."""
        return self.cursor or None


class ListingQuery(CursorQuery, frozen=True):
    """A page of a list without filters."""


class SettingsForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A form that changes stored settings.

    A field that the request does not contain keeps its stored value.

    A field is None if it was not sent; it is "" if it was sent empty.
    """

    def parse(self, **parsers: Callable[[str], object]) -> dict[str, Any]:
        """Parse the given fields, but only those that were sent."""
        texts = {name: getattr(self, name) for name in parsers}
        return {name: parsers[name](text) for name, text in texts.items() if text is not None}

    def numbers(self, *names: str, empty: int | None, digits: int = 6) -> dict[str, Any]:
        """Parse the given fields as numbers, but only those that were sent; "" becomes `empty`."""
        texts = {name: getattr(self, name) for name in names}
        return {
            name: number(name, text, digits) if text else empty
            for name, text in texts.items()
            if text is not None
        }

    def boxes(self, *names: str) -> dict[str, Any]:
        """Return which boxes are checked, without boxes about which the request says nothing.

        Browsers always send all other fields, but never unchecked boxes. If any of the other fields
        is missing, the request does not come from the form, so a missing box does not mean that it
        is unchecked.
        """
        is_complete = None not in msgspec.structs.astuple(self)
        checked = {name: bool(getattr(self, name)) for name in names}
        return {name: is_on for name, is_on in checked.items() if is_on or is_complete}


class EmptyQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A query without parameters."""


def require(field: str, text: str | None) -> str:
    """Return the value of a field that only some buttons of a form require.

    Raises:
        errors.BadInput: the field was not sent.
    """
    if text is None:
        raise errors.BadInput(field, "required")
    return text


def number(field: str, text: str, digits: int = 6) -> int:
    """Parse a whole number from a form.

    Raises:
        errors.BadInput: the text is not a whole number, or it has more than `digits` digits.
    """
    if not _NUMBER.fullmatch(text) or len(text) > digits:
        raise errors.BadInput(field, "not-a-number")
    return int(text)


def several(line: str) -> tuple[str, ...]:
    """Split a line at commas; if it contains no comma, at spaces."""
    pieces = line.split(",") if "," in line else line.split()
    return tuple(dict.fromkeys(piece.strip() for piece in pieces if piece.strip()))


def phrases(line: str) -> tuple[str, ...]:
    """Split a line only at commas, because phrases contain spaces."""
    return tuple(dict.fromkeys(piece.strip() for piece in line.split(",") if piece.strip()))
