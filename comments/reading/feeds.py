"""Make feeds of the newest comments of a thread, of a whole site, or of a site's category.

A feed lists the newest `LIMIT` comments except retracted comments, newest first. The cost of a feed
does not depend on the size of the thread or site:

- If a materialized thread has at most one bucket, the thread's feed is made from the view. A view
  costs two reads, or none if the process has cached both entities. For other threads, one query
  reads the newest rows. The tag is the thread's tag, so an unchanged feed costs one probe. A probe
  costs one read, or nothing if no row has changed (docs/costs.md).
- The tag of a site or category covers the keys and revisions of its newest comments, and the ids
  and titles of their threads. A projection query returns the keys and revisions for one read, and
  the process caches the titles for a minute. The comments are read by key, and only if the client's
  tag differs. If this process has not seen the comments yet, it also reads them to find their
  threads.

This module writes nothing.

Feeds with the same tag are identical. If rows change after the tag is computed and before the rows
are read, either the tag is computed again, or the feed gets no tag and is identified by its bytes.
"""

import contextlib
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

import msgspec

from comments import errors
from comments.domain import presentation, records
from comments.domain.crypto import cursors
from comments.reading.materialized import first_page, merged_view, thread_view
from comments.reading.materialized.view_cache import NotMaterialized
from comments.reading.page_source import PageData, PageSource
from comments.reading.thread_pages import view_of
from comments.store import reads, transactions
from comments.store.memory import caches, per_process
from comments.store.models import comment_rows, conversion
from comments.threads import thread_info
from comments.tree.lists import ordered_query

T = TypeVar("T")

LIMIT = 30
_TRIES = 3
_MOST_FEEDS = 1_000  # Maximum number of feeds in the cache `_PLACES`


class FeedEntry(msgspec.Struct, frozen=True):
    """A comment and its thread. The thread's `title` and `url` may be empty."""

    comment: presentation.PublicComment
    name: records.ThreadName
    title: str
    url: str


class Feed(msgspec.Struct, frozen=True):
    """Comments, newest first.

    `changed` is the time of the newest change in the thread or, for a site, in the listed comments.
    It is None if there is no change. `title` and `url` describe the thread and are empty for a
    site.
    """

    entries: tuple[FeedEntry, ...]
    changed: datetime | None
    title: str = ""
    url: str = ""


class _Changed(errors.FlatthreadError):
    """Raised if comments changed after the feed's tag was computed."""


class ThreadFeed(PageSource[Feed]):
    """The feed of a thread."""

    is_exact = True

    def __init__(self, name: records.ThreadName, secret: str) -> None:
        self.name, self.secret = name, secret
        self.key = cursors.label("feed", comment_rows.thread_key_name(name))

    def _cut_page(self, source: PageData) -> Feed:
        name, view = self.name, view_of(source)
        if len(view.directory.lines) <= 1:
            rows = sorted(view.rows(), key=lambda row: row.sort_hash, reverse=True)
            comments = [presentation.read(row.json, 0) for row in rows]
            comments.sort(key=lambda comment: comment.created, reverse=True)
            return _feed(name, comments[:LIMIT], view.changed, _about(name, view))
        comments = _newest(name)
        if thread_view.tag(name) != view.tag:
            raise NotMaterialized("the thread changed while it was read")
        return _feed(name, comments, view.changed, _about(name, view))

    def _query(self) -> Feed:
        comments, changed = transactions.at_one_moment(
            lambda: (_newest(self.name), ordered_query.last_change(self.name))
        )
        return _feed(self.name, comments, changed, thread_info.get(self.name) if changed else None)


