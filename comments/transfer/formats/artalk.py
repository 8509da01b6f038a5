"""Read Artrans, the JSON export of Artalk.

    [{"id": "2", "rid": "1", "content": "", "created_at": "2021-10-28 20:50:15 +0800 CST",
      "is_pending": "false", "is_pinned": "false", "vote_up": "0", "vote_down": "0", "nick": "",
      "email": "", "link": "", "page_key": "/page/", "page_title": "", "page_admin_only": "false",
      "site_name": "", "site_urls": "https://.."}]

Artalk writes all values as strings; tools that convert data of other systems also write other
types. `rid` is the id of the answered comment, and "0" for a root. `page_key` is the address of a
page or its path, so pages of several sites can have the same key.
"""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

from comments.domain.ids import thread_ids
from comments.domain.records import Status
from comments.transfer import import_source
from comments.transfer.parsing import json_reader
from comments.transfer.parsing.record_fields import Fields

SYSTEM = "artalk"

_WEB = ("http://", "https://")
_KEPT = {
    "id", "rid", "content", "created_at", "is_pending", "is_pinned", "vote_up", "vote_down", "nick",
    "email", "link", "page_key", "page_title", "page_admin_only", "site_name", "site_urls",
}  # fmt: skip
_LEFT_OUT = {
    "ip": "IP addresses",
    "ua": "user agents",
    "updated_at": "times of the last change",
    "password": "passwords",
    "badge_name": "badges",
    "badge_color": "colors of badges",
}
# An unset flag counts as no data.
_FLAGS_LEFT_OUT = {
    "is_collapsed": "marks of collapsed comments",
    "is_verified": "marks of verified authors",
}


def read(path: Path) -> Iterator[import_source.Item]:
    """Yield the pages and comments in an export."""
    has_sites = len({fields.text("site_name").strip() for fields in _records(path)}) > 1
    pages: set[str] = set()
    for fields in _records(path):
        address = _address(fields, has_sites=has_sites)
        comment = _comment(fields, address)
        _leave_out(fields)
        yield from fields.remarks
        if address not in pages:
            pages.add(address)
            yield _thread(fields, address)
        yield comment


def _records(path: Path) -> Iterator[Fields]:
    return json_reader.items(path, "item", what="an Artalk export (Artrans)")


def _address(fields: Fields, *, has_sites: bool) -> str:
    """Return the address of a comment's page, or its path if the file has only one site."""
    key = fields.required_text("page_key")
    if key.startswith(_WEB) or not has_sites:
        return key
    urls = [url.strip() for url in fields.text("site_urls").split(",")]
    address = next((url for url in urls if url.startswith(_WEB)), "")
    if not address:
        site = fields.text("site_name")[:40]
        raise fields.bad(
            f'the file has comments of several sites, but "site_urls" of the site {site!r} has no '
            f'web address to complete "page_key" {key[:40]!r}. Export each site to its own file'
        )
    return urljoin(address, thread_ids.absolute(key, ["/".join(address.split("/")[:3])]))


def _leave_out(fields: Fields) -> None:
    for name, what in _FLAGS_LEFT_OUT.items():
        if fields.is_true(name):
            fields.leave_out({name: what})
    fields.leave_out(_LEFT_OUT, {*_KEPT, *_FLAGS_LEFT_OUT})


def _thread(fields: Fields, address: str) -> import_source.SourceThread:
    return import_source.SourceThread(
        key=address,
        line=fields.number,
        link=address,
        id=address,
        title=fields.text("page_title"),
        closed=fields.is_true("page_admin_only"),
    )


def _comment(fields: Fields, address: str) -> import_source.SourceComment:
    return import_source.SourceComment(
        system=SYSTEM,
        id=fields.id("id"),
        line=fields.number,
        thread=address,
        parent=fields.parent("rid"),
        status=Status.PENDING if fields.is_true("is_pending") else Status.APPROVED,
        created=fields.required_moment("created_at"),
        name=fields.text("nick"),
        email=fields.text("email"),
        website=fields.website("link"),
        body=fields.text("content"),
        markup=import_source.Markup.MIXED,
        up=fields.count("vote_up"),
        down=fields.count("vote_down"),
        pinned=fields.is_true("is_pinned"),
    )
