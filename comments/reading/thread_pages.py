"""What readers ask for: pages of a thread, of its replies, around one comment.

Owns the orders and what a page of each is. Threaded pages are cut from the materialised thread
(`thread_view`): a page costs its directory, the buckets it shows and one probe, at any size.
Where too much is not folded yet, and for the orders flat by time and one level at a time, the rows
come from the `ordered_query`, the ordered query that every answer here equals. Nothing is written.

    thread   discussions, oldest first
    recent   discussions, newest first
    best     discussions, those with the best votes first (`ranking`), the rest oldest first
    oldest, newest   flat by time

Replies below a comment are oldest first in every order but the flat ones. Cursors are positions:
a page continues strictly after the last comment of the page before, so comments that come, go or
change meanwhile are neither skipped nor repeated. One of `best` names its ranking too, and expires
with it. Where nothing is folded there is no ranking: `best` is then as `thread`.
"""

import contextlib
import dataclasses
import enum
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TypedDict

import msgspec

from comments import errors
from comments.domain import presentation, records, sorthash
from comments.domain.crypto import cursors
from comments.reading import page_source
from comments.reading.materialized import (
    buckets,
    directories,
    first_page,
    merged_view,
    ranking,
    thread_view,
)
from comments.store import transactions
from comments.store.models import comment_rows
from comments.tree import ordered_query

Listing = page_source.Listing[presentation.ThreadPage]
Offer = page_source.Offer[presentation.ThreadPage]

_TRIES = 3


class Order(enum.StrEnum):
    """How a listing runs."""

    THREAD = "thread"
    RECENT = "recent"
    BEST = "best"
    OLDEST = "oldest"
    NEWEST = "newest"


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """How much is wanted and from where; `secret` signs cursors.

    Raises:
        errors.BadInput: the limit is outside 1 .. `ordered_query.MAX_LIMIT`.
    """

    limit: int
    cursor: str | None
    secret: str

    def __post_init__(self) -> None:
        """Check the limit."""
        ordered_query.check_limit(self.limit)


def page(
    scheme: sorthash.Scheme,
    name: records.ThreadName,
    asked: Asked,
    *,
    order: Order = Order.THREAD,
    parent: str | None = None,
) -> presentation.ThreadPage:
    """A page of a thread, see `listing`."""
    return listing(scheme, name, asked, order=order, parent=parent).page()


def replies(comment_id: str, asked: Asked) -> presentation.ThreadPage:
    """A page of everything below one comment, see `listing_below`."""
    return listing_below(comment_id, asked).page()


def around(
    scheme: sorthash.Scheme, name: records.ThreadName, comment_id: str, asked: Asked
) -> presentation.ThreadPage:
    """The page that a comment stands on, see `listing_around`."""
    return listing_around(scheme, name, comment_id, asked).page()


def listing(
    scheme: sorthash.Scheme,
    name: records.ThreadName,
    asked: Asked,
    *,
    order: Order = Order.THREAD,
    parent: str | None = None,
) -> Listing:
    """A page of a thread.

    `parent` narrows it to the roots (`ordered_query.ROOTS`) or to the children of one comment.

    Raises, now or when the page is made:
        errors.BadInput: a parent with another order, or of another thread.
        errors.BadCursor: a cursor of another listing, or none of ours.
        errors.CursorExpired: a cursor of a ranking that is gone.
        errors.NotFound: the parent is not a listed comment.
    """
    if parent is not None and order is not Order.THREAD:
        raise errors.BadInput("parent", "goes with order=thread only")
    label = cursors.label(comment_rows.thread_key_name(name), order, parent or "")
    if order is Order.RECENT:
        return _recent(scheme, name, asked, label)
    if order is Order.BEST:
        return _best(scheme, name, asked, label)

    rows = functools.partial(
        ordered_query.run,
        name,
        order=ordered_query.Order(order),
        parent=parent,
        limit=asked.limit,
        cursor=asked.cursor,
        secret=asked.secret,
    )

    def otherwise() -> presentation.ThreadPage:
        return _of_floor(rows) if is_whole else _flat(name, rows)

    is_whole = order is Order.THREAD and parent is None

    def top(head: first_page.Head) -> presentation.ThreadPage:
        return head.page(asked.limit, label=label, secret=asked.secret)

    key = _key(asked, label)
    if not is_whole:
        return page_source.Listing(name, key, asked.secret, otherwise)
    cut = _Run(asked, label, _start(asked, label)).page
    first = None if asked.cursor else top
    return page_source.Listing(
        name, key, asked.secret, otherwise, cut, first=asked.limit, top=first
    )


def listing_below(comment_id: str, asked: Asked) -> Listing:
    """A page of everything below one comment, in reading order.

    Raises:
        errors.NotFound: there is no such listed comment.
        errors.BadCursor: see `listing`.
    """
    return listing_under(ordered_query.listed(comment_id), asked)


