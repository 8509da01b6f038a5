"""Read WXR, the XML export of WordPress.

    <rss xmlns:wp="http://wordpress.org/export/1.2/"> <channel>
      <item>
        <title/> <link/> <guid/> <wp:status/> <wp:comment_status/> <wp:post_password/>
        <wp:comment>
          <wp:comment_id/> <wp:comment_parent/> <wp:comment_date_gmt/> <wp:comment_content/>
          <wp:comment_author/> <wp:comment_author_email/> <wp:comment_author_url/>
          <wp:comment_approved/> <wp:comment_type/>
        </wp:comment>
      </item>
    </channel> </rss>

All versions of the export namespace are accepted. A comment in the trash was removed by a
moderator, not by its author. The import therefore stores it as rejected, not retracted, so that
moderators can still see the text. Comments with an unknown status are held. Comments on posts that
are not public (drafts, private posts, posts with a password) are also held.
"""

import html
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from comments import errors
from comments.domain.records import Status
from comments.domain.text import linked_html, sanitizing
from comments.store.models import comment_rows
from comments.transfer import import_source
from comments.transfer.parsing import record_fields, xml_reader

SYSTEM = "wordpress"

_EXPORT = re.compile(r"https?://wordpress\.org/export/[0-9.]+/ (.+)")
_ITEM = "rss/channel/item"
_COMMENT = "rss/channel/item/wp:comment"
# The first metadata of a comment: in an export of Flatthread, its id there.
_META_KEY, _META_VALUE = "wp:commentmeta/wp:meta_key", "wp:commentmeta/wp:meta_value"
_STATUSES = {
    "1": Status.APPROVED,
    "0": Status.PENDING,
    "hold": Status.PENDING,
    "spam": Status.SPAM,
    "trash": Status.REJECTED,
    "post-trashed": Status.REJECTED,
}
# An attachment ("inherit") has the visibility of its post, which is usually public.
_PUBLIC = {"", "publish", "inherit"}
# Types of comments that programs write, and of internal notes by the staff of a shop or blog. All
# other types come from plugins and are comments that people wrote, such as "review" or
# "wpdiscuz_sticky".
_OTHERS = {
    "action_log", "bookmark", "edd_payment_note", "favorite", "like", "mention", "note",
    "order_note", "pingback", "repost", "rsvp", "trackback", "webhook_delivery", "webmention",
}  # fmt: skip
LOCAL_TIMES = "times in GMT that are missing, replaced by local times read as UTC"
_NO_DATE = "0000-00-00 00:00:00"
_BLANK_LINES = re.compile(r"\n[ \t]*\n\s*")
_PARAGRAPHS = re.compile(r"<(?:p|pre|ul|ol|blockquote|table|h[1-6])\b", re.IGNORECASE)


def read(path: Path) -> Iterator[import_source.Item]:
    """Yield the posts and comments in an export; pingbacks and the like become other items."""
    for element in xml_reader.read(path, _SHAPE):
        if isinstance(element, import_source.Corrected):
            yield element
            continue
        kind = element.text("wp:comment_type")
        if element.name == _ITEM:
            yield _thread(element)
        elif kind.lower() in _OTHERS:
            yield import_source.OtherItem(element.text("wp:comment_id"), element.line, kind)
        else:
            yield from _comment(path, element)


def _short_name(qualified: str) -> str:
    match = _EXPORT.fullmatch(qualified)
    if match is not None:
        return f"wp:{match[1]}"
    return "" if " " in qualified else qualified


_SHAPE = xml_reader.Shape(
    title="a WordPress export",
    root="rss",
    name=_short_name,
    prefixes={"wp": "http://wordpress.org/export/1.2/"},
    records={
        _ITEM: frozenset(
            ["title", "link", "guid", "wp:status", "wp:comment_status", "wp:post_password"]
        ),
        _COMMENT: frozenset(
            f"wp:comment_{name}"
            for name in {"id", "parent", "date", "date_gmt", "content", "approved", "type"}
            | {"author", "author_email", "author_url", "author_IP"}
        )
        | {_META_KEY, _META_VALUE},
    },
)


def _thread(element: xml_reader.Element) -> import_source.SourceThread:
    is_public = element.text("wp:status") in _PUBLIC and not element.text("wp:post_password")
    return import_source.SourceThread(
        key=str(element.serial),
        line=element.line,
        link=element.text("link"),
        id=element.text("guid"),
        title=element.text("title"),
        closed=element.text("wp:comment_status") == "closed",
        hidden=not is_public,
    )


def _comment(path: Path, element: xml_reader.Element) -> Iterator[import_source.Item]:
    parent = element.text("wp:comment_parent")
    date = element.text("wp:comment_date_gmt")
    if date in {"", _NO_DATE}:
        date = element.text("wp:comment_date")
        yield import_source.Corrected(element.line, LOCAL_TIMES)
    if element.text("wp:comment_author_IP"):
        yield import_source.LeftOut(element.line, record_fields.ADDRESSES)
    former = element.text(_META_VALUE) if element.text(_META_KEY) == "flatthread_id" else ""
    yield import_source.SourceComment(
        system=SYSTEM,
        id=import_source.checked_id(path, element.line, element.text("wp:comment_id")),
        line=element.line,
        thread=str(element.inside),
        parent=None if parent in {"", "0"} else parent,
        status=_STATUSES.get(element.text("wp:comment_approved"), Status.PENDING),
        created=_moment(path, element.line, date),
        # WordPress stores names with HTML entities.
        name=html.unescape(element.text("wp:comment_author")),
        email=element.text("wp:comment_author_email"),
        website=element.text("wp:comment_author_url"),
        body=_displayed_html(element.text("wp:comment_content")),
        former=former if comment_rows.is_comment_id(former) else "",
    )


def _moment(path: Path, line: int, date: str) -> datetime:
    if date in {"", _NO_DATE}:
        reason = "the comment has no date. Write one in <wp:comment_date_gmt>"
        raise errors.BadImport(str(path), line, reason)
    return import_source.moment(path, line, date)


def _displayed_html(text: str) -> str:
    """Add paragraphs, line breaks and links to a text, as WordPress does for display.

    If links would exceed the limit for a comment, addresses stay plain text.
    """
    displayed = _with_paragraphs(text)
    linked = linked_html.with_links(displayed)
    try:
        sanitizing.check(linked)
    except errors.BadInput:
        return displayed
    return linked


def _with_paragraphs(text: str) -> str:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text or _PARAGRAPHS.search(text):
        return text
    blocks = (block.replace("\n", "<br>\n") for block in _BLANK_LINES.split(text))
    return "\n".join(f"<p>{block}</p>" for block in blocks)
