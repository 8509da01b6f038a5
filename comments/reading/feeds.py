"""The newest comments for feed readers: of a thread, and of a whole site.

Owns which comments a feed holds: of the newest `LIMIT` that stand in the thread or on the site,
those that were not retracted, newest first. What it costs, at any size:

- A thread's feed is made from the materialised thread where one bucket holds it (two reads, or none
  when this process holds them), and of a longer thread by one query of its newest rows. Its tag is
  the thread's: an unchanged feed costs the probe, which bills nothing or one read where nothing
  waits (docs/costs.md).
- A site's feed is named by a projection of (key, revision) over its newest comments, one read, and
  by the titles of their threads, of which the process keeps copies for a minute. Only if that names
  another feed than was sent are the comments read, by key. A process that meets these comments for
  the first time reads them to learn which threads they are in.

Feeds of one tag must be the same: if rows change between the naming and the reading, the feed is
named again, or by its bytes. Nothing is written here.
"""

import contextlib
import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import TypeVar

import msgspec

from comments import errors
from comments.domain import presentation, records
from comments.reading import page_source
from comments.reading.materialized import first_page, merged_view, thread_view
from comments.sites import thread_info
from comments.store import caches, per_process, reads, transactions
from comments.store.models import conversion
from comments.tree import ordered_query

T = TypeVar("T")

LIMIT = 30
_TRIES = 3
_MOST_SITES = 1_000  # whose feeds' threads are kept


class Entry(msgspec.Struct, frozen=True):
    """A comment and its thread, whose `title` and `url` may be empty."""

    comment: presentation.Comment
    name: records.ThreadName
    title: str
    url: str


class Feed(msgspec.Struct, frozen=True):
    """Comments, newest first.

    `changed` is when the thread last changed, or the newest of a site's entries; None where there
    is none. `title` and `url` are the thread's, empty for a site.
    """

    entries: tuple[Entry, ...]
    changed: datetime | None
    title: str = ""
    url: str = ""


Offer = page_source.Offer[Feed]


class _Changed(errors.FlatthreadError):
    """Comments changed between the naming of a feed and its making."""


def of_thread(name: records.ThreadName, secret: str) -> page_source.Listing[Feed]:
    """The feed of a thread."""

    def cut(view: merged_view.View) -> Feed:
        if len(view.directory.lines) <= 1:
            rows = sorted(view.rows(), key=lambda row: row.sort_hash, reverse=True)
            comments = [presentation.read(row.json, 0) for row in rows]
            comments.sort(key=lambda comment: comment.created, reverse=True)
            return _feed(name, comments[:LIMIT], view.changed, _about(name, view))
        comments = _newest(name)
        if thread_view.tag(name) != view.tag:
            raise thread_view.NotMaterialized("the thread changed while it was read")
        return _feed(name, comments, view.changed, _about(name, view))

    def otherwise() -> Feed:
        comments, changed = transactions.at_one_moment(
            lambda: (_newest(name), ordered_query.changed(name))
        )
        return _feed(name, comments, changed, thread_info.get(name) if changed else None)

    return page_source.Listing(name, "feed", secret, otherwise, cut)


def answer_site(site: records.Site, give: Callable[[Offer], T]) -> T:
    """Answer from an offer of a site's feed: `give` may find that it need not be made.

    It is called again, with another offer, if comments change while it makes the feed.
    """
    for _ in range(_TRIES):
        probed = _probed(site)
        with contextlib.suppress(_Changed):
            ids, names = _PLACES.get().get(site.id) or ((), None)
            names = names if ids == tuple(probed) else None
            rows = _rows(site, probed) if names is None else None
            about = thread_info.get_many(_names(rows) if rows is not None else names or ())
            titles = [thread and (thread.title, thread.url) for thread in about]
            named = msgspec.msgpack.encode((site.id, list(probed.items()), titles))
            tag = hashlib.sha256(named).hexdigest()
            return give(page_source.Offer(tag, functools.partial(_of_site, site, probed, rows)))
    probed = _probed(site)
    found = _of_site(site, probed, _rows(site, probed, is_exact=False))
    return give(page_source.Offer("", lambda: found))


def _newest(name: records.ThreadName) -> list[presentation.Comment]:
    found = ordered_query.run(
        name, order=ordered_query.Order.NEWEST, parent=None, limit=LIMIT, cursor=None, secret=""
    )
    return [presentation.comment(row) for row in found.rows]


def _feed(
    name: records.ThreadName,
    comments: Iterable[presentation.Comment],
    changed: datetime | None,
    thread: records.ThreadHeading | records.Thread | None,
) -> Feed:
    title, url = (thread.title, thread.url) if thread else ("", "")
    entries = (
        Entry(comment, name, title, url)
        for comment in comments
        if comment.status is presentation.Shown.APPROVED
    )
    return Feed(tuple(entries), changed, title, url)


def _about(
    name: records.ThreadName, view: merged_view.View
) -> records.ThreadHeading | records.Thread | None:
    """The thread's title and address; read where the directory does not know them any more."""
    return first_page.about(view) or (thread_info.fresh(name) if view.changed else None)


def _probed(site: records.Site) -> dict[str, int]:
    """The revisions of a site's newest comments, newest first."""
    query = reads.Query(
        "Comment",
        where=(("site", "=", site.id), ("status", "=", records.Status.APPROVED.value)),
        order=("-created", "revision"),
        projection=("revision",),
        limit=LIMIT,
    )
    return {
        message.key.path[-1].name: message.properties["revision"].integer_value
        for message in reads.fetch(query)
    }


# In which threads the comments of each site's last feed are, beside these comments' ids.
_PLACES = per_process.PerProcess(
    lambda: caches.Cache[str, tuple[tuple[str, ...], tuple[records.ThreadName, ...]]](_MOST_SITES)
)


def _rows(
    site: records.Site, probed: Mapping[str, int], *, is_exact: bool = True
) -> list[records.Comment]:
    """These comments; what was retracted meanwhile is left out.

    Raises:
        _Changed: not all of them are at these revisions any more, and the feed is to be exact.
    """
    found = map(conversion.comment_from_message, reads.lookup("Comment", list(probed)))
    rows = {row.id: row for row in found if row.status is records.Status.APPROVED}
    if is_exact and {each: row.revision for each, row in rows.items()} != dict(probed):
        raise _Changed("comments changed while they were read")
    shown = [rows[each] for each in probed if each in rows]
    if is_exact:
        _PLACES.get().keep(site.id, (tuple(probed), _names(shown)))
    return shown


def _names(rows: Iterable[records.Comment]) -> tuple[records.ThreadName, ...]:
    return tuple(records.ThreadName(row.site, row.thread) for row in rows)


def _of_site(
    site: records.Site, probed: Mapping[str, int], rows: list[records.Comment] | None
) -> Feed:
    """The feed of these comments, whose `rows` are read where they are not given; see `_rows`."""
    shown = _rows(site, probed) if rows is None else rows
    about = thread_info.get_many(_names(shown))
    entries = tuple(
        Entry(presentation.comment(row), thread.name, thread.title, thread.url)
        for row, thread in zip(shown, about, strict=True)
        if thread is not None
    )
    return Feed(entries, records.newest(row.changed for row in shown))
