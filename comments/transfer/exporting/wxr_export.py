"""Write an export as WXR 1.2, the XML export format of WordPress.

Each thread becomes a post, and each comment a comment of that post. In WXR, comments are identified
by numbers, so each comment gets a number, and its id is stored in the comment's metadata
`flatthread_id`.

    approved               1
    pending                0
    spam, shadowed         spam
    rejected, hidden       trash
    retracted              trash with the text "[deleted]", because replies need their parent

Texts are written as the sanitized HTML that readers see. WXR has no place for edits, pins and the
votes of single voters; `flatthread_up` and `flatthread_down` are the total numbers of votes.

No text is empty, because Isso's importer fails on an empty text. No two posts have the same path
and query. Isso identifies a page only by path and query, and its importer fails on a second post
that has the same. No two posts have the same title and date, because WordPress would treat them as
one post. A post is dated before its comments, because otherwise WordPress would show it as written
after them.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from urllib.parse import quote, urlsplit
from xml.sax.saxutils import escape

from comments import errors
from comments.domain import records
from comments.domain.records import Status
from comments.transfer import import_source
from comments.transfer.checking import import_bodies
from comments.transfer.exporting import export_file, export_lines

_STATUSES = {
    Status.APPROVED: "1",
    Status.PENDING: "0",
    Status.SPAM: "spam",
    Status.SHADOWED: "spam",
    Status.REJECTED: "trash",
    Status.HIDDEN: "trash",
    Status.RETRACTED: "trash",
}
# Characters that XML 1.0 does not allow.
_INVALID = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAMESPACES = {
    "excerpt": "http://wordpress.org/export/1.2/excerpt/",
    "content": "http://purl.org/rss/1.0/modules/content/",
    "wfw": "http://wellformedweb.org/CommentAPI/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "wp": "http://wordpress.org/export/1.2/",
}
_AUTHOR = "flatthread"
_DELETED, _EMPTY = "[deleted]", "[no text]"
_SECOND = timedelta(seconds=1)
_EARLIEST = datetime(2, 1, 1, tzinfo=UTC)  # Leaves room for earlier dates of posts
_EXTENSION = re.compile(r"\.(html?|php|aspx?)$", re.IGNORECASE)


def write(
    lines: Iterator[export_lines.Line], file: export_file.Output, header: export_lines.HeaderLine
) -> export_lines.EndLine:
    """Write the threads and comments among the lines; return the end line with their numbers."""
    return _Document(file, header.site, header.time).write(lines)


class _Document:
    """A WXR document that is being written."""

    def __init__(self, file: export_file.Output, site: str, now: datetime) -> None:
        self._file = file
        self._site = site
        self._now = now
        self._origins: tuple[str, ...] = ()
        self._threads = 0
        self._comments = 0
        self._places: set[tuple[str, str]] = set()  # The paths and queries of the posts
        self._dates: set[tuple[str, datetime]] = set()  # The titles and dates of the posts
        # The current thread, its oldest comment, and the numbers of its comments.
        self._title = ""
        self._oldest = now
        self._numbers: dict[str, int] = {}

    def write(self, lines: Iterator[export_lines.Line]) -> export_lines.EndLine:
        """Write all lines. A site's settings come first, because they contain its address."""
        for line in lines:
            match line:
                case export_lines.SettingsLine():
                    self._origins = line.origins
                    self._begin(line.origins[0] if line.origins else "")
                case export_lines.ThreadLine():
                    self._thread(line)
                case export_lines.CommentLine():
                    self._comment(line)
                case _:
                    pass
        self._end_thread()
        self._write_text("</channel>\n</rss>\n")
        return export_lines.EndLine(threads=self._threads, comments=self._comments)

    def _write_text(self, text: str) -> None:
        self._file.write(text.encode())

    def _begin(self, home: str) -> None:
        names = "".join(f'\n\txmlns:{name}="{address}"' for name, address in _NAMESPACES.items())
        self._write_text(
            f'<?xml version="1.0" encoding="UTF-8" ?>\n<rss version="2.0"{names}\n>\n<channel>\n'
        )
        self._write_text(
            _element("title", self._site)
            + _element("link", home)
            + _element("pubDate", _rfc_time(self._now))
            + _element("wp:wxr_version", "1.2")
            + _element("wp:base_site_url", home)
            + _element("wp:base_blog_url", home)
            + "<wp:author>"
            + _element("wp:author_id", "1")
            + _cdata("wp:author_login", _AUTHOR)
            + _cdata("wp:author_email", "")
            + _cdata("wp:author_display_name", _AUTHOR)
            + "</wp:author>\n"
        )

    def _thread(self, thread: export_lines.ThreadLine) -> None:
        self._end_thread()
        self._threads += 1
        self._numbers = {}
        self._title = thread.title or thread.id
        self._oldest = thread.created or self._now
        link = self._link(thread)
        is_open = thread.state is records.ThreadState.OPEN
        self._write_text(
            "\t<item>\n"
            + _cdata("title", self._title)
            + _element("link", link)
            + _cdata("dc:creator", _AUTHOR)
            + f'<guid isPermaLink="false">{_escape(thread.id)}</guid>\n'
            + _element("description", "")
            + _cdata("content:encoded", "")
            + _cdata("excerpt:encoded", "")
            + _element("wp:post_id", str(self._threads))
            + _cdata("wp:comment_status", "open" if is_open else "closed")
            + _cdata("wp:ping_status", "closed")
            + _cdata("wp:post_name", _slug(link))
            + _cdata("wp:status", "publish")
            + _element("wp:post_parent", "0")
            + _element("wp:menu_order", "0")
            + _cdata("wp:post_type", "post")
            + _cdata("wp:post_password", "")
            + _element("wp:is_sticky", "0")
        )

    def _link(self, thread: export_lines.ThreadLine) -> str:
        """Return the address of a thread's page; if Isso could confuse it, include the thread's id.

        Isso ignores hosts, so only pages on the site's own hosts keep their addresses unchanged.
        """
        hosts = {host: scheme for scheme, _, host in (o.partition("://") for o in self._origins)}
        scheme = hosts.get(thread.id.partition("/")[0])
        link = thread.url.partition("#")[0] or (f"{scheme}://{thread.id}" if scheme else "")
        if not link:
            return quote(thread.id, safe="")
        parts = urlsplit(link)
        place = parts.path, parts.query
        if parts.netloc not in hosts or place in self._places:
            return f"{link}{'&' if parts.query else '?'}thread={quote(thread.id, safe='/')}"
        self._places.add(place)
        return link

    def _end_thread(self) -> None:
        """End the current post with its date, which is known after all its comments were read."""
        if not self._threads:
            return
        date = max(self._oldest, _EARLIEST).replace(microsecond=0) - _SECOND
        while (self._title, date) in self._dates:
            date -= _SECOND
        self._dates.add((self._title, date))
        self._write_text(
            _element("pubDate", _rfc_time(date))
            + _cdata("wp:post_date", _plain_time(date))
            + _cdata("wp:post_date_gmt", _plain_time(date))
            + "\t</item>\n"
        )

    def _comment(self, comment: export_lines.CommentLine) -> None:
        self._comments += 1
        self._numbers[comment.id] = self._comments
        self._oldest = min(self._oldest, comment.created)
        parent = self._numbers.get(comment.reply_to or comment.parent or "", 0)
        created = _plain_time(comment.created)
        self._write_text(
            "\t\t<wp:comment>\n"
            + _element("wp:comment_id", str(self._comments))
            + _cdata("wp:comment_author", escape(comment.author.name))
            + _cdata("wp:comment_author_email", comment.author.email)
            + _element("wp:comment_author_url", comment.author.website)
            + _cdata("wp:comment_author_IP", "")
            + _cdata("wp:comment_date", created)
            + _cdata("wp:comment_date_gmt", created)
            + _cdata("wp:comment_content", _content(comment))
            + _cdata("wp:comment_approved", _STATUSES[comment.status])
            + _cdata("wp:comment_type", "comment")
            + _element("wp:comment_parent", str(parent))
            + _element("wp:comment_user_id", "0")
            + _meta("flatthread_id", comment.id)
            + _meta("flatthread_up", str(comment.up))
            + _meta("flatthread_down", str(comment.down))
            + "\t\t</wp:comment>\n"
        )


