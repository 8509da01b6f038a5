"""List a site's threads, and one thread with comments of every status.

A site's threads, or those of a category, are listed by activity, also with words, by creation, or
by their numbers of comments. Readers may see the list of a category by creation: a category comes
from an approved comment or from a moderator (`naming`). The cursors of a page are
those of `review_queue`. A thread with a new comment moves to the front of the list by activity, so
later pages do not list it. The list by activity contains a thread of an older release only after an
upgrade has stored the thread's activity.
"""

import dataclasses
from collections.abc import Iterator, Sequence

from comments import errors
from comments.domain import records
from comments.domain.crypto import cursors
from comments.moderation import review_queue
from comments.store import reads
from comments.store.models import comment_rows, conversion
from comments.tree.counters import periods

LOOKED_THROUGH = 300  # Maximum number of threads that a page of a search examines.
MOST_RANKED = 100
MOST_FILED = 20_000  # Threads of a category that are ranked; a second of processor time.
_Where = tuple[tuple[str, str, object], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class ThreadFilter:
    """A query for a site's threads, optionally with words that their title or address contains.

    `category` is a canonical category term (`categories`).
    """

    site: str
    text: str = ""
    category: str = ""

    def __post_init__(self) -> None:
        """Check the length of the search text.

        Raises:
            errors.BadInput: the text is longer than `review_queue.LONGEST_TEXT`.
        """
        review_queue.check_text(self.text)

    @property
    def label(self) -> str:
        """Return the label that binds a cursor to this listing."""
        return cursors.label("docket-active", self.site, self.text, self.category)

    @property
    def where(self) -> _Where:
        """Return the conditions that an index answers."""
        below = (("category_terms", "=", self.category),) if self.category else ()
        return (("site", "=", self.site), *below)

    def matches(self, thread: records.Thread) -> bool:
        """Return whether a thread matches. Ignore schemes, which thread ids do not contain."""
        wanted = self.text.casefold()
        address = wanted.partition("://")[2] or wanted
        return wanted in thread.title.casefold() or any(
            address in text.casefold() for text in (thread.name.id, thread.alias, thread.url)
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Threads:
    """A page of threads, with the cursor that continues the list."""

    threads: tuple[records.Thread, ...]
    cursor: str | None


@dataclasses.dataclass(frozen=True, slots=True)
class ThreadExcerpt:
    """A part of a thread in reading order, including unlisted comments, with the next cursor."""

    cases: tuple[records.Case, ...]
    cursor: str | None


def active_threads(
    wanted: ThreadFilter, *, limit: int = review_queue.PAGE, cursor: str | None = None, secret: str
) -> Threads:
    """Return a page of a site's threads, beginning with the newest comments.

    Raises:
        errors.BadInput: the limit is not between 1 and `review_queue.MOST`.
        errors.BadCursor: the cursor is invalid or belongs to a different listing.
    """
    review_queue.check_limit(limit)
    after = None if cursor is None else review_queue.unseal(cursor, wanted.label, secret)
    most = LOOKED_THROUGH if wanted.text else limit
    places = _active(wanted.where, after, most + 1)
    matching, looked = review_queue.matching_rows(
        places[:most],
        limit,
        lambda places: _read_threads([name for _, _, name in places]),
        wanted.matches,
    )
    more = 0 < looked < len(places)
    return Threads(
        tuple(matching),
        review_queue.seal(places[looked - 1], wanted.label, secret) if more else None,
    )


def busiest_threads(site: str, category: str = "") -> Threads:
    """Return the threads with the most approved comments, up to `MOST_RANKED`, in order.

    Count with one read for each of the at most 64 rows of each month that has comments. A category
    costs one more read for each 300 of its threads. Rank only its `MOST_FILED` most recently active
    threads.
    """
    where = ThreadFilter(site, "", category).where
    among = set(_query_thread_ids(where, ("-active",), MOST_FILED)) if category else None
    rows = _read_threads(periods.top_pages(site, among, limit=MOST_RANKED))
    return Threads(tuple(thread for thread in rows if thread is not None), None)


def threads(
    site: str,
    category: str = "",
    *,
    limit: int = review_queue.PAGE,
    cursor: str | None = None,
    secret: str,
) -> Threads:
    """Return a page of a site's threads, or of those of a category, newest threads first.

    Raises:
        errors.BadInput: the limit is not between 1 and `review_queue.MOST`.
        errors.BadCursor: the cursor is invalid or belongs to a different listing.
    """
    review_queue.check_limit(limit)
    label = cursors.label("docket-threads", site, category)
    where = ThreadFilter(site, "", category).where
    if cursor is None:
        keys = _query_thread_ids(where, ("-created",), limit + 1)
    else:
        at, _, name = review_queue.unseal(cursor, label, secret)
        tie = (("created", "=", at), ("__key__", ">", name))
        keys = _query_thread_ids((*where, *tie), ("__key__",), limit + 1)
        left = limit + 1 - len(keys)
        keys += (
            _query_thread_ids((*where, ("created", "<", at)), ("-created",), left) if left else []
        )
    rows = reads.get_multi([comment_rows.thread_key_of(key) for key in keys[:limit]])
    there = [conversion.thread_record(row) for row in rows if row is not None]
    begun = [row.created for row in rows if row is not None]
    if len(keys) <= limit or not begun:
        return Threads(tuple(there), None)
    return Threads(tuple(there), review_queue.seal((begun[-1], 0, keys[limit - 1]), label, secret))


def thread(
    name: records.ThreadName,
    *,
    limit: int = review_queue.PAGE,
    cursor: str | None = None,
    secret: str,
) -> ThreadExcerpt:
    """Return a part of a thread in reading order, with comments of every status.

    Raises:
        errors.BadInput: the limit is not between 1 and `review_queue.MOST`.
        errors.BadCursor: the cursor is invalid or belongs to a different thread.
        errors.CursorExpired: the thread has moved to another scheme since the cursor was made.
    """
    review_queue.check_limit(limit)
    label = cursors.label("docket-thread", comment_rows.thread_key_name(name))
    after, shape = "", None
    if cursor is not None:
        (after,), shape = cursors.unseal_with_shape(cursor, label, secret)
    query = reads.Query(
        "Comment",
        where=(("thread", "=", comment_rows.thread_key_name(name)), ("sort_hash", ">", after)),
        order=("sort_hash",),
        limit=limit + 1,
    )
    cases = [conversion.case_from_message(message) for message in reads.fetch(query)]
    if shape is not None and any(entry.comment.shape != shape for entry in cases):
        raise errors.CursorExpired
    if len(cases) <= limit:
        return ThreadExcerpt(tuple(cases), None)
    last = cases[limit - 1].comment
    more = cursors.seal([last.sort_hash], label, secret, shape=last.shape)
    return ThreadExcerpt(tuple(cases[:limit]), more)


def read_thread(name: records.ThreadName) -> records.Thread | None:
    """Read a thread; return None if the thread has no comments yet."""
    row = reads.get(comment_rows.thread_key(name))
    return None if row is None else conversion.thread_record(row)


def _active(
    where: _Where, after: review_queue.Position | None, limit: int
) -> list[review_queue.Position]:
    """Return the positions of the threads after a position, by activity and then by key."""
    if after is None:
        return _query_threads(where, limit)
    moment, _, name = after
    tie = (("active", "=", moment), ("__key__", ">", name))
    positions = [(moment, 0, key) for key in _query_thread_ids((*where, *tie), ("__key__",), limit)]
    left = limit - len(positions)
    return positions + (_query_threads((*where, ("active", "<", moment)), left) if left else [])


def _query_threads(where: _Where, limit: int) -> list[review_queue.Position]:
    query = reads.Query(
        "Thread", where=where, order=("-active",), projection=("active",), limit=limit
    )
    return [
        (moment, 0, review_queue.name_of(message))
        for message in reads.fetch(query)
        if (moment := conversion.projected_time(message.properties["active"])) is not None
    ]


def _query_thread_ids(where: _Where, order: tuple[str, ...], limit: int) -> list[str]:
    query = reads.Query("Thread", where=where, order=order, limit=limit, keys_only=True)
    return [review_queue.name_of(message) for message in reads.fetch(query)]


def _read_threads(names: Sequence[str]) -> Iterator[records.Thread | None]:
    for row in reads.get_multi([comment_rows.thread_key_of(name) for name in names]):
        yield None if row is None else conversion.thread_record(row)
