"""Define what all readers of export formats yield: threads, comments and remarks.

This module also owns the checks of ids and dates, which all formats share. Readers yield items in
the order of the file, so a comment can come before its parent and before its thread.
"""

import enum
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from comments import errors
from comments.domain import records

# The maximum number of characters in an id. Real ids are numbers, and the stored property is short.
_MAX_ID = 200


class Markup(enum.Enum):
    """The language of a comment's text in the other system.

    `MIXED` text is Markdown in which HTML and line ends are significant. `PLAIN` text has no
    markup.
    """

    HTML = "html"
    MARKDOWN = "markdown"
    MIXED = "mixed"
    PLAIN = "plain"


class SourceThread(msgspec.Struct, frozen=True):
    """A page in the other system. `key` identifies the page within the file.

    With `kept`, the thread keeps its `id`, title and address, and is stored even without comments.
    With `keeps_ids`, the file is trusted: its comments keep their ids too.

    `link` is the page's full address, an address without a scheme, or a path
    (`thread_ids.absolute`).

    - `closed` pages accept no more comments.
    - `hidden` pages are not public (drafts, or pages behind a password), so their comments are
      held.
    - `deleted` pages were deleted together with their comments.
    """

    key: str
    line: int
    link: str
    id: str = ""
    title: str = ""
    closed: bool = False
    hidden: bool = False
    deleted: bool = False
    kept: records.MovedThread | None = None
    keeps_ids: bool = False


class SourceComment(msgspec.Struct, frozen=True):
    """A comment from the other system, with its text (`body`) unchanged.

    `account` identifies the author in the other system and is empty for a guest. `up` and `down`
    are the numbers of votes. With `kept`, the comment keeps its place; if `kept` contains the
    author's id, the author keeps that id. `former` is the id that the comment had on Flatthread
    before it came to the other system.
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
    markup: Markup = Markup.HTML
    edited: datetime | None = None
    up: int = 0
    down: int = 0
    pinned: bool = False
    kept: records.MovedComment | None = None
    former: str = ""


class OtherItem(msgspec.Struct, frozen=True):
    """An item that has an id but is not a comment, such as a pingback.

    `what` describes the item in the report.
    """

    id: str
    line: int
    what: str


class LeftOut(msgspec.Struct, frozen=True):
    """Data of a comment or of the whole site that Flatthread does not store.

    `what` is a plural noun such as "IP addresses"; the report adds up items with the same `what`.
    `count` is the number of items.
    """

    line: int
    what: str
    count: int = 1


class Corrected(msgspec.Struct, frozen=True):
    """A fault in the file that the reader corrected because the intended meaning is clear.

    `what` says what was found and how it was interpreted, such as "times without a time zone, read
    as UTC". The report adds up faults with the same `what`.
    """

    line: int
    what: str


Item = SourceThread | SourceComment | OtherItem | LeftOut | Corrected
Reader = Callable[[Path], Iterator[Item]]


def checked_id(file: Path, line: int, raw: str, unit: str = "line") -> str:
    """Check an id from the other system and return it without surrounding blanks.

    Raises:
        errors.BadImport: the id is missing, too long or not printable.
    """
    text = raw.strip()
    if not text or len(text) > _MAX_ID or not text.isprintable():
        message = f"not a valid id: {text[:40]!r}. Use a different id, or remove the item"
        raise errors.BadImport(str(file), line, message, unit)
    return text


def moment(file: Path, line: int, raw: str, unit: str = "line") -> datetime:
    """Parse an ISO date and time of the years 1 to 9999; without an offset, it counts as UTC.

    Raises:
        errors.BadImport: the text is not a valid date and time.
    """
    text = raw.strip()
    try:
        parsed = datetime.fromisoformat(text)
        aware = parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed
        return aware.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        message = f"not a valid date: {text[:40]!r}. Write it as 2015-03-04T10:20:30Z"
        raise errors.BadImport(str(file), line, message, unit) from error
