"""Define what the reader of any export format yields: threads, comments and skipped items.

Owns the checks that all formats share: ids and dates. Readers yield items in the order of the file,
so a comment can come before its parent and before its thread.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from comments import errors
from comments.domain import records

# Characters. Real ids are numbers; the property that stores them is short.
_MAX_ID = 200


class SourceThread(msgspec.Struct, frozen=True):
    """A page in the other system. `key` identifies it within the file.

    - `closed`: it accepts no more comments.
    - `hidden`: it is not public (a draft, or behind a password), so its comments are held.
    - `deleted`: it was deleted together with its comments.
    """

    key: str
    line: int
    link: str
    id: str = ""
    title: str = ""
    closed: bool = False
    hidden: bool = False
    deleted: bool = False


class SourceComment(msgspec.Struct, frozen=True):
    """A comment from the other system, with its text unchanged. `body` is HTML.

    `account` identifies the author in the other system; it is empty for a guest.
    """

    system: str
    id: str
    line: int
    thread: str
    parent: str | None
    status: records.Status
    created: datetime
    name: str
    body: str
    website: str = ""
    email: str = ""
    account: str = ""


class SkippedItem(msgspec.Struct, frozen=True):
    """An item with an id that is not a comment, such as a pingback.

    `what` describes the item in the report.
    """

    id: str
    line: int
    what: str


Reader = Callable[[Path], Iterator[SourceThread | SourceComment | SkippedItem]]


def checked_id(file: Path, line: int, raw: str) -> str:
    """Check an id from the other system, and return it without surrounding blanks.

    Raises:
        errors.BadImport: the id is missing, too long or not printable.
    """
    text = raw.strip()
    if not text or len(text) > _MAX_ID or not text.isprintable():
        raise errors.BadImport(str(file), line, f"not a valid id: {text[:40]!r}")
    return text


def moment(file: Path, line: int, raw: str) -> datetime:
    """Parse a date and time in ISO form, in UTC if it has no offset, from year 1 to 9999.

    Raises:
        errors.BadImport: the text is not such a date.
    """
    text = raw.strip()
    try:
        parsed = datetime.fromisoformat(text)
        aware = parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed
        return aware.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        message = f"not a valid date: {text[:40]!r}"
        raise errors.BadImport(str(file), line, message) from error
