"""Read an export of Flatthread itself (docs/export-format.md).

`read` trusts the file: comments keep their ids, their authors' ids, their places and their votes.
`read_untrusted` is for files that owners upload (`own_format.untrusted_items`).

Settings, counters and the audit log are not part of the comments; `own_format.site_restore` reads
them.
"""

from collections.abc import Iterator
from pathlib import Path

from comments import errors
from comments.jobs.exporters import export_lines
from comments.jobs.importers import import_source
from comments.jobs.importers.own_format import export_reader, kept_fields, untrusted_items
from comments.jobs.importers.own_format.export_reader import ExportLine
from comments.tree.threads import naming


def read(path: Path) -> Iterator[import_source.Item]:
    """Yield the threads and comments in an export.

    Raises:
        errors.BadImport: the file is invalid; the error names the line.
    """
    for line, item in _items(path):
        for each in line.unknown:
            yield import_source.LeftOut(line.number, each)
        if item is not None:
            yield item


def read_untrusted(path: Path) -> Iterator[import_source.Item]:
    """Yield the threads and comments in an export that an owner uploads.

    Raises:
        errors.BadImport: the file is invalid; the error names the line.
    """
    made = export_reader.time(path)
    for line, item in _items(path):
        for each in line.unknown:
            yield import_source.LeftOut(line.number, each)
        yield from untrusted_items.left_out(line)
        if isinstance(item, import_source.SourceThread):
            yield untrusted_items.thread(item)
        elif item is not None:
            yield from untrusted_items.corrected(item)
            yield untrusted_items.comment(item, made)


def _items(
    path: Path,
) -> Iterator[tuple[ExportLine, import_source.SourceThread | import_source.SourceComment | None]]:
    """Yield each line, with the thread or comment that it contains."""
    pages: dict[str, naming.Brought] = {}
    for line in export_reader.read(path):
        fields = kept_fields.KeptFields(path, line.number)
        if isinstance(line.value, export_lines.ThreadLine):
            thread = fields.thread(line.value)
            pages.setdefault(thread.key, fields.page(_page_of(line.value)))
            yield line, thread
        elif isinstance(line.value, export_lines.CommentLine):
            if line.value.thread not in pages:
                message = f"no line above describes the thread {line.value.thread[:80]!r}"
                raise errors.BadImport(str(path), line.number, message)
            yield line, fields.comment(line.value, pages[line.value.thread])
        else:
            yield line, None


def recognizes(head: bytes) -> bool:
    """Return whether a file that begins with these bytes seems to be an export of Flatthread."""
    return export_reader.recognizes(head)


def _page_of(thread: export_lines.ThreadLine) -> export_lines.ExportedPage:
    return export_lines.ExportedPage(thread.title, thread.url, thread.categories)
