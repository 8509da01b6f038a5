"""Read the lines of an export of Flatthread, and check that the file is complete and undamaged."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from comments import errors
from comments.domain import decoders
from comments.transfer.exporting import export_lines
from comments.transfer.parsing import source_files, stray_bytes

_LONGEST_NAME = 40  # Maximum characters of an unknown field or kind in a report
_NO_HEADER = "the first line is not the header of an export of Flatthread"
_AHEAD = timedelta(days=366)  # How far another machine's clock may be ahead.
_ADVICE = (
    'If you edited the file, remove "sha256" and the numbers from its last line; otherwise, export '
    "the site again."
)


class ExportLine(NamedTuple):
    """A line of the file: its number and its value.

    `unknown` describes what else the line contains, such as unknown fields.
    """

    number: int
    value: export_lines.Line | None
    unknown: tuple[str, ...] = ()


_TYPES = {
    shape.__struct_config__.tag: shape
    for shape in (
        export_lines.HeaderLine,
        export_lines.SettingsLine,
        export_lines.CounterLine,
        export_lines.ThreadLine,
        export_lines.CommentLine,
        export_lines.AuditLine,
        export_lines.EndLine,
    )
}


def recognizes(head: bytes) -> bool:
    """Return whether a file that begins with these bytes seems to be an export of Flatthread."""
    first = head.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0]
    return first.startswith(b"{") and b'"header"' in first and b'"flatthread"' in first


def read(path: Path) -> Iterator[ExportLine]:
    """Yield the lines between the header and the end line.

    Raises:
        errors.BadImport: the file is not an export of a known version, is cut off, or is damaged;
            the error names the line.
    """
    digest, numbers = hashlib.sha256(), Counter[str]()
    end: ExportLine | None = None
    last = 1
    lines = (line for line in source_files.lines(path) if line.text.strip())
    _check_header(path, next(lines, None))
    for line in lines:
        last = line.number
        export_line = _decode_line(path, line)
        value: Any = export_line.value
        if end is not None:
            raise _bad(path, last, f"this line comes after the end line {end.number}")
        if isinstance(value, export_lines.EndLine):
            end = export_line
            _check_end(path, last, value, numbers, digest.hexdigest())
        elif isinstance(value, export_lines.HeaderLine):
            raise _bad(path, last, "the file has a second header. Import one export per file")
        else:
            digest.update(f"{line.text.strip()}\n".encode(errors="surrogatepass"))
            numbers[type(value).__name__] += 1
            yield export_line
    if end is None:
        text = "the file is cut off: its last line is not the end line of an export"
        raise _bad(path, last, text)


def export_time(path: Path) -> datetime:
    """Return when the export was made.

    Raises:
        errors.BadImport: the file has no header, or the time in the header is in the future.
    """
    first = next((line for line in source_files.lines(path) if line.text.strip()), None)
    header: Any = None if first is None else _decode_line(path, first).value
    if not isinstance(header, export_lines.HeaderLine):
        raise errors.BadImport(str(path), 1, _NO_HEADER)
    made = header.time.replace(tzinfo=header.time.tzinfo or UTC)
    if is_impossible(made):
        raise errors.BadImport(
            str(path), 1, f'"time": {made} is in the future. Check the clock of the other machine'
        )
    return made


def is_impossible(moment: datetime) -> bool:
    """Return whether a time is too far in the future to be explained by a wrong clock."""
    return moment > datetime.now(UTC) + _AHEAD


def _check_header(path: Path, line: source_files.Line | None) -> None:
    if line is None:
        raise _bad(path, None, "the file is empty")
    header: Any = _decode_line(path, line).value
    if not isinstance(header, export_lines.HeaderLine) or header.format != export_lines.FORMAT:
        raise _bad(path, line.number, _NO_HEADER)
    if header.version != export_lines.VERSION:
        raise _bad(
            path,
            line.number,
            f"the export has version {header.version}, but this release reads version "
            f"{export_lines.VERSION}. Upgrade Flatthread, then import the file.",
        )


def _check_end(
    path: Path, number: int, end: export_lines.EndLine, numbers: Counter[str], digest: str
) -> None:
    """Compare the end line with the lines before it."""
    for name, stated, kind in (
        ("threads", end.threads, export_lines.ThreadLine),
        ("comments", end.comments, export_lines.CommentLine),
        ("audit entries", end.audit, export_lines.AuditLine),
    ):
        count = numbers[kind.__name__]
        if stated is not None and stated != count:
            message = f"{name}: {stated} here, but {count} in the file. {_ADVICE}"
            raise _bad(path, number, message)
    if end.sha256 and end.sha256 != digest:
        raise _bad(path, number, f"the lines above do not match the digest here. {_ADVICE}")


def _bad(path: Path, number: int | None, message: str) -> errors.BadImport:
    return errors.BadImport(str(path), number, message)


def _decode_line(path: Path, line: source_files.Line) -> ExportLine:
    """Decode a line; a line of an unknown kind has no value."""
    try:
        fields = decoders.json(dict[str, Any]).decode(line.text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise errors.BadImport(str(path), line.number, f"invalid JSON: {error}") from error
    kind = fields.get("kind")
    type_ = _TYPES.get(kind) if isinstance(kind, str) else None
    unknown = [stray_bytes.CORRECTION] if line.strays else []
    if type_ is None:
        return ExportLine(line.number, None, (*unknown, f"lines of the unknown kind {_name(kind)}"))
    try:
        value: Any = decoders.convert(fields, type_)
    except msgspec.ValidationError as error:
        raise errors.BadImport(str(path), line.number, f"{kind}: {error}") from error
    known = {"kind", *type_.__struct_fields__}
    more = (
        f"unknown fields {_name(field)} of {kind} lines" for field in fields if field not in known
    )
    return ExportLine(line.number, value, (*unknown, *more))


def _name(text: object) -> str:
    return repr(str(text)[:_LONGEST_NAME])