def listing_under(row: records.Comment, asked: Asked) -> Listing:
    """A page of everything below a comment that was read, see `listing_below`."""
    comment_id, name = row.id, records.ThreadName(row.site, row.thread)
    label = cursors.label(comment_rows.thread_key_name(name), Order.THREAD, f"below {comment_id}")
    low = max(_past(row.sort_hash), _start(asked, label))
    run = _Run(asked, label, low, sorthash.subtree_range(row.sort_hash)[1])

    def otherwise() -> presentation.ThreadPage:
        return presentation.page(
            ordered_query.replies(
                comment_id, limit=asked.limit, cursor=asked.cursor, secret=asked.secret
            )
        )

    return page_source.Listing(name, _key(asked, label), asked.secret, otherwise, run.page)


def listing_around(
    scheme: sorthash.Scheme, name: records.ThreadName, comment_id: str, asked: Asked
) -> Listing:
    """A page of the thread that holds a comment, from the root it stands under if that is near.

    It reads one bucket: a page that would need another starts later or ends sooner, and may hold
    fewer comments than the limit though its cursor continues.

    Raises:
        errors.NotFound: there is no such listed comment.
        errors.BadInput: it is one of another thread.
    """
    row = ordered_query.listed_in(name, comment_id, field="around")
    root = buckets.root_of(scheme, row.sort_hash)
    label = cursors.label(comment_rows.thread_key_name(name), Order.THREAD, "")

    def cut(view: merged_view.View) -> presentation.ThreadPage:
        return _near(view, row, root, asked, label=label)

    def otherwise() -> presentation.ThreadPage:
        return presentation.page(
            ordered_query.around(name, comment_id, limit=asked.limit, secret=asked.secret)
        )

    key = cursors.label(_key(asked, label), f"around {comment_id}")
    return page_source.Listing(name, key, asked.secret, otherwise, cut, exact=True)


def _near(
    view: merged_view.View, row: records.Comment, root: str, asked: Asked, *, label: str
) -> presentation.ThreadPage:
    """A page that holds a comment, of the rows that stand in one bucket with it."""
    low, high, following = view.stretch(row.sort_hash)
    rows = list(view.rows(max(low, root), high))
    place = next((place for place, each in enumerate(rows) if each.id == row.id), None)
    if place is None:
        raise errors.NotFound("comment", row.id)  # it was retracted just now
    start = 0 if place < asked.limit else min(place, len(rows) - asked.limit)
    page = _cut(view, rows[start : start + asked.limit + 1], asked, label)
    if page.cursor is None and following:
        more = cursors.seal([rows[-1].sort_hash], label, asked.secret)
        return msgspec.structs.replace(page, cursor=more)
    return page


def _recent(scheme: sorthash.Scheme, name: records.ThreadName, asked: Asked, label: str) -> Listing:
    """A page of discussions, newest first."""
    after = _position(asked, label)

    def cut(view: merged_view.View) -> presentation.ThreadPage:
        found = _newest_first(scheme, view, after, asked.limit + 1)
        return _cut(view, list(itertools.islice(found, asked.limit + 1)), asked, label)

    def otherwise() -> presentation.ThreadPage:
        return cut(_from_floor(name))

    return page_source.Listing(name, _key(asked, label), asked.secret, otherwise, cut)


def _best(scheme: sorthash.Scheme, name: records.ThreadName, asked: Asked, label: str) -> Listing:
    """A page of discussions, the best first."""
    most, named, after = asked.limit + 1, "", ""
    if asked.cursor is not None:
        named, after = cursors.unseal(asked.cursor, label, asked.secret)

    def ranked(view: merged_view.View) -> tuple[str, ranking.Ranking]:
        best = view.directory.content.best
        newest = "" if best is None else best.ranking
        key = newest if asked.cursor is None else named
        found = thread_view.load_ranking(name, key, is_newest=key == newest)
        if found is None:
            raise errors.CursorExpired if asked.cursor else directories.Gone
        return key, found

    def cut(view: merged_view.View) -> presentation.ThreadPage:
        key, found = ranked(view)
        best = view.directory.content.best
        if best is not None and asked.cursor is None:
            top = thread_view.load_top(name, best.top)
            rows = ranking.top_rows(view, scheme, found, top, limit=most)
        else:
            rows = ranking.rows(view, scheme, found, after=after, limit=most)
        return _ranked_page(view, list(itertools.islice(rows, most)), asked, label, key=key)

    def otherwise() -> presentation.ThreadPage:
        return cut(_from_floor(name))

    check = ranked if asked.cursor else None
    return page_source.Listing(name, _key(asked, label), asked.secret, otherwise, cut, check=check)


def _from_floor(name: records.ThreadName) -> merged_view.View:
    def read() -> merged_view.View:
        return thread_view.from_rows(
            ordered_query.thread(name), changed=ordered_query.changed(name)
        )

    return transactions.at_one_moment(read)


