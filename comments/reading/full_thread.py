"""Whole threads and whole subtrees in one answer, in reading order.

Owns how much one answer may hold. A whole thread is its directory, all its buckets and one probe;
it is listed in pieces (`pieces`), so that what did not change is not put together again. Nothing
is written.
"""

import dataclasses

import msgspec

from comments import errors
from comments.domain import records, sorthash
from comments.domain.crypto import cursors
from comments.reading import page_source
from comments.reading.materialized import chunks, merged_view, thread_view
from comments.store import transactions
from comments.store.models import comment_rows
from comments.tree import ordered_query

MOST = 20_000  # comments of one answer, about 10 MB; App Engine sends no more than 32 MB


def listing(name: records.ThreadName, secret: str) -> page_source.Listing[chunks.Whole]:
    """All comments of a thread.

    Raises, when it is made:
        errors.BadInput: they are more than `MOST`.
    """
    return _listing(name, secret, parent="", low="", high=sorthash.ABOVE)


def listing_below(comment_id: str, secret: str) -> page_source.Listing[chunks.Whole]:
    """Everything below one comment.

    Raises, now or when it is made:
        errors.NotFound: there is no such listed comment.
        errors.BadInput: it is more than `MOST`.
    """
    row = ordered_query.listed(comment_id)
    name = records.ThreadName(row.site, row.thread)
    low, high = sorthash.subtree_range(row.sort_hash)
    return _listing(name, secret, parent=f"below {comment_id}", low=low + "\0", high=high)


def _listing(
    name: records.ThreadName, secret: str, *, parent: str, low: str, high: str
) -> page_source.Listing[chunks.Whole]:
    def cut(view: merged_view.View) -> chunks.Whole:
        if (view.count(low, high) if parent else view.total) > MOST:
            raise _too_many()
        return chunks.cut(view, low, high)

    def otherwise() -> chunks.Whole:
        return transactions.at_one_moment(of_floor)

    def of_floor() -> chunks.Whole:
        rows = ordered_query.stretch(name, low, high, limit=MOST + 1)
        if len(rows) > MOST:
            raise _too_many()
        view = thread_view.from_rows(rows, changed=ordered_query.changed(name))
        found = chunks.cut(view, low, high)
        return of_thread(found) if parent else found

    def of_thread(found: chunks.Whole) -> chunks.Whole:
        """What is below a comment, with the number of the thread's comments."""
        (total,) = ordered_query.totals(name.site, [name.id])
        about = msgspec.structs.replace(found.about, total=total)
        return dataclasses.replace(found, about=about)

    key = cursors.label(comment_rows.thread_key_name(name), parent, "all")
    return page_source.Listing(name, key, secret, otherwise, cut)


def _too_many() -> errors.BadInput:
    return errors.BadInput("limit", f"is all for up to {MOST} comments; there are more")
