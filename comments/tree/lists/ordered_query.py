"""Run the ordered query: read a thread, as readers see it, directly from its comments.

This module owns the only ordered query over a thread's listed comments, or over a range of them.
Every materialized page must equal the result of this query, which also serves threads that are not
materialized. The query never writes. A thread without comments gives an empty page.

Cursors are positions, not counts. A page continues strictly after the last comment of the previous
page, so comments that appear, disappear or change in between do not cause other comments to be
skipped or repeated. A cursor is signed and names its listing. A cursor for a different thread,
order or parent is refused.

Every result is the state at one moment: if it requires several reads, of rows or of numbers, the
reads share one read-only transaction (`transactions.at_one_moment`).
"""

import dataclasses
import enum
import itertools
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from comments import errors
from comments.domain import records
from comments.domain.crypto import cursors
from comments.domain.ids import sorthash
from comments.store import reads, transactions
from comments.store.models import comment_rows, conversion
from comments.tree.lists import listed_comments

MAX_LIMIT = 200
MOST_COUNTED = 1_000  # Comments that a page in a flat order counts without a time index
ROOTS = "root"
# Places in an order by time, each with the number of comments before it (`time_index.Start`).
Starts = Sequence[tuple[datetime | None, int]]
_BEGINNING: Starts = ((None, 0),)


class QueryOrder(enum.StrEnum):
    """The order of a listing: by discussion, or flat by time."""

    THREAD = "thread"
    OLDEST = "oldest"
    NEWEST = "newest"


_BY = {
    QueryOrder.THREAD: ("sort_hash",),
    QueryOrder.OLDEST: ("created", "sort_hash"),
    QueryOrder.NEWEST: ("-created", "-sort_hash"),
}


@dataclasses.dataclass(frozen=True, slots=True)
class _Listing:
    """A listing: the selection of rows and their order.

    `low` and `high` are the bounds of the sort hash. If `level` is None, all levels are listed.
    """

    name: records.ThreadName
    order: QueryOrder = QueryOrder.THREAD
    parent: str = ""
    low: str = ""
    high: str = sorthash.ABOVE
    level: int | None = None

    @property
    def label(self) -> str:
        """Return the label that binds a cursor to this listing."""
        return cursors.label(comment_rows.thread_key_name(self.name), self.order, self.parent)


@dataclasses.dataclass(frozen=True, slots=True)
class UncountedPage:
    """The rows of a page and the rows after it.

    The number of comments below each row is not counted yet. `before` is the number of comments
    before the first row in the listing's order, or None if finding it would take more reads.
    """

    listing: _Listing
    rows: list[records.Comment]
    beyond: list[records.Comment]
    cursor: str | None
    before: int | None

    @property
    def is_in_order(self) -> bool:
        """Return whether the rows are in reading order."""
        return self.listing.order is QueryOrder.THREAD

    def with_counts(self) -> records.OrderedPage:
        """Return the page. Query the store for each number that the rows do not determine."""
        replies = _replies(self.listing, self.rows, self.beyond)
        before = self.before
        if before is None and self.is_in_order and self.rows:
            before = _count(_Listing(self.listing.name, high=self.rows[0].sort_hash))
        places = self.places(before, replies)
        return records.OrderedPage(
            comments=tuple(self.rows),
            replies=replies,
            cursor=self.cursor,
            total=_count(_Listing(self.listing.name)),
            changed=last_change(self.listing.name),
            positions=places,
            starts=places if self.is_in_order else (None,) * len(places),
            in_order=self.is_in_order,
        )

    def places(self, before: int | None, replies: Sequence[int]) -> tuple[int | None, ...]:
        """Return the positions of the rows in the listing's order, counted from 1.

        `before` is the number of comments before the first row, or None if it is not known.
        """
        if before is None:
            return (None,) * len(self.rows)
        if self.listing.level is None:
            return tuple(range(before + 1, before + 1 + len(self.rows)))
        # The next sibling follows directly after the subtree of the previous sibling.
        steps = (1 + count for count in replies[: len(self.rows) - 1])
        return tuple(itertools.accumulate(steps, initial=before + 1)) if self.rows else ()


