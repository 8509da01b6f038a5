"""Atom documents (RFC 4287), with the threading extension's `in-reply-to` (RFC 4685).

Pure. Owns the ids that feed readers know comments and feeds by: for ever, whatever host or address
the service has. A comment's is its own 128 bits as a UUID. Addresses are the site's own pages where
the thread has one (`thread_info.address`), else our page of the thread, relative to the feed:
nothing here comes from the request's headers.
"""

import base64
import hashlib
import re
import uuid
import xml.etree.ElementTree as ET
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from comments.domain import presentation
from comments.reading import feeds
from comments.web.public import nesting

CONTENT_TYPE = "application/atom+xml; charset=utf-8"
_ATOM = "http://www.w3.org/2005/Atom"
_THREADING = "http://purl.org/syndication/thread/1.0"
# What XML 1.0 has no way to write.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)

ET.register_namespace("", _ATOM)
ET.register_namespace("thr", _THREADING)


class Head(msgspec.Struct, frozen=True):
    """What a feed says of itself. `page` is the address of what it is about, "" for none.

    `place` gives the address of an entry.
    """

    id: str
    title: str
    itself: str
    page: str
    place: Callable[[feeds.Entry], str]


def document(head: Head, feed: feeds.Feed) -> bytes:
    """The feed as XML."""
    root = ET.Element(f"{{{_ATOM}}}feed")
    _add(root, "id", head.id)
    _add(root, "title", head.title)
    _add(root, "updated", nesting.machine_time(feed.changed or _NEVER))
    _add(root, "link", rel="self", type="application/atom+xml", href=head.itself)
    if head.page:
        _add(root, "link", rel="alternate", type="text/html", href=head.page)
    for entry in feed.entries:
        _add_entry(root, head, entry)
    made: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return made


def feed_id(secret: str, site: str, thread: str = "") -> str:
    """The id of a feed: of the same feed of another installation it is another one.

    A thread's id is never empty, so no thread has the id of its site.
    """
    named = hashlib.blake2b(
        f"feed {site}/{thread}".encode(),
        key=hashlib.sha256(secret.encode()).digest(),
        digest_size=16,
    )
    return uuid.UUID(bytes=named.digest()).urn


def entry_id(comment_id: str) -> str:
    """The id of a comment."""
    padding = "=" * (-len(comment_id) % 8)
    return uuid.UUID(bytes=base64.b32decode(f"{comment_id}{padding}".upper())).urn


def _add_entry(root: ET.Element, head: Head, entry: feeds.Entry) -> None:
    comment, place = entry.comment, head.place(entry)
    made = _add(root, "entry")
    _add(made, "id", entry_id(comment.id))
    _add(made, "title", _title(entry))
    _add(made, "published", nesting.machine_time(comment.created))
    _add(made, "updated", nesting.machine_time(comment.edited or comment.created))
    _add_author(made, comment)
    _add(made, "link", rel="alternate", type="text/html", href=place)
    answered = comment.reply_to or comment.parent
    if answered:
        ET.SubElement(made, f"{{{_THREADING}}}in-reply-to", ref=entry_id(answered))
    _add(made, "content", comment.html, type="html")


def _add_author(made: ET.Element, comment: presentation.Comment) -> None:
    author = _add(made, "author")
    _add(author, "name", nesting.author_of(comment))
    website = nesting.website_of(comment)
    if website:
        _add(author, "uri", website)


def _title(entry: feeds.Entry) -> str:
    name = nesting.author_of(entry.comment)
    return f"{name} on {entry.title}" if entry.title else f"Comment by {name}"


def _add(parent: ET.Element, name: str, text: str = "", **attributes: str) -> ET.Element:
    plain = {each: _writable(value) for each, value in attributes.items()}
    made = ET.SubElement(parent, f"{{{_ATOM}}}{name}", plain)
    made.text = _writable(text) or None
    return made


def _writable(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
