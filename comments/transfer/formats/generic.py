"""Read Flatthread's simple format for comments from systems without an importer.

A file contains one comment per line, either as JSON objects or as CSV rows below a header row. Both
variants have the same fields; `docs/import-formats.md` describes them. Comments of different pages
may be mixed in any order, so the pages are known only at the end of the file.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import msgspec

from comments import errors
from comments.domain.records import Status
from comments.transfer import import_source
from comments.transfer.parsing import csv_rows, json_lines, record_fields, source_files
from comments.transfer.parsing.record_fields import Fields

SYSTEM = "generic"

# Each comment has these fields and, unless it is deleted, a text.
_REQUIRED = ("id", "page", "time")
_OPTIONAL = ("parent", "title", "author", "email", "website", "text", "format", "edited")
NAMES = frozenset(_REQUIRED + _OPTIONAL + ("status", "up", "down", "pinned", "closed"))
_STATUSES = {
    "approved": Status.APPROVED,
    "pending": Status.PENDING,
    "spam": Status.SPAM,
    "rejected": Status.REJECTED,
    "deleted": Status.RETRACTED,
}
_MARKUPS = {
    "markdown": import_source.Markup.MARKDOWN,
    "html": import_source.Markup.HTML,
    "plain": import_source.Markup.PLAIN,
}
_BOM = b"\xef\xbb\xbf"
# If a column has empty cells, some tools write its whole numbers as 12.0.
_WHOLE = re.compile(r"([0-9]{1,18})\.0")
_SHOWN = 40  # Maximum number of characters of a value in an error message.

_Value = TypeVar("_Value")


class _Page(msgspec.Struct):
    """What a page's comments say about it: the first title, and whether any comment closes it."""

    line: int
    title: str = ""
    closed: bool = False


def read(path: Path) -> Iterator[import_source.Item]:
    """Yield the comments in a file, then the pages."""
    pages: dict[str, _Page] = {}
    for fields in _records(path):
        comment = _comment(fields)
        page = pages.setdefault(comment.thread, _Page(fields.number))
        page.title = page.title or fields.text("title")
        page.closed = page.closed or fields.is_true("closed")
        yield from fields.remarks
        yield comment
    for address, page in pages.items():
        yield import_source.SourceThread(
            key=address,
            line=page.line,
            link=address,
            id=address,
            title=page.title,
            closed=page.closed,
        )


def recognizes(head: bytes) -> bool:
    """Return whether the first line of a file has the required fields."""
    line = head.removeprefix(_BOM).lstrip().partition(b"\n")[0].decode(errors="replace")
    if line.startswith("{"):
        try:
            return set(json.loads(line)) >= set(_REQUIRED)
        except (ValueError, RecursionError):
            return False
    return set(_REQUIRED) <= set(csv_rows.header(line))


def _records(path: Path) -> Iterator[Fields]:
    with source_files.open_file(path) as file:
        start = file.peek(1).removeprefix(_BOM).lstrip()
    if start.startswith(b"["):
        message = "the file is one JSON list; write one object on each line, as `jq -c '.[]'` does"
        raise errors.BadImport(str(path), 1, message)
    if start.startswith(b"{"):
        yield from json_lines.read(path)
    else:
        yield from csv_rows.read(path, (*_REQUIRED, "text"))


def _comment(fields: Fields) -> import_source.SourceComment:
    status = _choice(fields, "status", _STATUSES, Status.APPROVED)
    for name in _REQUIRED:
        if name not in fields:
            raise _missing_field(fields, name)
    if status is Status.RETRACTED:
        fields.leave_out({"text": "texts of deleted comments"})
    elif "text" not in fields.names:
        raise _missing_field(fields, "text")
    comment_id = _without_decimal_point(fields, fields.id("id"))
    if comment_id == "0":
        raise fields.bad('"id" is 0, but 0 as a "parent" means a root; number comments from 1')
    parent = _without_decimal_point(fields, fields.parent("parent") or "0")
    fields.leave_out({}, kept=NAMES)
    return import_source.SourceComment(
        system=SYSTEM,
        id=comment_id,
        line=fields.number,
        thread=fields.required_text("page"),
        parent=None if parent == "0" else parent,
        status=status,
        created=fields.required_moment("time"),
        name=fields.text("author"),
        email=fields.text("email").strip(),
        website=fields.website("website"),
        body=fields.text("text"),
        markup=_choice(fields, "format", _MARKUPS, import_source.Markup.MARKDOWN),
        edited=fields.moment("edited"),
        up=fields.count("up"),
        down=fields.count("down"),
        pinned=fields.is_true("pinned"),
    )


def _choice(fields: Fields, name: str, choices: Mapping[str, _Value], default: _Value) -> _Value:
    """Return the meaning of the word in a field; `default` if the field is missing or empty."""
    word = fields.text(name).strip().lower()
    if word and word not in choices:
        raise fields.bad(f'"{name}" is not one of {", ".join(choices)}: {word[:_SHOWN]!r}')
    return choices.get(word, default)


def _without_decimal_point(fields: Fields, reference: str) -> str:
    """Return an id without the decimal point of a whole number."""
    match = _WHOLE.fullmatch(reference)
    if match is None:
        return reference
    fields.note_correction(record_fields.WHOLE)
    return match[1]


def _missing_field(fields: Fields, name: str) -> errors.BadImport:
    similar = difflib.get_close_matches(name, fields.names - NAMES, n=1)
    advice = f'; rename "{similar[0]}" if it is the "{name}"' if similar else ""
    return fields.bad(f'"{name}" is missing{advice}')