def page(
    name: records.ThreadName,
    *,
    order: QueryOrder,
    parent: str | None,
    limit: int,
    cursor: str | None,
    secret: str,
) -> records.OrderedPage:
    """Read a page of a thread (see `uncounted_page`)."""

    def read() -> records.OrderedPage:
        uncounted = uncounted_page(
            name, order=order, parent=parent, limit=limit, cursor=cursor, secret=secret
        )
        return uncounted.with_counts()

    return transactions.at_one_moment(read)


def uncounted_page(
    name: records.ThreadName,
    *,
    order: QueryOrder,
    parent: str | None,
    limit: int,
    cursor: str | int | None,
    secret: str,
) -> UncountedPage:
    """Read a page's rows. `parent` limits the page to the roots (`ROOTS`) or a comment's children.

    If the cursor is an integer, it is an offset: the number of comments before the page.

    Raises:
        errors.BadInput: the limit is outside 1 to `MAX_LIMIT`, a parent was given with a flat order
            or is in a different thread, or the thread has no comment after the offset.
        errors.BadCursor: the cursor belongs to a different listing, or this service did not
            sign it.
        errors.CursorExpired: the thread has moved to another scheme since the cursor was made.
        errors.NotFound: the parent is not a listed comment.
    """
    if parent is not None and order is not QueryOrder.THREAD:
        raise errors.BadInput("parent", "needs-thread-order")
    listing = _Listing(name, order)
    if parent == ROOTS:
        listing = _Listing(name, parent=ROOTS, level=0)
    elif parent is not None:
        row = listed_comments.in_thread(name, parent, field="parent")
        low, high = sorthash.subtree_range(row.sort_hash)
        listing = _Listing(name, parent=parent, low=low, high=high, level=row.level + 1)
    return _listing_page(listing, limit=limit, cursor=cursor, secret=secret)


def flat_page(
    name: records.ThreadName,
    *,
    order: QueryOrder,
    limit: int,
    cursor: str | int | None,
    secret: str,
    starts: Starts = _BEGINNING,
) -> UncountedPage:
    """Read the rows of a page in a flat order; see `uncounted_page`.

    `starts` are places in this order, from which the comments before the page are skipped or
    counted.
    """
    listing = _Listing(name, order)
    return _listing_page(listing, limit=limit, cursor=cursor, secret=secret, starts=starts)


def replies(comment_id: str, *, limit: int, cursor: str | None, secret: str) -> records.OrderedPage:
    """Read a page of the comments below a comment, in reading order.

    Raises:
        errors.NotFound: the comment does not exist or is not listed.
        errors.BadInput, errors.BadCursor: see `uncounted_page`.
    """

    def read() -> records.OrderedPage:
        row = listed_comments.by_id(comment_id)
        low, high = sorthash.subtree_range(row.sort_hash)
        name = records.ThreadName(row.site, row.thread)
        listing = _Listing(name, parent=f"below {comment_id}", low=low, high=high)
        after = (row.sort_hash,)
        return _listing_page(
            listing, limit=limit, cursor=cursor, secret=secret, after=after
        ).with_counts()

    return transactions.at_one_moment(read)


def around(
    name: records.ThreadName, comment_id: str, *, limit: int, secret: str
) -> records.OrderedPage:
    """Read the thread's page that starts with the root above a comment.

    If that page would end before the comment, the page starts with the comment itself.

    Raises:
        errors.NotFound: the comment does not exist or is not listed.
        errors.BadInput: the comment is in a different thread.
    """
    check_limit(limit)

    def read() -> records.OrderedPage:
        row = listed_comments.in_thread(name, comment_id, field="around")
        root = next(sorthash.segments(scheme_of(name), row.sort_hash))
        listing = _Listing(name)
        before = _count(dataclasses.replace(listing, low=root, high=row.sort_hash))
        start = root if before < limit else row.sort_hash
        rows = _rows(dataclasses.replace(listing, low=start), limit + 1)
        return _page_of(listing, rows, limit, secret, before=None).with_counts()

    return transactions.at_one_moment(read)


