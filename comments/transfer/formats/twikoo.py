"""Read the JSON export of Twikoo, or the export of the database that Twikoo uses.

    [{"_id": "1", "url": "/page/", "href": "https://..", "nick": "", "mail": "", "link": "",
      "uid": "", "comment": "<p>..</p>", "pid": "", "rid": "", "isSpam": false, "top": false,
      "like": ["uid", ..], "created": 1700000000000}]

`pid` is the answered comment, and `rid` is the root of its discussion. `isSpam` is set both for
spam and for comments that were held for review; the file does not distinguish them. `href` is the
address at which the comment was written. This can be the address of a preview or a mirror, so `url`
identifies the page.
"""

from collections.abc import Iterator
from pathlib import Path

from comments.domain.records import Status
from comments.transfer import import_source
from comments.transfer.parsing import json_lines
from comments.transfer.parsing.record_fields import Fields

SYSTEM = "twikoo"

_KEPT = {
    "_id", "url", "href", "nick", "mail", "link", "uid", "comment", "pid", "rid", "isSpam", "top",
    "like", "created",
}  # fmt: skip
_LEFT_OUT = {
    "ip": "IP addresses",
    "ipRegion": "regions of IP addresses",
    "ua": "user agents",
    "updated": "times of the last change",
    "mailMd5": "hashes of mail addresses",
    "avatar": "avatars",
}


def read(path: Path) -> Iterator[import_source.Item]:
    """Yield the pages and comments in an export: a list, a list in an object, or lines of JSON."""
    pages: set[str] = set()
    for fields in json_lines.records(path, what="a Twikoo export"):
        yield from _items(fields, pages)


def _items(fields: Fields, pages: set[str]) -> Iterator[import_source.Item]:
    url = fields.text("url").strip() or fields.required_text("href")
    comment = _comment(fields, url)
    if fields.is_true("master"):
        fields.leave_out({"master": "marks of the site's owner"})
    fields.leave_out(_LEFT_OUT, {*_KEPT, "master"})
    yield from fields.remarks
    if url not in pages:
        pages.add(url)
        yield import_source.SourceThread(key=url, line=fields.number, link=url, id=url)
    yield comment


def _comment(fields: Fields, url: str) -> import_source.SourceComment:
    return import_source.SourceComment(
        system=SYSTEM,
        id=fields.id("_id"),
        line=fields.number,
        thread=url,
        parent=fields.parent("pid") or fields.parent("rid"),
        status=Status.SPAM if fields.is_true("isSpam") else Status.APPROVED,
        created=fields.required_moment("created", milliseconds=True),
        name=fields.text("nick"),
        email=fields.text("mail"),
        website=fields.website("link"),
        account=fields.text("uid"),
        body=fields.text("comment"),
        up=fields.size("like"),
        pinned=fields.is_true("top"),
    )
