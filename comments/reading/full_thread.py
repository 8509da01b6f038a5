"""List a whole thread or subtree in one response, in reading order.

This module owns the maximum size of such a response. A whole thread costs the reads of its
directory and of all its buckets, and one probe. The response is made in pieces (`chunks`), and
unchanged pieces are reused. This module writes nothing.
"""

from collections.abc import Container

import msgspec

from comments import errors
from comments.domain import records
from comments.domain.crypto import cursors
from comments.domain.ids import sorthash
from comments.reading.materialized import chunks, first_page, merged_view, thread_view
from comments.reading.page_source import PageData, PageSource
from comments.reading.thread_pages import view_of
from comments.store import transactions
from comments.store.models import comment_rows
from comments.tree.lists import listed_comments, ordered_query

MOST = 20_000  # Maximum number of comments in one response (10 MB of App Engine's 32 MB)


class WholeThread(PageSource[chunks.Whole]):
    """All comments of a thread, or all comments below one comment.

    `known` contains the marks of the pieces that the caller already has. The buckets of these
    pieces are not loaded.

    `make` raises:
        errors.BadInput: there are more than `MOST` comments.
    """

    def __init__(
        self, name: records.ThreadName, secret: str, *, below: records.Comment | None = None
    ) -> None:
        self._below = below
        self._is_whole = below is None
        self._low, self._high, parent = "", sorthash.ABOVE, ""
        if below is not None:
            low, self._high = sorthash.subtree_range(below.sort_hash)
            self._low, parent = low + "\0", f"below {below.id}"
        self.name, self.secret = name, secret
        self.key = cursors.label(comment_rows.thread_key_name(name), parent, "all")
        self.known: Container[bytes] = ()

    def _cut_page(self, source: PageData) -> chunks.Whole:
        view = view_of(source, None if self._below is None else self._below.shape)
        if (view.total if self._is_whole else view.count(self._low, self._high)) > MOST:
            raise _too_many()
        whole = self._pieces(view)
        # Load the buckets here, because the caller retries with a new view if a bucket no longer
        # exists.
        whole.read([piece for piece in whole.pieces if piece.mark not in self.known])
        if self._is_whole:
            return whole
        return _between(whole, view.position(self._low), view.count(self._low, self._high))

    def _pieces(self, view: merged_view.View) -> chunks.Whole:
        whole = chunks.divide(view, self._low, self._high)
        if not self._is_whole:
            return whole
        about = msgspec.structs.replace(whole.about, pinned=first_page.pinned_rows(view))
        return _between(msgspec.structs.replace(whole, about=about), 0, view.total)

    def _query(self) -> chunks.Whole:
        return transactions.at_one_moment(self._of_rows)

    def _of_rows(self) -> chunks.Whole:
        name, below = self.name, self._below
        if below is not None:
            low, self._high = sorthash.subtree_range(listed_comments.by_id(below.id).sort_hash)
            self._low = low + "\0"
        rows = ordered_query.stretch(name, self._low, self._high, limit=MOST + 1)
        if len(rows) > MOST:
            raise _too_many()
        view = thread_view.from_rows(rows, changed=ordered_query.last_change(name))
        whole = self._pieces(view)
        if self._is_whole:
            return whole
        # The view contains only the rows of the subtree, but `total` counts the whole thread.
        (total,) = ordered_query.totals(name.site, [name.id])
        about = msgspec.structs.replace(whole.about, total=total)
        before = ordered_query.before(name, self._low)
        return _between(msgspec.structs.replace(whole, about=about), before, len(rows))


def below(comment_id: str, secret: str) -> WholeThread:
    """Return the page source of all comments below one comment.

    Raises:
        errors.NotFound: the comment does not exist or is not listed.
    """
    row = listed_comments.by_id(comment_id)
    return WholeThread(records.ThreadName(row.site, row.thread), secret, below=row)


def _between(whole: chunks.Whole, before: int, count: int) -> chunks.Whole:
    """Set the positions of the first and the last comment, in reading order."""
    # The comments themselves contain no positions, because a new comment would otherwise change the
    # pieces of all comments after it.
    if not count:
        return whole
    about = msgspec.structs.replace(whole.about, first=before + 1, last=before + count)
    return msgspec.structs.replace(whole, about=about)


def _too_many() -> errors.BadInput:
    return errors.BadInput("limit", "too-many-comments", limit=MOST)
