"""Read the database of Isso, an SQLite file.

    threads:  id, uri, title
    comments: tid (the thread), id, parent, created, modified, mode, remote_addr, text, author,
              email, website, likes, dislikes, voters, notification

`uri` is the path of a page. `mode` is 1 for published, 2 for pending and 4 for deleted comments,
which keep their place. Times are seconds since 1970. Databases of old versions have no column
`notification`. Reports show the id of a comment instead of a line number, so that the comment can
be found in the database.

Isso stores names, addresses and websites as escaped HTML. Isso stores texts as they were typed: as
Markdown, in which most versions allow HTML. Texts that Isso itself imported from Disqus or
WordPress are HTML.
"""

import html
from collections.abc import Iterator
from pathlib import Path

from comments import errors
from comments.domain.records import Status
from comments.transfer import import_source
from comments.transfer.parsing import record_fields, sqlite_reader, stray_bytes

SYSTEM = "isso"

_TITLE = "a database of Isso"
_UNIT = "comment"
_OF_THREAD = ("id", "uri", "title")
_REQUIRED = ("tid", "id", "parent", "created", "mode", "text", "author")
_LEFT_OUT = {
    "remote_addr": "IP addresses",
    "voters": "filters of the addresses of voters",
}
_SUBSCRIBED = "notification"
_KEPT = {*_REQUIRED, "modified", "email", "website", "likes", "dislikes", _SUBSCRIBED}
_STATUSES = {"1": Status.APPROVED, "2": Status.PENDING, "4": Status.RETRACTED}
_TEXTS = _KEPT.union(_OF_THREAD)
_ESCAPED = ("author", "email", "website")
_UNKNOWN_MODE = "comments with an unknown mode, read as pending"


def read(path: Path) -> Iterator[import_source.Item]:
    """Yield the comments and threads in a database."""
    with sqlite_reader.open_database(path) as database:
        database.columns("threads", _OF_THREAD, _TITLE)
        columns = database.columns("comments", _REQUIRED, _TITLE)
        others = [name for name in columns if name not in _KEPT]
        first: dict[str, int] = {}
        for row in database.rows("comments", columns, "id", noted=others):
            fields = _fields(path, row)
            comment = _comment(fields)
            first.setdefault(comment.thread, comment.line)
            yield from fields.remarks
            yield comment
        for row in database.rows("threads", _OF_THREAD, "id"):
            fields = _fields(path, row)
            key = fields.text("id")
            if key in first:
                fields.number = first[key]
                yield from fields.remarks
                yield _thread(fields, key)


def _fields(path: Path, row: dict[str, object]) -> record_fields.Fields:
    """Return the fields of a row, with bytes decoded as text."""
    number = row["id"] if isinstance(row["id"], int) else 0
    strays = 0
    for name, value in row.items():
        if isinstance(value, bytes) and name in _TEXTS:
            try:
                text, count = stray_bytes.repair(value.decode(errors="surrogateescape"))
            except ValueError as error:
                reason = f'"{name}" is not text in UTF-8; correct it in a copy of the database'
                raise errors.BadImport(str(path), number, reason, _UNIT) from error
            strays += count
            row[name] = html.unescape(text) if name in _ESCAPED else text
    return record_fields.Fields(path, number, row, _UNIT, has_strays=strays > 0)


def _thread(fields: record_fields.Fields, key: str) -> import_source.SourceThread:
    link = fields.text("uri")
    return import_source.SourceThread(
        key=key, line=fields.number, link=link, id=link, title=fields.text("title")
    )


def _comment(fields: record_fields.Fields) -> import_source.SourceComment:
    fields.leave_out(_LEFT_OUT, _KEPT)
    if fields.is_true(_SUBSCRIBED):
        fields.leave_out({_SUBSCRIBED: "subscriptions to replies"})
    mode = fields.text("mode")
    if mode not in _STATUSES:
        fields.note_correction(_UNKNOWN_MODE)
    return import_source.SourceComment(
        system=SYSTEM,
        id=fields.id("id"),
        line=fields.number,
        thread=fields.text("tid"),
        parent=fields.parent("parent"),
        status=_STATUSES.get(mode, Status.PENDING),
        created=fields.required_moment("created"),
        name=fields.text("author"),
        email=fields.text("email"),
        website=fields.website("website"),
        body=fields.text("text"),
        markup=import_source.Markup.MIXED,
        edited=fields.moment("modified"),
        up=fields.count("likes"),
        down=fields.count("dislikes"),
    )
