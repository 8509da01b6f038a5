"""Read files with one JSON object on each line, or with a list of objects, in bounded memory."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

from comments import errors
from comments.transfer.parsing import json_reader, source_files
from comments.transfer.parsing.record_fields import Fields

_HEAD = 1 << 12  # A file's list must begin within this number of characters.
_LIST_IN_OBJECT = re.compile(r'"(results|data)"[ \t\n\r]{0,100}:\Z')
_HEADER = "#"  # LeanCloud begins a file with "#filetype:JSON-streaming".
_UNIT = "comment"


def read(path: Path, *, skip: str = "", unit: str = "line") -> Iterator[Fields]:
    """Yield the object of each line. Blank lines and lines that begin with `skip` are ignored.

    If `unit` is not "line", the objects are numbered from 1.
    """
    count = 0
    for line in source_files.lines(path):
        text = line.text.strip()
        if not text or (skip and text.startswith(skip)):
            continue
        count += 1
        number = line.number if unit == "line" else count
        values = _object(path, line.number, text)
        yield Fields(path, number, values, unit, has_strays=line.strays > 0)


def records(path: Path, *, what: str) -> Iterator[Fields]:
    """Return the records of a file, numbered from 1.

    The file is a list, an object with a list `results` or `data`, or a sequence of lines with one
    object each; blank lines and lines that begin with "#" are ignored. `what` names the format in
    error messages.
    """
    with source_files.open_text(path) as file:
        head = file.read(_HEAD).lstrip()
    if head.startswith("["):
        return json_reader.items(path, "item", what=what, unit=_UNIT)
    if match := _LIST_IN_OBJECT.search(head.partition("[")[0].rstrip()):
        return json_reader.items(path, f"{match[1]}.item", what=what, unit=_UNIT)
    first_line = head.partition("\n")[0].strip()
    if not first_line.startswith(("{", _HEADER)) or first_line == "{":
        reason = f"the file is not {what}: it is neither a JSON list nor lines of JSON"
        raise errors.BadImport(str(path), None, reason)
    return read(path, skip=_HEADER, unit=_UNIT)


def _object(path: Path, number: int, text: str) -> dict[str, object]:
    try:
        # Control characters in strings are accepted here; texts are checked when they are
        # converted.
        value = json.loads(text, strict=False, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        reason = f"invalid JSON: {error}. If this is the last line, the file may be cut off"
        raise errors.BadImport(str(path), number, reason) from error
    if not isinstance(value, dict):
        raise errors.BadImport(str(path), number, "the line is not a JSON object")
    return value


def _refuse(name: str) -> object:
    raise ValueError(f"{name} is not a number")
