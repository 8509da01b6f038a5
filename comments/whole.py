"""Whole threads and whole subtrees in one answer, in reading order.

Owns how much one answer may hold. A whole thread is its directory, all its buckets and one probe;
it is listed in pieces (`pieces`), so that what did not change is not put together again. Nothing
is written.
"""

import dataclasses

import msgspec

from comments import (
    cursors,
    datastore,
    errors,
    floor,
    listings,
    materialized,
    models,
    pieces,
    records,
    sorthash,
    views,
)

MOST = 20_000  # comments of one answer, about 10 MB; App Engine sends no more than 32 MB


def listing(name: records.ThreadName, secret: str) -> listings.Listing[pieces.Whole]:
    """All comments of a thread.

    Raises, when it is made:
        errors.BadInput: they are more than `MOST`.
    """
    return _listing(name, secret, parent="", low="", high=sorthash.ABOVE)


def listing_below(comment_id: str, secret: str) -> listings.Listing[pieces.Whole]:
    """Everything below one comment.

    Raises, now or when it is made:
        errors.NotFound: there is no such listed comment.
        errors.BadInput: it is more than `MOST`.
    """
    row = floor.listed(comment_id)
    name = records.ThreadName(row.site, row.thread)
    low, high = sorthash.subtree_range(row.sort_hash)
    return _listing(name, secret, parent=f"below {comment_id}", low=low + "\0", high=high)


def _listing(
    name: records.ThreadName, secret: str, *, parent: str, low: str, high: str
) -> listings.Listing[pieces.Whole]:
    def cut(view: views.View) -> pieces.Whole:
        if (view.count(low, high) if parent else view.total) > MOST:
            raise _too_many()
        return pieces.cut(view, low, high)

    def otherwise() -> pieces.Whole:
        return datastore.at_one_moment(of_floor)

    def of_floor() -> pieces.Whole:
        rows = floor.stretch(name, low, high, limit=MOST + 1)
        if len(rows) > MOST:
            raise _too_many()
        view = materialized.from_rows(rows, changed=floor.changed(name))
        found = pieces.cut(view, low, high)
        return of_thread(found) if parent else found

    def of_thread(found: pieces.Whole) -> pieces.Whole:
        """What is below a comment, with the number of the thread's comments."""
        (total,) = floor.totals(name.site, [name.id])
        about = msgspec.structs.replace(found.about, total=total)
        return dataclasses.replace(found, about=about)

    key = cursors.label(models.thread_key_name(name), parent, "all")
    return listings.Listing(name, key, secret, otherwise, cut)


def _too_many() -> errors.BadInput:
    return errors.BadInput("limit", f"is all for up to {MOST} comments; there are more")
