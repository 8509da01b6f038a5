"""Read an export of Flatthread itself (docs/export-format.md).

`read` trusts the file: comments keep their ids, their authors' ids, their places and their votes.
`read_untrusted` is for files that owners upload. An owner of one site may not act for other people
or sites, but can write anything into a file. An upload therefore stores only the kinds of data that
a file of another system can contain.

Settings, counters and the audit log are not part of the comments; `own_format.site_restore` reads
them.

Invariant: No file that an owner uploads makes anyone an author, a voter, a moderator or a member of
the staff of this service (test_untrusted_import.py::test_nobody_becomes_an_author_of_this_service).

`read_untrusted` gives each comment and its author new ids. The new ids are derived from the ids in
the file. The same file therefore always gets the same ids, and former permalinks lead to the
imported comment (`imported_ids`). Votes are stored only as numbers, with at most `MOST_VOTES` votes
on a comment in each direction. Times more than a year in the future become the time of the export.
"""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import msgspec

from comments import errors
from comments.domain import records
from comments.threads import naming
from comments.transfer import import_source
from comments.transfer.exporting import export_lines
from comments.transfer.own_format import export_reader, kept_fields
from comments.transfer.own_format.export_reader import ExportLine

MOST_VOTES = 100_000
LATER = "times more than a year in the future, read as the time of the export"
MANY = f"more than {MOST_VOTES:,} votes, read as {MOST_VOTES:,}"


def read(path: Path) -> Iterator[import_source.Item]:
    """Yield the threads and comments in an export."""
    for line, item in _items(path):
        for unknown in line.unknown:
            yield import_source.LeftOut(line.number, unknown)
        if item is not None:
            yield item


def read_untrusted(path: Path) -> Iterator[import_source.Item]:
    """Yield the threads and comments in an export that an owner uploads."""
    made = export_reader.export_time(path)
    for line, item in _items(path):
        for unknown in line.unknown:
            yield import_source.LeftOut(line.number, unknown)
        for what, count in _omissions(line.value):
            if count:
                yield import_source.LeftOut(line.number, what, count)
        if isinstance(item, import_source.SourceThread):
            yield msgspec.structs.replace(item, keeps_ids=False)
        elif item is not None:
            yield from _corrections(item)
            yield _untrusted_comment(item, made)


def recognizes(head: bytes) -> bool:
    """Return whether a file that begins with these bytes seems to be an export of Flatthread."""
    return export_reader.recognizes(head)


def _items(
    path: Path,
) -> Iterator[tuple[ExportLine, import_source.SourceThread | import_source.SourceComment | None]]:
    """Yield each line, with the thread or comment that it contains."""
    pages: dict[str, naming.Brought] = {}
    for line in export_reader.read(path):
        fields = kept_fields.KeptFields(path, line.number)
        if isinstance(line.value, export_lines.ThreadLine):
            thread = fields.thread(line.value)
            pages.setdefault(thread.key, fields.page(line.value))
            yield line, thread
        elif isinstance(line.value, export_lines.CommentLine):
            if line.value.thread not in pages:
                message = f"no line above describes the thread {line.value.thread[:80]!r}"
                raise errors.BadImport(str(path), line.number, message)
            yield line, fields.comment(line.value, pages[line.value.thread])
        else:
            yield line, None


def _untrusted_comment(
    given: import_source.SourceComment, made: datetime
) -> import_source.SourceComment:
    """Return a comment with its place and thread data, but without votes and decisions.

    `made` is the time of the export.
    """
    kept = given.kept or records.MovedComment()
    return msgspec.structs.replace(
        given,
        account=kept.author or "",
        created=made if export_reader.is_impossible(given.created) else given.created,
        edited=made if given.edited and export_reader.is_impossible(given.edited) else given.edited,
        up=min(given.up, MOST_VOTES),
        down=min(given.down, MOST_VOTES),
        kept=records.MovedComment(
            number=kept.number, parent=kept.parent, slugs=kept.slugs, brought=kept.brought
        ),
    )


def _corrections(given: import_source.SourceComment) -> Iterator[import_source.Corrected]:
    """Yield a remark for each value that `_untrusted_comment` corrects."""
    if export_reader.is_impossible(max(given.created, given.edited or given.created)):
        yield import_source.Corrected(given.line, LATER)
    if max(given.up, given.down) > MOST_VOTES:
        yield import_source.Corrected(given.line, MANY)


def _omissions(line: export_lines.Line | None) -> Iterator[tuple[str, int]]:
    """Yield what a line of an untrusted file contains besides threads and comments, with counts."""
    match line:
        case export_lines.SettingsLine():
            yield "settings, so enter them again", 1
            yield "addresses of moderators", len(line.moderators)
            yield "moderation rules", len(line.moderation.rules)
            yield "bans of authors", len(line.moderation.bans)
        case export_lines.CounterLine():
            yield "counters, which an operator can declare again", 1
        case export_lines.AuditLine():
            yield "entries of the audit log", 1
        case export_lines.CommentLine():
            yield (
                "author ids, so authors cannot edit these comments",
                bool(line.author.id),
            )
            yield "single votes, but their numbers are kept", len(line.votes)
            yield "marks of staff", line.author.staff or line.edited_by_staff
            yield "decisions about comments, and their reasons", _is_decided(line)
            yield "ids in earlier systems", bool(line.source)
        case _:
            pass


def _is_decided(line: export_lines.CommentLine) -> bool:
    return bool(line.rule or line.why or line.reasons or line.stood or line.judged)