class SiteFeed:
    """The feed of a site, or of its comments that a canonical category term finds.

    This class has the methods of a page source, but belongs to no thread.
    """

    def __init__(self, site: records.Site, category: str = "") -> None:
        self.key = cursors.label("feed of a site", site.id, *filter(None, [category]))
        self.tag = self.lasts = ""
        below = (("category_terms", "=", category),) if category else ()
        self._where = (
            ("site", "=", site.id),
            *below,
            ("status", "=", records.Status.APPROVED.value),
        )
        self._probed: Mapping[str, int] = {}
        self._rows: list[records.Comment] | None = None
        self._feed: Feed | None = None

    def look(self, age: float = 0.0) -> str:
        """Return a tag that covers comments and their threads' titles, or "" during a change."""
        del age
        self.tag, self._feed = "", None
        for _ in range(_TRIES):
            self._probed = _newest_revisions(self._where)
            with contextlib.suppress(_Changed):
                ids, names = _PLACES.get().get(self.key) or ((), ())
                is_known = ids == tuple(self._probed)
                self._rows = None if is_known else _rows(self.key, self._probed)
                about = thread_info.get_many(names if self._rows is None else _names(self._rows))
                titles = [
                    thread and (thread.shown_id, thread.title, thread.url) for thread in about
                ]
                named = msgspec.msgpack.encode((self.key, list(self._probed.items()), titles))
                self.tag = hashlib.sha256(named).hexdigest()
                return self.tag
        return ""

    def make(self) -> Feed:
        """Make the feed.

        If the comments have changed since `look`, look again, which changes `tag`.
        """
        for _ in range(_TRIES):
            if self._feed is not None or not self.tag:
                break
            try:
                self._feed = _of_site(self.key, self._probed, self._rows)
            except _Changed:
                self.look()
        if self._feed is None:
            self.tag, probed = "", _newest_revisions(self._where)
            rows = _rows(self.key, probed, is_exact=False)
            self._feed = _of_site(self.key, probed, rows)
        return self._feed


def _newest(name: records.ThreadName) -> list[presentation.PublicComment]:
    page = ordered_query.uncounted_page(
        name,
        order=ordered_query.QueryOrder.NEWEST,
        parent=None,
        limit=LIMIT,
        cursor=None,
        secret="",
    )
    return [presentation.comment(row) for row in page.rows]


def _feed(
    name: records.ThreadName,
    comments: Iterable[presentation.PublicComment],
    changed: datetime | None,
    thread: records.ThreadHeading | records.Thread | None,
) -> Feed:
    title, url = (thread.title, thread.url) if thread else ("", "")
    entries = (
        FeedEntry(comment, name, title, url)
        for comment in comments
        if comment.status is presentation.Shown.APPROVED
    )
    return Feed(tuple(entries), changed, title, url)


def _about(
    name: records.ThreadName, view: merged_view.View
) -> records.ThreadHeading | records.Thread | None:
    """Return the thread's title and address. Read the thread if the directory lacks both."""
    return first_page.about(view) or (thread_info.fresh(name) if view.changed else None)


def _newest_revisions(where: Sequence[tuple[str, str, object]]) -> dict[str, int]:
    """Map the ids of the newest comments, newest first, to the comments' revisions."""
    query = reads.Query(
        "Comment",
        where=where,
        order=("-created", "revision"),
        projection=("revision",),
        limit=LIMIT,
    )
    return {
        message.key.path[-1].name: message.properties["revision"].integer_value
        for message in reads.fetch(query)
    }


# For each feed, by its key: the comment ids of the last one and the threads of these comments.
_PLACES = per_process.PerProcess(
    lambda: caches.Cache[str, tuple[tuple[str, ...], tuple[records.ThreadName, ...]]](_MOST_FEEDS)
)


def _rows(feed: str, probed: Mapping[str, int], *, is_exact: bool = True) -> list[records.Comment]:
    """Read these comments. Omit comments that are no longer approved.

    Raises:
        _Changed: `is_exact` is set, and a comment no longer has the revision in `probed`.
    """
    comments = map(conversion.comment_from_message, reads.lookup("Comment", list(probed)))
    rows = {row.id: row for row in comments if row.status is records.Status.APPROVED}
    if is_exact and {comment_id: row.revision for comment_id, row in rows.items()} != dict(probed):
        raise _Changed("comments changed while they were read")
    shown = [rows[comment_id] for comment_id in probed if comment_id in rows]
    if is_exact:
        _PLACES.get().keep(feed, (tuple(probed), _names(shown)))
    return shown


def _names(rows: Iterable[records.Comment]) -> tuple[records.ThreadName, ...]:
    return tuple(records.ThreadName(row.site, row.thread) for row in rows)


def _of_site(feed: str, probed: Mapping[str, int], rows: list[records.Comment] | None) -> Feed:
    """Make a feed of these comments. If `rows` is None, read the rows with `_rows`."""
    shown = _rows(feed, probed) if rows is None else rows
    about = thread_info.get_many(_names(shown))
    entries = tuple(
        FeedEntry(
            presentation.comment(row),
            records.ThreadName(row.site, thread.shown_id),
            thread.title,
            thread.url,
        )
        for row, thread in zip(shown, about, strict=True)
        if thread is not None
    )
    return Feed(entries, records.newest(row.changed for row in shown))
