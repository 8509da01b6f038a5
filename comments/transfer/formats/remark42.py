"""Read the backup of remark42: a JSON object on each line, plain or packed with gzip.

    {"version":1, "users":[{"id", "blocked":{"status"}, "verified",
                            "details":{"email", "telegram"}}], "posts":[{"url", "read_only"}]}
    {"id", "pid", "text", "orig", "user":{"id", "name", "picture", "ip", "admin", "block"},
     "locator":{"site", "url"}, "score", "votes":{"user's id": true}, "voted_ips", "time",
     "edit":{"time", "summary"}, "pin", "delete", "title", "imported"}

The first line describes users and pages; all other lines are comments. `orig` is the Markdown that
the author typed; remark42 allows HTML in it and shows line ends as line breaks. Comments that
remark42 itself imported, and those of old versions, have only `text`, which is HTML. Some versions
stored `orig` with escaped HTML; for these comments, `text` is read.

A deleted comment has no text any more. The backup usually contains no single votes, only their sum
(`score`).
"""

import html
import re
from collections.abc import Iterator
from pathlib import Path

from comments import errors
from comments.domain.records import Status
from comments.transfer import import_source
from comments.transfer.import_source import Markup
from comments.transfer.parsing import json_lines
from comments.transfer.parsing.record_fields import Fields

SYSTEM = "remark42"

_HEADS = (b'{"version":1,"users":', b'{"version":0,"users":')
_MARKS = b"\xef\xbb\xbf \t\r\n"
_BLANKS = re.compile(rb"[ \t\r\n]")
_BEGINNING = 200  # Bytes at the start of a file that `recognizes` reads
_VERSIONS = {"", "0", "1"}
_ESCAPES = re.compile(r"&(?:#34|#39|lt|gt|amp);")
_LEFT_OUT_OF_USERS = {
    "email": "mail addresses of users",
    "telegram": "Telegram names of users",
}
_LEFT_OUT_OF_AUTHORS = {"ip": "hashes of IP addresses", "picture": "pictures of authors"}
_MARKS_OF_AUTHORS = {
    "admin": "marks of administrators",
    # remark42 shows the comments of blocked users, too.
    "block": "marks of blocked users",
    "verified": "marks of verified users",
    "paid_sub": "marks of paying supporters",
}
_LEFT_OUT_OF_COMMENTS = {
    "votes": "lists of voters (the numbers of votes are kept)",
    "voted_ips": "hashes of the IP addresses of voters",
    "imported": "marks of comments that remark42 had imported",
}
_KEPT = {
    *("id", "pid", "text", "orig", "user", "locator", "score", "time", "edit", "pin", "delete"),
    # Fields that follow from other fields, and the vote of the administrator who made the backup.
    *("title", "vote", "controversy"),
}
OTHER_SITE = "comments of other sites in the file, imported into the same site"
SCORE_ONLY = "scores without votes, read as votes up or down"
OTHER_SCORE = "scores that differ from the votes, replaced by the votes"


def read(path: Path) -> Iterator[import_source.Item]:
    """Yield the comments and threads in a backup."""
    lines = json_lines.read(path)
    head = next(lines, None)
    if head is None or "version" not in head:
        raise errors.BadImport(
            str(path), 1, "the file is not a backup of remark42: the first line has no version"
        )
    closed = _closed_pages(head)
    yield from head.remarks
    threads: dict[tuple[str, str], import_source.SourceThread] = {}
    for fields in lines:
        comment = _comment(fields)
        site, url = _place(fields)
        if threads and site != next(iter(threads))[0]:
            fields.note_correction(OTHER_SITE)
        yield from fields.remarks
        yield comment
        known = threads.get((site, url))
        if known is None or not known.title:
            threads[site, url] = import_source.SourceThread(
                key=comment.thread,
                line=fields.number if known is None else known.line,
                link=url,
                id=url,
                title=fields.text("title"),
                closed=url in closed,
            )
    yield from threads.values()


def recognizes(head: bytes) -> bool:
    """Return whether a file that begins with these bytes seems to be a backup of remark42."""
    return _BLANKS.sub(b"", head[:_BEGINNING].lstrip(_MARKS)).startswith(_HEADS)


def _closed_pages(head: Fields) -> set[str]:
    """Check the first line, and return the addresses of the pages that are closed."""
    version = head.text("version")
    if version not in _VERSIONS:
        known = "only versions 0 and 1 of remark42's backups are known"
        raise head.bad(f"the version is {version[:20]!r}, but {known}")
    for user in head.items("users"):
        if user.inside("blocked").is_true("status"):
            user.leave_out({"blocked": "blocked users"})
        if user.is_true("verified"):
            user.leave_out({"verified": "verified users"})
        user.inside("details").leave_out(_LEFT_OUT_OF_USERS)
    return {page.text("url") for page in head.items("posts") if page.is_true("read_only")}


def _place(fields: Fields) -> tuple[str, str]:
    """Return the site and the address of a comment's page."""
    locator = fields.inside("locator")
    return locator.text("site"), locator.text("url")


def _comment(fields: Fields) -> import_source.SourceComment:
    user, edit = fields.inside("user"), fields.inside("edit")
    _leave_out(fields, user, edit)
    up, down = _votes(fields)
    body, markup = _body(fields)
    return import_source.SourceComment(
        system=SYSTEM,
        id=fields.id("id"),
        line=fields.number,
        thread=" ".join(_place(fields)),
        parent=fields.parent("pid"),
        status=Status.RETRACTED if fields.is_true("delete") else Status.APPROVED,
        created=fields.required_moment("time"),
        # remark42 stores names with HTML entities.
        name=html.unescape(user.text("name")),
        account=user.text("id"),
        body=body,
        markup=markup,
        edited=edit.moment("time"),
        up=up,
        down=down,
        pinned=fields.is_true("pin"),
    )


def _leave_out(fields: Fields, user: Fields, edit: Fields) -> None:
    fields.leave_out(_LEFT_OUT_OF_COMMENTS, _KEPT)
    user.leave_out(_LEFT_OUT_OF_AUTHORS)
    edit.leave_out({"summary": "summaries of edits"})
    user.leave_out({name: what for name, what in _MARKS_OF_AUTHORS.items() if user.is_true(name)})


def _body(fields: Fields) -> tuple[str, Markup]:
    """Return the text as the author typed it if known, otherwise as remark42 displayed it."""
    typed, shown = fields.text("orig"), fields.text("text")
    if shown and (not typed or _ESCAPES.search(typed)):
        return shown, Markup.HTML
    return typed, Markup.MIXED


def _votes(fields: Fields) -> tuple[int, int]:
    """Return the number of upvotes and the number of downvotes."""
    score, votes = fields.score("score"), fields.inside("votes")
    up = sum(votes.is_true(name) for name in votes.names)
    down = len(votes.names) - up
    if not votes.names and score:
        fields.note_correction(SCORE_ONLY)
        return max(score, 0), max(-score, 0)
    if score != up - down:
        fields.note_correction(OTHER_SCORE)
    return up, down
