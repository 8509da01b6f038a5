"""What readers ask for: pages of a thread, of its replies, around one comment.

Owns which page source answers which question. Threaded pages are cut from the materialised thread
(`thread_view`): a page costs its directory, the buckets it shows and one probe, at any size.
Where too much is not folded yet, and for the orders flat by time and one level at a time, the rows
come from the `ordered_query`, which every answer here equals. Nothing is written.

    thread   discussions, oldest first
    recent   discussions, newest first
    best     discussions, those with the best votes first (`ranking`), the rest oldest first
    oldest, newest   flat by time

Replies below a comment are oldest first in every order but the flat ones. Cursors are positions:
a page continues strictly after the last comment of the page before, so comments that come, go or
change meanwhile are neither skipped nor repeated. One of `best` names its ranking too, and expires
with it. Where nothing is folded there is no ranking: `best` is then as `thread`.
"""

from comments import errors
from comments.domain import presentation, records, sorthash
from comments.reading.discussion_pages import Best, Recent
from comments.reading.flat_pages import Flat
from comments.reading.thread_pages import Around, Asked, Below, InOrder, ListingPage, Order
from comments.tree import ordered_query


def page(
    scheme: sorthash.Scheme,
    name: records.ThreadName,
    asked: Asked,
    *,
    order: Order = Order.THREAD,
    parent: str | None = None,
) -> presentation.ThreadPage:
    """A page of a thread, see `source`."""
    site = records.Site(name.site, (), scheme.digits, scheme.width)
    return source(site, name.id, asked, order=order, parent=parent).page()


def replies(comment_id: str, asked: Asked) -> presentation.ThreadPage:
    """A page of everything below one comment, see `source_below`."""
    return source_below(comment_id, asked).page()


def around(
    scheme: sorthash.Scheme, name: records.ThreadName, comment_id: str, asked: Asked
) -> presentation.ThreadPage:
    """The page that a comment stands on, see `Around`."""
    return Around(scheme, name, comment_id, asked).page()


def source(
    site: records.Site,
    thread: str,
    asked: Asked,
    *,
    order: Order = Order.THREAD,
    parent: str | None = None,
) -> ListingPage:
    """A page of a thread.

    `parent` narrows it to the roots (`ordered_query.ROOTS`) or to the children of one comment.

    Raises, now or when the page is looked for or made:
        errors.BadInput: a parent with another order, or of another thread.
        errors.BadCursor: a cursor of another listing, or none of ours.
        errors.CursorExpired: a cursor of a ranking that is gone.
        errors.NotFound: the parent is not a listed comment.
    """
    name = records.ThreadName(site.id, thread)
    if parent is not None and order is not Order.THREAD:
        raise errors.BadInput("parent", "goes with order=thread only")
    if parent is not None or order in {Order.OLDEST, Order.NEWEST}:
        return Flat(name, asked, order, parent)
    if order is Order.RECENT:
        return Recent(site.scheme, name, asked)
    if order is Order.BEST:
        return Best(site.scheme, name, asked)
    return InOrder(name, asked)


def source_below(comment_id: str, asked: Asked) -> ListingPage:
    """A page of everything below one comment, in reading order.

    Raises:
        errors.NotFound: there is no such listed comment.
        errors.BadCursor: see `source`.
    """
    return Below(ordered_query.listed(comment_id), asked)