def pinned_comments(name: records.ThreadName, ids: Sequence[str]) -> records.PinnedComments:
    """Read a thread's pinned comments among these, and count the comments below each of them."""
    rows = reads.get_multi([comment_rows.comment_key(comment_id) for comment_id in ids])
    comments = [conversion.comment_record(row) for row in rows if row is not None]
    shown = [row for row in comments if row.pinned and not row.is_tombstone]
    shown.sort(key=lambda row: row.sort_hash)
    return records.PinnedComments(
        tuple(shown),
        tuple(_below(name, row) for row in shown),
        tuple(1 + _count(_Listing(name, high=row.sort_hash)) for row in shown),
    )


def thread(name: records.ThreadName) -> tuple[records.Comment, ...]:
    """Read a thread's whole discussion with one query.

    Tests compare all other ways to read a thread with this function.
    """
    return tuple(_rows(_Listing(name), None))


def stretch(
    name: records.ThreadName, low: str, high: str, *, limit: int
) -> tuple[records.Comment, ...]:
    """Read the first listed rows with low <= sort hash < high."""
    return tuple(_rows(_Listing(name, low=low, high=high), limit))


def last_change(name: records.ThreadName) -> datetime | None:
    """Return the time of a thread's last change visible to readers, or None if there was none."""
    query = reads.Query(
        "Comment",
        where=(("thread", "=", comment_rows.thread_key_name(name)),),
        order=("-changed",),
        projection=("changed",),
        limit=1,
    )
    times = (message.properties["changed"] for message in reads.fetch(query))
    return next(map(conversion.projected_time, times), None)


def before(name: records.ThreadName, sort_hash: str) -> int:
    """Count the comments before a sort hash in reading order."""
    return _count(_Listing(name, high=sort_hash))


def totals(site: str, thread_ids: Sequence[str]) -> list[int]:
    """Count the comments that readers see in each thread."""
    return [_count(_Listing(records.ThreadName(site, thread_id))) for thread_id in thread_ids]


def _listing_page(
    listing: _Listing,
    *,
    limit: int,
    cursor: str | int | None,
    secret: str,
    after: tuple[object, ...] | None = None,
    starts: Starts = _BEGINNING,
) -> UncountedPage:
    check_limit(limit)
    position, before, shape = after, None, None
    if isinstance(cursor, str):
        position, shape = _unseal(cursor, listing, secret)
        if listing.order is not QueryOrder.THREAD:
            before = _before_flat(listing, position, starts)
    elif after is None and not listing.low:
        before = cursor or 0
        position = _last_skipped(listing, before, starts) if before else None
    rows = _rows(listing, limit + 1, after=position)
    if shape is not None and shape != (rows[0].shape if rows else _shape_of(listing.name)):
        raise errors.CursorExpired
    return _page_of(listing, rows, limit, secret, before=before)


def _last_skipped(listing: _Listing, offset: int, starts: Starts) -> tuple[object, ...]:
    """Return the position of the last comment that an offset skips.

    Only index entries are read. The result is in the form that cursors contain.
    """
    start, before = next(place for place in reversed(starts) if place[1] < offset)
    properties = tuple(name.lstrip("-") for name in _BY[listing.order])
    query = reads.Query(
        "Comment",
        where=(*_base(listing), *_from(listing, start)),
        order=_BY[listing.order],
        projection=properties,
        offset=offset - before - 1,
        limit=2,
    )
    messages = list(reads.fetch(query))
    # Without a comment after the skipped comments, the page would be empty.
    if len(messages) < 2:  # noqa: PLR2004
        raise beyond_the_end(_count(listing))
    last = messages[0].properties
    sort_hash = last["sort_hash"].string_value
    if listing.order is QueryOrder.THREAD:
        return (sort_hash,)
    return conversion.projected_time(last["created"]), sort_hash