def _slug(link: str) -> str:
    """Return the name of a page: the last part of its path.

    WordPress replaces an empty name with a name made from the title.
    """
    names = [_EXTENSION.sub("", part) for part in urlsplit(link).path.split("/") if part]
    if names and names[-1] == "index":
        names.pop()
    return names[-1].lower() if names else ""


def _content(comment: export_lines.CommentLine) -> str:
    if comment.status is Status.RETRACTED:
        return _DELETED
    text = _html(comment)
    return text if text.strip() else _EMPTY


def _html(comment: export_lines.CommentLine) -> str:
    """Return a comment's text as sanitized HTML; an older renderer's HTML is returned as stored."""
    if comment.html:
        return comment.html
    try:
        return import_bodies.convert(comment.text, import_source.Markup(comment.markup)).html
    except errors.BadInput:  # The limits of texts were higher when the comment was stored.
        return escape(comment.text)


def _meta(key: str, value: str) -> str:
    return (
        "<wp:commentmeta>\n"
        + _cdata("wp:meta_key", key)
        + _cdata("wp:meta_value", value)
        + "</wp:commentmeta>\n"
    )


def _element(name: str, text: str) -> str:
    return f"<{name}>{_escape(text)}</{name}>\n"


def _cdata(name: str, text: str) -> str:
    # A CDATA section cannot contain its own end, so the end is split across two sections.
    split = _valid_text(text).replace("]]>", "]]]]><![CDATA[>")
    return f"<{name}><![CDATA[{split}]]></{name}>\n"


def _escape(text: str) -> str:
    return escape(_valid_text(text))


def _valid_text(text: str) -> str:
    """Replace characters that XML does not allow, and turn carriage returns into line feeds.

    XML parsers treat carriage returns in the same way.
    """
    return _INVALID.sub("\ufffd", text).replace("\r\n", "\n").replace("\r", "\n")


def _plain_time(moment: datetime) -> str:
    # strftime would write the year 999 with three digits.
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "seconds")


def _rfc_time(moment: datetime) -> str:
    return format_datetime(moment.astimezone(UTC))
