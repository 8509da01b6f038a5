"""Convert items of an export of Flatthread that an owner uploads, and name what is left out.

An owner of one site may not act for other people or sites, but can write anything into a file. An
upload therefore stores the same kinds of data as a file of another system.

Invariants:

1. A comment gets a new id and its author a new id. Both are derived from those in the file, so the
   same file gives the same ids, and former permalinks lead to the comment (`imported_ids`).
2. Votes are only numbers. No person is stored as a voter, a moderator or a member of the staff.
3. Only threads and comments are stored.
4. Times more than a year in the future become the time of the export. A comment has at most
   `MOST_VOTES` votes in each direction.
"""

from collections.abc import Iterator
from datetime import datetime

import msgspec

from comments.domain import records
from comments.jobs.exporters import export_lines
from comments.jobs.importers import import_source
from comments.jobs.importers.own_format import export_reader
from comments.jobs.importers.own_format.export_reader import ExportLine

MOST_VOTES = 100_000
LATER = "times more than a year in the future, read as the time of the export"
MANY = f"more than {MOST_VOTES:,} votes, read as {MOST_VOTES:,}"


def thread(given: import_source.SourceThread) -> import_source.SourceThread:
    """Return a thread whose comments get new ids."""
    return msgspec.structs.replace(given, keeps_ids=False)


def comment(given: import_source.SourceComment, made: datetime) -> import_source.SourceComment:
    """Return a comment with its place and thread data, and without what others say about it.

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


def corrected(given: import_source.SourceComment) -> Iterator[import_source.Corrected]:
    """Yield what `comment` corrects."""
    if export_reader.is_impossible(max(given.created, given.edited or given.created)):
        yield import_source.Corrected(given.line, LATER)
    if max(given.up, given.down) > MOST_VOTES:
        yield import_source.Corrected(given.line, MANY)


def left_out(line: ExportLine) -> Iterator[import_source.LeftOut]:
    """Yield what is left out of a line."""
    for what, count in _left_out(line.value):
        if count:
            yield import_source.LeftOut(line.number, what, count)


def _left_out(line: export_lines.Line | None) -> Iterator[tuple[str, int]]:
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
            yield "marks of staff", line.author.staff
            yield "decisions about comments, and their reasons", _is_decided(line)
            yield "ids in earlier systems", bool(line.source)
        case _:
            pass


def _is_decided(line: export_lines.CommentLine) -> bool:
    return bool(line.rule or line.why or line.reasons or line.stood or line.judged)
