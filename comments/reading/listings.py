"""Choose the page source for a request: a thread, its replies, or the page around a comment.

Threaded pages are cut from the materialized thread (`thread_view`). Regardless of the thread's
size, a page costs the reads of the directory and of the necessary buckets, and one probe.
`ordered_query` provides the rows of pages that are flat by time or show one level, and the rows of
all pages if too many rows are not compacted yet. Both sources give the same pages. This module
writes nothing.

    thread   discussions, oldest first
    recent   discussions, newest first
    best     discussions with upvotes, best first (`ranking`), then the others, oldest first
    oldest, newest   flat by time

In all orders except the flat orders, replies to a comment are listed oldest first. Cursors are
positions: a page starts right after the last comment of the previous page. Comments that are added,
removed or changed between two pages therefore do not cause other comments to be skipped or
repeated. A cursor for `best` also names its ranking and expires with the ranking. A thread that is
not materialized has no ranking, so `best` equals `thread`.
"""

from comments import errors
from comments.domain import presentation, records
from comments.domain.ids import sorthash
from comments.reading.discussion_pages import BestDiscussions, RecentDiscussions
from comments.reading.flat_pages import Flat
from comments.reading.thread_pages import (
    Around,
    Below,
    InOrder,
    ListingOrder,
    ListingPage,
    PageRequest,
)
from comments.tree.lists import listed_comments


def page(
    scheme: sorthash.Scheme,
    name: records.ThreadName,
    asked: PageRequest,
    *,
    order: ListingOrder = ListingOrder.THREAD,
    parent: str | None = None,
) -> presentation.ThreadPage:
    """Make a page of a thread; see `source`."""
    site = records.Site(name.site, (), scheme.digits, scheme.width, scheme.levels)
    return source(site, name.id, asked, order=order, parent=parent).page()


def replies(comment_id: str, asked: PageRequest) -> presentation.ThreadPage:
    """Make a page with all comments below one comment; see `source_below`."""
    return source_below(comment_id, asked).page()


def around(
    scheme: sorthash.Scheme, name: records.ThreadName, address: str, asked: PageRequest
) -> presentation.ThreadPage:
    """Make the page that contains a comment; see `Around`."""
    return Around(scheme, name, address, asked).page()


def source(
    site: records.Site,
    thread: str,
    asked: PageRequest,
    *,
    order: ListingOrder = ListingOrder.THREAD,
    parent: str | None = None,
) -> ListingPage:
    """Return the source for a page of a thread.

    `parent` restricts the page to the roots (`ordered_query.ROOTS`) or to the children of one
    comment.

    Raises (here, or in `look` or `make` of the source):
        errors.BadInput: `parent` is combined with an order other than `thread`, or belongs to a
            different thread.
        errors.BadCursor: the cursor belongs to a different listing or is not valid.
        errors.CursorExpired: the cursor's ranking no longer exists.
        errors.NotFound: the parent is not a listed comment.
    """
    name = records.ThreadName(site.id, thread)
    if parent is not None and order is not ListingOrder.THREAD:
        raise errors.BadInput("parent", "needs-thread-order")
    if parent is not None or order in {ListingOrder.OLDEST, ListingOrder.NEWEST}:
        return Flat(name, asked, order, parent)
    if order is ListingOrder.RECENT:
        return RecentDiscussions(site.scheme, name, asked)
    if order is ListingOrder.BEST:
        return BestDiscussions(site.scheme, name, asked)
    return InOrder(name, asked)


def source_below(comment_id: str, asked: PageRequest) -> ListingPage:
    """Return the source for a page with all comments below one comment, in reading order.

    Raises:
        errors.NotFound: the comment does not exist or is not listed.
        errors.BadCursor: see `source`.
    """
    return Below(listed_comments.by_id(comment_id), asked)
