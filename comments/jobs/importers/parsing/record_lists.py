"""Read the records of systems that export them as a JSON list or as lines of JSON."""

import re
from collections.abc import Iterator
from pathlib import Path

from comments import errors
from comments.jobs.importers.parsing import json_lines, json_reader, source_files
from comments.jobs.importers.parsing.record_fields import Fields

_HEAD = 1 << 12  # Characters at the start of a file that tell where its list is.
_LIST_IN_OBJECT = re.compile(r'"(results|data)"[ \t\n\r]{0,100}:\Z')
_HEADER = "#"  # LeanCloud begins a file with "#filetype:JSON-streaming".
_UNIT = "comment"


def read(path: Path, *, what: str) -> Iterator[Fields]:
    """Return the records of a file, which are counted from 1.

    The file is a list, an object with a list `results` or `data`, or has one object on each line;
    blank lines and lines that begin with "#" are ignored. `what` names the format in errors.

    Raises:
        errors.BadImport: the file cannot be read, or a record is not a JSON object.
    """
    with source_files.opened_text(path) as file:
        head = file.read(_HEAD).lstrip()
    if head.startswith("["):
        return json_reader.items(path, "item", what=what, unit=_UNIT)
    if found := _LIST_IN_OBJECT.search(head.partition("[")[0].rstrip()):
        return json_reader.items(path, f"{found[1]}.item", what=what, unit=_UNIT)
    first_line = head.partition("\n")[0].strip()
    if not first_line.startswith(("{", _HEADER)) or first_line == "{":
        reason = f"the file is not {what}: it is neither a JSON list nor lines of JSON"
        raise errors.BadImport(str(path), None, reason)
    return json_lines.read(path, skip=_HEADER, unit=_UNIT)