def _flat(
    name: records.ThreadName, rows: Callable[[], ordered_query.Run]
) -> presentation.ThreadPage:
    """A page of the floor's rows with a view's numbers, where there is one: no query per row.

    The rows are read between two probes. If both find the same, nothing changed in between, so
    rows and numbers are of one moment.
    """
    with contextlib.suppress(thread_view.NotMaterialized):
        for _ in range(_TRIES):
            tag, page = thread_view.using(name, lambda view: (view.tag, _counted(view, rows())))
            if thread_view.tag(name) == tag:
                return page
    return _of_floor(rows)


def _of_floor(rows: Callable[[], ordered_query.Run]) -> presentation.ThreadPage:
    """A page of the floor, its rows and numbers of one moment."""
    return presentation.page(transactions.at_one_moment(lambda: rows().counted()))


def _ranked_page(
    view: merged_view.View,
    rows: Sequence[tuple[buckets.Entry, int]],
    asked: Asked,
    label: str,
    *,
    key: str,
) -> presentation.ThreadPage:
    shown = rows[: asked.limit]
    cursor = None
    if len(rows) > asked.limit:
        cursor = cursors.seal([key, shown[-1][0].sort_hash], label, asked.secret)
    return presentation.ThreadPage(
        rows=presentation.Rows(
            tuple(entry.json for entry, _ in shown), tuple(below for _, below in shown)
        ),
        cursor=cursor,
        total=view.total,
        changed=view.changed,
        **_about(view),
    )


class _Run(msgspec.Struct, frozen=True):
    """A page in reading order, of the rows with low <= hash < high."""

    asked: Asked
    label: str
    low: str
    high: str = sorthash.ABOVE

    def page(self, view: merged_view.View) -> presentation.ThreadPage:
        """Cut the page from a view."""
        most = self.asked.limit + 1
        rows = list(itertools.islice(view.rows(self.low, self.high, limit=most), most))
        return _cut(view, rows, self.asked, self.label)


def _newest_first(
    scheme: sorthash.Scheme, view: merged_view.View, after: str, limit: int
) -> Iterator[buckets.Entry]:
    """Yield the rows behind a hash: the rest of its discussion, then the older ones."""
    open_root = buckets.root_of(scheme, after)
    if after:
        yield from view.rows(_past(after), sorthash.subtree_range(open_root)[1], limit=limit)
    for root in reversed(view.roots(scheme)):
        if not after or root < open_root:
            yield from view.rows(*sorthash.subtree_range(root), limit=limit)


def _cut(
    view: merged_view.View, rows: Sequence[buckets.Entry], asked: Asked, label: str
) -> presentation.ThreadPage:
    """A page of the first rows, with a cursor if there are more."""
    shown = rows[: asked.limit]
    has_more = len(rows) > asked.limit
    return presentation.ThreadPage(
        rows=presentation.Rows(
            tuple(row.json for row in shown), tuple(view.below(row.sort_hash) for row in shown)
        ),
        cursor=cursors.seal([shown[-1].sort_hash], label, asked.secret) if has_more else None,
        total=view.total,
        changed=view.changed,
        **_about(view),
    )


class _About(TypedDict):
    about: records.ThreadHeading | None
    is_renamed: bool


def _about(view: merged_view.View) -> _About:
    found = first_page.about(view)
    return {"about": found, "is_renamed": found is None}


def _counted(view: merged_view.View, run: ordered_query.Run) -> presentation.ThreadPage:
    """A page of the floor with the view's numbers: no query per row."""
    view.read(row.sort_hash for row in run.rows if row.child_count and row.level)
    return presentation.ThreadPage(
        rows=presentation.Rows(
            tuple(map(presentation.fragment, run.rows)),
            tuple(_below(view, row) for row in run.rows),
        ),
        cursor=run.cursor,
        total=view.total,
        changed=view.changed,
        **_about(view),
    )


def _below(view: merged_view.View, row: records.Comment) -> int:
    if not row.child_count:
        return 0
    if row.level:
        return view.below(row.sort_hash)
    # The directory knows discussions without their buckets. One that went meanwhile has no rows.
    return max(0, view.size_of_root(row.sort_hash) - 1)


def _key(asked: Asked, label: str) -> str:
    """Which page is asked for."""
    return cursors.label(label, str(asked.limit), asked.cursor or "")


def _position(asked: Asked, label: str) -> str:
    """The hash of the last comment before the page; "" for none."""
    return "" if asked.cursor is None else cursors.unseal(asked.cursor, label, asked.secret)[0]


def _start(asked: Asked, label: str) -> str:
    """The first string that may begin the page."""
    after = _position(asked, label)
    return _past(after) if after else ""


def _past(sort_hash: str) -> str:
    """The first string behind a hash."""
    return sort_hash + "\0"
