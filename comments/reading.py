"""What readers ask for: pages of a thread, of its replies, around one comment.

Owns the orders and what a page of each is. Threaded pages are cut from the materialised thread
(`materialized`): a page costs its directory, the buckets it shows and one probe, at any size.
Where too much is not folded yet, and for the orders flat by time and one level at a time, the rows
come from the `floor`, the ordered query that every answer here equals. Nothing is written.

    thread   discussions, oldest first
    recent   discussions, newest first
    oldest, newest   flat by time

Replies below a comment are oldest first in every order but the flat ones. Cursors are positions:
a page continues strictly after the last comment of the page before, so comments that come, go or
change meanwhile are neither skipped nor repeated.
"""

import dataclasses
import enum
import itertools
from collections.abc import Iterator, Sequence

from comments import (
    buckets,
    cursors,
    errors,
    floor,
    materialized,
    models,
    public,
    records,
    sorthash,
    views,
)


class Order(enum.StrEnum):
    """How a listing runs."""

    THREAD = "thread"
    RECENT = "recent"
    OLDEST = "oldest"
    NEWEST = "newest"


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """How much is wanted and from where; `secret` signs cursors.

    Raises:
        errors.BadInput: the limit is outside 1 .. `floor.MAX_LIMIT`.
    """

    limit: int
    cursor: str | None
    secret: str

    def __post_init__(self) -> None:
        """Check the limit."""
        floor.check_limit(self.limit)


def page(
    scheme: sorthash.Scheme,
    name: records.ThreadName,
    asked: Asked,
    *,
    order: Order = Order.THREAD,
    parent: str | None = None,
) -> public.Page:
    """A page of a thread. `parent` narrows it to the roots (`floor.ROOTS`) or to one's children.

    Raises:
        errors.BadInput: a parent with another order.
        errors.BadCursor: a cursor of another listing, or none of ours.
        errors.NotFound: the parent is not a listed comment of this thread.
    """
    if parent is not None and order is not Order.THREAD:
        raise errors.BadInput("parent", "goes with order=thread only")
    if order is Order.RECENT:
        return _recent(scheme, name, asked)
    if order is Order.THREAD and parent is None:
        return _whole(name, asked)
    found = floor.page(
        name,
        order=floor.Order(order),
        parent=parent,
        limit=asked.limit,
        cursor=asked.cursor,
        secret=asked.secret,
    )
    return public.page(found)


def replies(comment_id: str, asked: Asked) -> public.Page:
    """A page of everything below one comment, in reading order.

    Raises:
        errors.NotFound: there is no such listed comment.
        errors.BadCursor: see `page`.
    """
    row = floor.listed(comment_id)
    name = records.ThreadName(row.site, row.thread)
    run = _Run(name, asked, parent=f"below {comment_id}", above=row.sort_hash)
    try:
        return materialized.using(name, run.page)
    except materialized.NotMaterialized:
        return public.page(
            floor.replies(comment_id, limit=asked.limit, cursor=asked.cursor, secret=asked.secret)
        )


def around(
    scheme: sorthash.Scheme, name: records.ThreadName, comment_id: str, asked: Asked
) -> public.Page:
    """The page of the thread that starts with the root a comment stands under.

    If the comment is further down than the limit, the page starts with the comment itself.

    Raises:
        errors.NotFound: the comment is not a listed one of this thread.
    """
    row = floor.listed_in(name, comment_id)
    root = buckets.root_of(scheme, row.sort_hash)

    def answer(view: views.View) -> public.Page:
        is_near = view.position(row.sort_hash) - view.position(root) < asked.limit
        return _Run(name, asked, start=root if is_near else row.sort_hash).page(view)

    try:
        return materialized.using(name, answer)
    except materialized.NotMaterialized:
        return public.page(floor.around(name, comment_id, limit=asked.limit, secret=asked.secret))


def _whole(name: records.ThreadName, asked: Asked) -> public.Page:
    try:
        return materialized.using(name, _Run(name, asked).page)
    except materialized.NotMaterialized:
        found = floor.page(
            name,
            order=floor.Order.THREAD,
            parent=None,
            limit=asked.limit,
            cursor=asked.cursor,
            secret=asked.secret,
        )
        return public.page(found)


@dataclasses.dataclass(frozen=True, slots=True)
class _Run:
    """A page in reading order: from `start` on, or below the comment at hash `above`."""

    name: records.ThreadName
    asked: Asked
    parent: str = ""
    above: str = ""
    start: str = ""

    def page(self, view: views.View) -> public.Page:
        """Cut the page from a view."""
        low, high = self.start, sorthash.ABOVE
        if self.above:
            low, high = _past(self.above), sorthash.subtree_range(self.above)[1]
        label = cursors.label(models.thread_key_name(self.name), Order.THREAD, self.parent)
        asked = self.asked
        if asked.cursor is not None:
            low = max(low, _past(cursors.unseal(asked.cursor, label, asked.secret)[0]))
        rows = list(itertools.islice(view.rows(low, high, limit=asked.limit + 1), asked.limit + 1))
        return _cut(view, rows, asked, label)


def _recent(scheme: sorthash.Scheme, name: records.ThreadName, asked: Asked) -> public.Page:
    """A page of discussions, newest first."""
    label = cursors.label(models.thread_key_name(name), Order.RECENT, "")
    after = "" if asked.cursor is None else cursors.unseal(asked.cursor, label, asked.secret)[0]

    def answer(view: views.View) -> public.Page:
        found = _newest_first(scheme, view, after, asked.limit + 1)
        return _cut(view, list(itertools.islice(found, asked.limit + 1)), asked, label)

    try:
        return materialized.using(name, answer)
    except materialized.NotMaterialized:
        return answer(materialized.from_rows(floor.thread(name)))


def _newest_first(
    scheme: sorthash.Scheme, view: views.View, after: str, limit: int
) -> Iterator[buckets.Entry]:
    """Yield the rows behind a hash: the rest of its discussion, then the older ones."""
    open_root = buckets.root_of(scheme, after)
    if after:
        yield from view.rows(_past(after), sorthash.subtree_range(open_root)[1], limit=limit)
    for root in reversed(view.roots(scheme)):
        if not after or root < open_root:
            yield from view.rows(*sorthash.subtree_range(root), limit=limit)


def _cut(view: views.View, rows: Sequence[buckets.Entry], asked: Asked, label: str) -> public.Page:
    """A page of the first rows, with a cursor if there are more."""
    shown = rows[: asked.limit]
    has_more = len(rows) > asked.limit
    return public.Page(
        comments=tuple(row.json for row in shown),
        replies=tuple(view.below(row.sort_hash) for row in shown),
        cursor=cursors.seal([shown[-1].sort_hash], label, asked.secret) if has_more else None,
        total=view.total,
    )


def _past(sort_hash: str) -> str:
    """The first string behind a hash."""
    return sort_hash + "\0"
