"""Atom documents (RFC 4287) with the threading extension's `in-reply-to` (RFC 4685). Pure.

The ids of feeds and entries never change, even if the service moves to a different host. An entry's
id is the comment's own 128 bits, written as a UUID. If the thread's address is known
(`thread_info.address`), a link leads to the page on the site. Otherwise, the link leads to the
service's own page for the thread. All links are absolute.
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
from comments.domain.languages import catalogue
from comments.reading import feeds
from comments.web.rendering import nesting

CONTENT_TYPE = "application/atom+xml; charset=utf-8"
_ATOM = "http://www.w3.org/2005/Atom"
_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
_THREADING = "http://purl.org/syndication/thread/1.0"
# Characters that XML 1.0 cannot contain.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)

ET.register_namespace("", _ATOM)
ET.register_namespace("thr", _THREADING)


class FeedMetadata(msgspec.Struct, frozen=True):
    """A feed's metadata. `itself` is the URL of the feed.

    `page` is the URL of the thread or site, or "" if it is unknown. `place` returns the URL of an
    entry. `texts` contains all texts other than the comments. `xml:lang` gives the language of
    these texts; comments have no `xml:lang`.
    """

    id: str
    title: str
    itself: str
    page: str
    place: Callable[[feeds.FeedEntry], str]
    texts: catalogue.Catalogue = catalogue.ENGLISH


def document(head: FeedMetadata, feed: feeds.Feed) -> bytes:
    """Return the feed as XML."""
    root = ET.Element(f"{{{_ATOM}}}feed", {_LANGUAGE: head.texts.language})
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


def feed_id(secret: str, site: str, thread: str = "", *, category: str = "") -> str:
    """Return the id of a feed; no two installations have the same ids.

    A thread's id is never empty, so the feed of a thread never has the same id as the feed of its
    site. Sites' ids do not contain "#".
    """
    within = f"#{category}" if category else f"/{thread}"
    named = hashlib.blake2b(
        f"feed {site}{within}".encode(),
        key=hashlib.sha256(secret.encode()).digest(),
        digest_size=16,
    )
    return uuid.UUID(bytes=named.digest()).urn


def entry_id(comment_id: str) -> str:
    padding = "=" * (-len(comment_id) % 8)
    return uuid.UUID(bytes=base64.b32decode(f"{comment_id}{padding}".upper())).urn


def _add_entry(root: ET.Element, head: FeedMetadata, entry: feeds.FeedEntry) -> None:
    comment, place = entry.comment, head.place(entry)
    made = _add(root, "entry")
    _add(made, "id", entry_id(comment.id))
    _add(made, "title", _title(entry, head.texts))
    _add(made, "published", nesting.machine_time(comment.created))
    _add(made, "updated", nesting.machine_time(comment.edited or comment.created))
    _add_author(made, comment, head.texts)
    _add(made, "link", rel="alternate", type="text/html", href=place)
    answered = comment.reply_to or comment.parent
    if answered:
        ET.SubElement(made, f"{{{_THREADING}}}in-reply-to", ref=entry_id(answered))
    _add(made, "content", comment.html, **{"type": "html", _LANGUAGE: ""})


def _add_author(
    made: ET.Element, comment: presentation.PublicComment, texts: catalogue.Catalogue
) -> None:
    author = _add(made, "author")
    _add(author, "name", nesting.author_of(comment, texts))
    website = nesting.website_of(comment)
    if website:
        _add(author, "uri", website)


def _title(entry: feeds.FeedEntry, texts: catalogue.Catalogue) -> str:
    name = nesting.author_of(entry.comment, texts)
    if not entry.title:
        return texts.text("feeds.untitled-entry", name=name)
    return texts.text("feeds.entry-title", name=name, title=entry.title)


def _add(parent: ET.Element, name: str, text: str = "", **attributes: str) -> ET.Element:
    plain = {key: _writable(value) for key, value in attributes.items()}
    made = ET.SubElement(parent, f"{{{_ATOM}}}{name}", plain)
    made.text = _writable(text) or None
    return made


def _writable(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)
