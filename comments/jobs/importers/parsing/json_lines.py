"""Read a file with one JSON object on each line, in bounded memory."""

import json
from collections.abc import Iterator
from pathlib import Path

from comments import errors
from comments.jobs.importers.parsing import stray_bytes, text_lines
from comments.jobs.importers.parsing.record_fields import Fields


def read(path: Path, *, skip: str = "", unit: str = "line") -> Iterator[Fields]:
    """Yield the object of each line. Blank lines and lines that begin with `skip` are ignored.

    With a `unit` other than "line", the objects are counted from 1.

    Raises:
        errors.BadImport: a line is not a JSON object; the error names the line.
    """
    count = 0
    for line in text_lines.read(path):
        text = line.text.strip()
        if not text or (skip and text.startswith(skip)):
            continue
        count += 1
        number = line.number if unit == "line" else count
        fields = Fields(path, number, _object(path, line.number, text), unit)
        if line.strays:
            fields.corrected(stray_bytes.CORRECTION)
        yield fields


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