def beyond_the_end(total: int) -> errors.BadInput:
    """Return the error for an offset that skips all comments of a thread."""
    return errors.BadInput("offset", "beyond-the-end", total=total)


def _before_flat(listing: _Listing, position: tuple[Any, ...], starts: Starts) -> int | None:
    """Count the comments up to a position in a flat order, or return None if there are too many."""
    moment, sort_hash = position
    is_oldest = listing.order is QueryOrder.OLDEST
    earlier, same = ("<", "<=") if is_oldest else (">", ">=")
    start, known = next(
        place for place in reversed(starts) if place[0] is None or (place[0] <= moment) is is_oldest
    )
    most = MOST_COUNTED + 1 if len(starts) == 1 else None
    count = sum(
        _count_where(listing, where, most)
        for where in (
            (*_from(listing, start), ("created", earlier, moment)),
            (("created", "=", moment), ("sort_hash", same, sort_hash)),
        )
    )
    return None if most and count >= most else known + count


def _from(listing: _Listing, start: datetime | None) -> tuple[tuple[str, str, object], ...]:
    """Return the condition for the comments after a place in a flat order (`Starts`)."""
    if start is None:
        return ()
    return (("created", ">=" if listing.order is QueryOrder.OLDEST else "<", start),)


def _count_where(
    listing: _Listing, where: Iterable[tuple[str, str, object]], most: int | None
) -> int:
    conditions = (*_base(listing), *where)
    equal = {name for name, operator, _ in conditions if operator == "="}
    order = tuple(name for name in _BY[listing.order] if name.lstrip("-") not in equal)
    return reads.count(reads.Query("Comment", where=conditions, order=order, limit=most))


def check_limit(limit: int) -> None:
    """Check that a limit is within 1 to `MAX_LIMIT`; raise BadInput otherwise."""
    if not 1 <= limit <= MAX_LIMIT:
        raise errors.BadInput("limit", "out-of-range", minimum=1, maximum=MAX_LIMIT)


def _page_of(
    listing: _Listing, rows: list[records.Comment], limit: int, secret: str, *, before: int | None
) -> UncountedPage:
    """Keep the first `limit` rows, and add a cursor if more rows follow."""
    shown, beyond = rows[:limit], rows[limit:]
    return UncountedPage(
        listing, shown, beyond, _seal(shown[-1], listing, secret) if beyond else None, before
    )


def _rows(
    listing: _Listing, limit: int | None, *, after: tuple[object, ...] | None = None
) -> list[records.Comment]:
    """Read the rows of a listing strictly after a position.

    The flat orders require two ranges, because Datastore cannot compare pairs: first the remaining
    rows of the same moment, then all later rows.
    """
    if listing.order is QueryOrder.THREAD:
        low = listing.low if after is None else str(after[0])
        start = (("sort_hash", ">=" if after is None else ">", low),)
        rows = _fetch(listing, (*start, ("sort_hash", "<", listing.high)), limit)
        return list(records.visible(rows))
    beyond = ">" if listing.order is QueryOrder.OLDEST else "<"
    if after is None:
        return list(records.visible(_fetch(listing, (), limit)))
    moment, sort_hash = after

    def read() -> list[records.Comment]:
        same = (("created", "=", moment), ("sort_hash", beyond, sort_hash))
        rows = list(records.visible(_fetch(listing, same, limit)))
        left = None if limit is None else limit - len(rows)
        if left != 0:
            rows += records.visible(_fetch(listing, (("created", beyond, moment),), left))
        return rows

    return transactions.at_one_moment(read)


