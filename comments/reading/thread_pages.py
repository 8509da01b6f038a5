"""Page through a thread in reading order, and define the base class of all listing pages.

Owns the names of the orders, the parameters of a request, and the conversion of rows into pages. A
cursor is a signed position in one listing. A cursor contains the listing's label and is not valid
in other listings.
"""

import enum
import itertools
from collections.abc import Callable, Iterable

import msgspec

from comments import errors
from comments.domain import presentation, records, sorthash
from comments.domain.crypto import cursors
from comments.reading.materialized import buckets, first_page, merged_view
from comments.reading.page_source import Found, PageSource
from comments.sites import thread_info
from comments.store import transactions
from comments.store.models import comment_rows
from comments.tree import ordered_query


class ListingOrder(enum.StrEnum):
    """The possible orders of a listing."""

    THREAD = "thread"
    RECENT = "recent"
    BEST = "best"
    OLDEST = "oldest"
    NEWEST = "newest"


class PageRequest(msgspec.Struct, frozen=True):
    """The length and start of a requested page. `secret` signs cursors."""

    limit: int
    cursor: str | None
    secret: str


class ListingPage(PageSource[presentation.ThreadPage]):
    """A page of a listing, with a cursor that leads to the next page.

    Raises:
        errors.BadInput: the limit is outside 1 to `ordered_query.MAX_LIMIT`.
        errors.BadCursor: the cursor belongs to a different listing or is not valid.
    """

    def __init__(
        self, name: records.ThreadName, asked: PageRequest, order: ListingOrder, within: str = ""
    ) -> None:
        if not 1 <= asked.limit <= ordered_query.MAX_LIMIT:
            raise errors.BadInput(
                "limit", "out-of-range", minimum=1, maximum=ordered_query.MAX_LIMIT
            )
        self.name, self.asked, self.secret, self.order = name, asked, asked.secret, order
        self._label = cursors.label(comment_rows.thread_key_name(name), order, within)
        self.key = cursors.label(self._label, str(asked.limit), asked.cursor or "")
        # Whether the page has the pinned comments. Subclasses set this for their first page.
        self._is_first = False
        # The cursor's content, which is empty for the first page.
        self._after = (
            [] if asked.cursor is None else cursors.unseal(asked.cursor, self._label, asked.secret)
        )

    def _range(self, view: merged_view.View, low: str, high: str) -> presentation.ThreadPage:
        """Make a page from the rows with low <= hash < high."""
        return self._of(view, view.rows(low, high, limit=self.asked.limit + 1))

    def _of(
        self, view: merged_view.View, rows: Iterable[buckets.ListedEntry]
    ) -> presentation.ThreadPage:
        """Make a page from the first rows, with a cursor if more rows follow."""
        asked, total = self.asked, view.total
        found = list(itertools.islice(rows, asked.limit + 1))
        shown = found[: asked.limit]
        below = tuple(view.below(row.sort_hash) for row in shown)
        cursor = None
        if len(found) > asked.limit:
            cursor = cursors.seal([shown[-1].sort_hash], self._label, asked.secret)
        comments = presentation.Rows(tuple(row.json for row in shown), below)
        return presentation.ThreadPage(comments, cursor, total, view.changed, self._pinned_in(view))

    def _pinned_in(self, view: merged_view.View) -> presentation.Rows | None:
        """Return the pinned comments for a first page, None for other pages."""
        return first_page.pinned(view) if self._is_first else None

    def _queried(self, page: Callable[[], records.OrderedPage]) -> presentation.ThreadPage:
        """Make a page with the ordered query. All reads see the thread at the same moment."""

        def read() -> tuple[records.OrderedPage, records.PinnedComments | None]:
            found = page()
            if not self._is_first:
                return found, None
            # A thread without comments has no row; do not look for it in every request.
            thread = thread_info.get(self.name) if found.comments else None
            return found, ordered_query.pinned(self.name, thread.pins if thread else ())

        return presentation.page(*transactions.at_one_moment(read))


