"""What a reader of an export yields, whatever the system: threads, comments, and what it leaves.

Owns the rules that all systems share: ids, dates, and who may be shown as an author. Readers
yield in the order of the file, so a comment may come before its parent and before its thread.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from comments import errors
from comments.domain import records

# Characters. Real ids are numbers; the stored source is a short property.
_MAX_ID = 200


class Thread(msgspec.Struct, frozen=True):
    """A page of the other system. `key` is what its comments name it by in this file.

    `closed` takes no more comments; `hidden` is not for everybody (a draft, a password), so what
    was public below it is held; `deleted` is gone together with its comments.
    """

    key: str
    line: int
    link: str
    id: str = ""
    title: str = ""
    closed: bool = False
    hidden: bool = False
    deleted: bool = False


class Comment(msgspec.Struct, frozen=True):
    """A comment of the other system, its text still as it came. `body` is HTML.

    `account` is what the other system knows its author by, empty for a guest.
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


class Skipped(msgspec.Struct, frozen=True):
    """Something with an id that is not a discussion: a pingback. `what` is for the report."""

    id: str
    line: int
    what: str


Reader = Callable[[Path], Iterator[Thread | Comment | Skipped]]


def checked_id(file: Path, line: int, raw: str) -> str:
    """An id of the other system.

    Raises:
        errors.BadImport: it is missing or not an id.
    """
    text = raw.strip()
    if not text or len(text) > _MAX_ID or not text.isprintable():
        raise errors.BadImport(str(file), line, f"this is not an id: {text[:40]!r}")
    return text


def moment(file: Path, line: int, raw: str) -> datetime:
    """A date with time in ISO form, UTC where it names no offset, from year 1 to 9999.

    Raises:
        errors.BadImport: it is not one.
    """
    text = raw.strip()
    try:
        parsed = datetime.fromisoformat(text)
        aware = parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed
        return aware.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        message = f"this is not a date: {text[:40]!r}"
        raise errors.BadImport(str(file), line, message) from error
