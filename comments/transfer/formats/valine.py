"""Read comments of Valine in an export of LeanCloud, the database that Valine uses.

    #filetype:JSON-streaming {"type":"Class","class":"Comment"}
    {"objectId": "1", "url": "/page/", "nick": "", "mail": "", "link": "", "comment": "<p>..</p>",
     "pid": "", "rid": "", "isSpam": false, "ACL": {"*": {"read": true}},
     "insertedAt": {"__type": "Date", "iso": ""}, "createdAt": ""}

`pid` is the answered comment, and `rid` is the root of its discussion. A comment is held if its
access list (`ACL`) does not let everyone read it, because readers of Valine cannot see such a
comment.

Waline stores the same records with additional fields (`waline`). If Waline stores its data in
LeanCloud, the data can be exported there too, so this module also reads those fields.
"""

import html
import re
from collections.abc import Iterator
from pathlib import Path

from comments.domain.records import Status
from comments.transfer import import_source
from comments.transfer.parsing import json_lines
from comments.transfer.parsing.record_fields import Fields

SYSTEM = "valine"
UNKNOWN_STATE = "unknown states, read as pending"

_STATUSES = {
    "": Status.APPROVED,
    "approved": Status.APPROVED,
    "waiting": Status.PENDING,
    "spam": Status.SPAM,
}
_KEPT = {
    "objectId", "url", "nick", "mail", "link", "user_id", "comment", "pid", "rid", "like", "sticky",
    "status", "isSpam", "ACL", "insertedAt", "createdAt",
}  # fmt: skip
_LEFT_OUT = {
    "ip": "IP addresses",
    "ua": "user agents",
    "updatedAt": "times of the last change",
    "mailMd5": "hashes of mail addresses",
    "avatar": "avatars",
    "QQAvatar": "avatars",
}
# Valine stores texts as HTML, and Waline as Markdown that may contain HTML. Valine and Waline also
# contain texts from other versions and systems, so a text that begins with an HTML block is treated
# as HTML.
_BLOCK = re.compile(r"<(?:blockquote|div|h[1-6]|hr|ol|p|pre|table|ul)\b", re.IGNORECASE)


def read(path: Path) -> Iterator[import_source.Item]:
    """Yield the pages and comments in an export: lines of JSON, a list, or a list `results`."""
    pages: set[str] = set()
    for fields in json_lines.records(path, what="an export of Valine's comments"):
        yield from items(fields, SYSTEM, pages)


def recognizes(head: bytes) -> bool:
    """Return whether a file that begins with these bytes seems to contain comments of Valine."""
    names = (b'"objectId"', b'"nick"', b'"comment"')
    return all(name in head for name in names) and b'"waline"' not in head


def items(fields: Fields, system: str, pages: set[str]) -> Iterator[import_source.Item]:
    """Yield a comment with its remarks; if its page is not yet in `pages`, yield the page first."""
    url = fields.required_text("url")
    comment = _comment(fields, system, url)
    fields.leave_out(_LEFT_OUT, _KEPT)
    yield from fields.remarks
    if url not in pages:
        pages.add(url)
        yield import_source.SourceThread(key=url, line=fields.number, link=url, id=url)
    yield comment


def _comment(fields: Fields, system: str, url: str) -> import_source.SourceComment:
    body = fields.text("comment")
    is_html = _BLOCK.match(body.lstrip()) and body.rstrip().endswith(">")
    return import_source.SourceComment(
        system=system,
        id=fields.id("objectId"),
        line=fields.number,
        thread=url,
        parent=fields.parent("pid") or fields.parent("rid"),
        status=_status(fields),
        created=fields.required_moment("insertedAt", "createdAt", milliseconds=True),
        # Valine stores names and addresses with HTML entities.
        name=html.unescape(fields.text("nick")),
        email=html.unescape(fields.text("mail")),
        website=html.unescape(fields.website("link")),
        account=fields.text("user_id"),
        body=body,
        markup=import_source.Markup.HTML if is_html else import_source.Markup.MIXED,
        up=fields.count("like"),
        pinned=fields.is_true("sticky"),
    )


def _status(fields: Fields) -> Status:
    named = fields.text("status").strip().lower()
    status = _STATUSES.get(named)
    if status is None:
        fields.note_correction(UNKNOWN_STATE)
        status = Status.PENDING
    if fields.is_true("isSpam"):
        return Status.SPAM
    is_hidden = "ACL" in fields and not fields.inside("ACL").inside("*").is_true("read")
    return Status.PENDING if is_hidden and status is Status.APPROVED else status
