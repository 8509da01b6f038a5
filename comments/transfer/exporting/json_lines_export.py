"""Write an export in our own format: JSON lines (`export_lines`)."""

import hashlib
from collections import Counter
from collections.abc import Iterator

import msgspec

from comments.transfer.exporting import export_file, export_lines

_ENCODER = msgspec.json.Encoder()


def write(
    lines: Iterator[export_lines.Line], file: export_file.Output, header: export_lines.HeaderLine
) -> export_lines.EndLine:
    """Write a header, the lines and an end line; return the end line."""
    file.write(_ENCODER.encode(header) + b"\n")
    digest = hashlib.sha256()
    numbers: Counter[str] = Counter()
    statuses: Counter[str] = Counter()
    for line in lines:
        data = _ENCODER.encode(line) + b"\n"
        digest.update(data)
        file.write(data)
        numbers[type(line).__name__] += 1
        if isinstance(line, export_lines.CommentLine):
            statuses[line.status] += 1
            numbers["votes"] += len(line.votes)
    end = export_lines.EndLine(
        threads=numbers[export_lines.ThreadLine.__name__],
        comments=numbers[export_lines.CommentLine.__name__],
        votes=numbers["votes"],
        statuses={str(status): count for status, count in sorted(statuses.items())},
        audit=numbers[export_lines.AuditLine.__name__],
        sha256=digest.hexdigest(),
    )
    file.write(_ENCODER.encode(end) + b"\n")
    return end