def view_of(found: Found) -> merged_view.View:
    """Return `found`, which must be a view. Only pages with `first` may get a head."""
    if not isinstance(found, merged_view.View):
        raise TypeError("only pages in reading order can be made from a head")
    return found


def past(sort_hash: str) -> str:
    """Return the first string that sorts after a hash."""
    return sort_hash + "\0"


class InOrder(ListingPage):
    """A page in reading order. The first page may be served from the thread's head."""

    def __init__(self, name: records.ThreadName, asked: PageRequest) -> None:
        super().__init__(name, asked, ListingOrder.THREAD)
        if asked.cursor is None:
            self.first = asked.limit
            self._is_first = True

    def _cut(self, found: Found) -> presentation.ThreadPage:
        if isinstance(found, first_page.FirstPage):
            return found.page(self.asked.limit, label=self._label, secret=self.secret)
        return self._range(found, "".join(each + "\0" for each in self._after), sorthash.ABOVE)

    def _query(self) -> presentation.ThreadPage:
        asked = self.asked

        def counted() -> records.OrderedPage:
            return ordered_query.run(
                self.name,
                order=ordered_query.QueryOrder.THREAD,
                parent=None,
                limit=asked.limit,
                cursor=asked.cursor,
                secret=asked.secret,
            ).counted()

        return self._queried(counted)


class Below(ListingPage):
    """A page of all comments below a comment, in reading order."""

    def __init__(self, row: records.Comment, asked: PageRequest) -> None:
        name = records.ThreadName(row.site, row.thread)
        super().__init__(name, asked, ListingOrder.THREAD, f"below {row.id}")
        self._comment = row.id
        low, self._high = sorthash.subtree_range(row.sort_hash)
        self._low = max(past(each) for each in (low, *self._after))

    def _cut(self, found: Found) -> presentation.ThreadPage:
        return self._range(view_of(found), self._low, self._high)

    def _query(self) -> presentation.ThreadPage:
        asked = self.asked
        return presentation.page(
            ordered_query.replies(
                self._comment, limit=asked.limit, cursor=asked.cursor, secret=asked.secret
            )
        )


class Around(ListingPage):
    """The page around a comment. The page starts at the comment's root if both fit on it.

    The page loads one bucket and shows only rows in that bucket's range. The page may therefore
    start after the root, or contain fewer comments than the limit although it has a cursor.

    Raises:
        errors.NotFound: the comment does not exist or is not listed.
        errors.BadInput: the comment belongs to a different thread.
    """

    is_exact = True

    def __init__(
        self, scheme: sorthash.Scheme, name: records.ThreadName, comment_id: str, asked: PageRequest
    ) -> None:
        super().__init__(name, asked, ListingOrder.THREAD)
        self._row = ordered_query.listed_in(name, comment_id, field="around")
        self._root = buckets.root_of(scheme, self._row.sort_hash)
        self.key = cursors.label(self.key, f"around {comment_id}")

    def _cut(self, found: Found) -> presentation.ThreadPage:
        view, limit = view_of(found), self.asked.limit
        low, high, following = view.stretch(self._row.sort_hash)
        rows = list(view.rows(max(low, self._root), high))
        place = next((n for n, each in enumerate(rows) if each.id == self._row.id), None)
        if place is None:
            raise errors.NotFound("comment", self._row.id)  # the comment is no longer listed
        start = 0 if place < limit else min(place, len(rows) - limit)
        page = self._of(view, rows[start : start + limit + 1])
        if page.cursor is None and following:
            more = cursors.seal([rows[-1].sort_hash], self._label, self.asked.secret)
            return msgspec.structs.replace(page, cursor=more)
        return page

    def _query(self) -> presentation.ThreadPage:
        asked = self.asked
        return presentation.page(
            ordered_query.around(self.name, self._row.id, limit=asked.limit, secret=asked.secret)
        )