def _fetch(
    listing: _Listing, where: tuple[tuple[str, str, object], ...], limit: int | None
) -> list[records.Comment]:
    equal = {name for name, operator, _ in where if operator == "="}
    order = tuple(name for name in _BY[listing.order] if name.lstrip("-") not in equal)
    query = reads.Query("Comment", where=(*_base(listing), *where), order=order, limit=limit)
    return [conversion.comment_from_message(entity) for entity in reads.fetch(query)]


def _base(listing: _Listing) -> tuple[tuple[str, str, object], ...]:
    base: tuple[tuple[str, str, object], ...] = (
        ("thread", "=", comment_rows.thread_key_name(listing.name)),
        ("listed", "=", True),
    )
    return base if listing.level is None else (*base, ("level", "=", listing.level))


def _count(listing: _Listing) -> int:
    where = (
        *_base(listing),
        ("sort_hash", ">=", listing.low),
        ("sort_hash", "<", listing.high),
    )
    return reads.count(reads.Query("Comment", where=where, order=("sort_hash",)))


def _replies(
    listing: _Listing, shown: list[records.Comment], beyond: list[records.Comment]
) -> tuple[int, ...]:
    """Count the listed comments below each comment on the page.

    A page in reading order contains whole subtrees, except those of the last comment and its
    ancestors, which the end of the page may cut. Only cut subtrees are counted in the store.
    """
    if listing.order is QueryOrder.THREAD and listing.level is None:
        cut = beyond[0].sort_hash if beyond else ""
        within = _subtree_sizes(shown)
        return tuple(
            _below(listing.name, row) if cut.startswith(row.sort_hash) else within[row.id]
            for row in shown
        )
    return tuple(_below(listing.name, row) if row.child_count else 0 for row in shown)


def _subtree_sizes(rows: list[records.Comment]) -> dict[str, int]:
    """Compute the subtree sizes of rows in reading order, in one pass with a stack of subtrees."""
    sizes: dict[str, int] = {}
    open_: list[records.Comment] = []
    for row in rows:
        while open_ and not row.sort_hash.startswith(open_[-1].sort_hash):
            open_.pop()
        for above in open_:
            sizes[above.id] += 1
        sizes[row.id] = 0
        open_.append(row)
    return sizes


def _below(name: records.ThreadName, row: records.Comment) -> int:
    low, high = sorthash.subtree_range(row.sort_hash)
    # The range starts with the row itself, which must not be counted.
    return _count(_Listing(name, low=low, high=high)) - 1


def scheme_of(name: records.ThreadName) -> sorthash.Scheme:
    """Read the scheme of a thread's sort hashes.

    Raises:
        errors.NotFound: the site does not exist.
    """
    thread, site = reads.get_multi(
        [comment_rows.thread_key(name), comment_rows.site_key(name.site)]
    )
    if site is None:
        raise errors.NotFound("site", name.site)
    return conversion.scheme_of(thread, conversion.site_record(site).scheme)


def _seal(row: records.Comment, listing: _Listing, secret: str) -> str:
    position = [row.sort_hash]
    if listing.order is not QueryOrder.THREAD:
        position = [row.created.isoformat(), row.sort_hash]
    return cursors.seal(position, listing.label, secret, shape=row.shape)


def _unseal(cursor: str, listing: _Listing, secret: str) -> tuple[tuple[Any, ...], int]:
    """Return the position of a cursor and the shape of its tree."""
    position, shape = cursors.unseal_with_shape(cursor, listing.label, secret)
    if listing.order is QueryOrder.THREAD:
        return (position[0],), shape
    return (datetime.fromisoformat(position[0]).astimezone(UTC), position[1]), shape


def _shape_of(name: records.ThreadName) -> int:
    return conversion.shape_of(reads.get(comment_rows.thread_key(name)))
