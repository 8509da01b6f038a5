"""Page through a thread in reading order, and define the base class of all listing pages.

This module owns the names of the orders, the parameters of a request, and the conversion of rows
into pages. A cursor is a signed position in one listing. A cursor contains the listing's label and
is not valid in other listings.
"""

import enum
import itertools
from collections.abc import Callable, Sequence

import msgspec

from comments import errors
from comments.domain import presentation, records
from comments.domain.crypto import cursors
from comments.domain.ids import sorthash
from comments.reading.materialized import arrangements, buckets, first_page, merged_view
from comments.reading.materialized.view_cache import NotMaterialized
from comments.reading.page_source import PageData, PageSource
from comments.store import transactions
from comments.store.models import comment_rows
from comments.threads import thread_info
from comments.tree.lists import ordered_query, slugs


class ListingOrder(enum.StrEnum):
    """The possible orders of a listing."""

    THREAD = "thread"
    RECENT = "recent"
    BEST = "best"
    OLDEST = "oldest"
    NEWEST = "newest"


class PageRequest(msgspec.Struct, frozen=True):
    """The length and start of a requested page. `secret` signs cursors.

    A page without a cursor starts after `offset` comments. `field` is the parameter that determined
    the offset; errors contain its name.
    """

    limit: int
    cursor: str | None
    secret: str
    offset: int = 0
    field: str = "offset"

    @property
    def is_first(self) -> bool:
        """Return whether the page is the first page of its listing."""
        return self.cursor is None and not self.offset

    @property
    def start(self) -> str | int:
        """Return the cursor, or the offset of a page without a cursor."""
        return self.offset if self.cursor is None else self.cursor


class ListingPage(PageSource[presentation.ThreadPage]):
    """A page of a listing, with a cursor that leads to the next page.

    Raises:
        errors.BadInput: the limit is outside 1 to `ordered_query.MAX_LIMIT`.
        errors.BadCursor: the cursor belongs to a different listing or is not valid.

    `make` raises:
        errors.BadInput: the thread has no comment at the offset.
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
        self.key = cursors.label(
            self._label, str(asked.limit), asked.cursor or "", str(asked.offset)
        )
        # Whether the page includes the pinned comments. Subclasses set this for their first page.
        self._is_first = False
        # The content of the cursor, which is empty for the first page, and the shape of the
        # cursor's tree.
        self._after: list[str] = []
        self._shape: int | None = None
        if asked.cursor is not None:
            self._after, self._shape = cursors.unseal_with_shape(
                asked.cursor, self._label, asked.secret
            )

    def make(self) -> presentation.ThreadPage:
        """Make the page; see `PageSource.make`."""
        try:
            return super().make()
        except errors.BadInput as error:
            if error.field == "offset":
                raise error.about(self.asked.field) from error
            raise

    def _page_in_order(
        self,
        view: merged_view.View,
        order: arrangements.Arrangement,
        seal: Callable[[merged_view.View, str], str],
    ) -> presentation.ThreadPage:
        """Make the page after the request's offset or cursor, in an order of whole discussions.

        `seal` makes the cursor that continues after a hash of the view.
        """
        asked, total = self.asked, view.total
        offset = asked.offset
        if self._after:
            low = past(self._after[-1])
            offset = order.position(low, view.position(low))
        elif offset and offset >= total:
            raise ordered_query.beyond_the_end(total)
        ranges = order.ranges(offset, asked.limit)
        rows = list(view.at(ranges))
        starts = itertools.chain.from_iterable(ranges)
        places = tuple(
            presentation.Place(position, start + 1)
            for position, start in enumerate(starts, offset + 1)
        )
        has_more = offset + len(rows) < total
        cursor = seal(view, rows[-1].sort_hash) if rows and has_more else None
        return self._of(view, _shown_rows(view, rows, places), cursor, order)

    def _of(
        self,
        view: merged_view.View,
        rows: presentation.Rows,
        cursor: str | None,
        order: arrangements.Arrangement | None = None,
    ) -> presentation.ThreadPage:
        """Make a page from its rows. `order` is None for a page in reading order."""
        pinned = first_page.pinned_rows(view, order) if self._is_first else None
        page = presentation.ThreadPage(rows, cursor, view.total, view.changed, pinned)
        return presentation.with_ends(page, rows.places)

    def _page_of_run(
        self, view: merged_view.View, rows: Sequence[buckets.ListedEntry]
    ) -> presentation.ThreadPage:
        """Make a page of consecutive rows in reading order, with a cursor if more rows follow."""
        shown = rows[: self.asked.limit]
        cursor = self._seal_cursor(view, shown[-1].sort_hash) if len(rows) > len(shown) else None
        first = 1 + view.position(shown[0].sort_hash) if shown else 0
        places = presentation.consecutive_places(first, len(shown))
        return self._of(view, _shown_rows(view, shown, places), cursor)

    def _seal_cursor(self, view: merged_view.View, sort_hash: str) -> str:
        return cursors.seal([sort_hash], self._label, self.asked.secret, shape=view.shape)

    def _query_page(self, page: Callable[[], records.OrderedPage]) -> presentation.ThreadPage:
        """Make a page with the ordered query. All reads see the thread at the same moment."""

        def read() -> tuple[records.OrderedPage, records.PinnedComments | None]:
            comments = page()
            if not self._is_first:
                return comments, None
            # A thread without comments has no row; do not look for it in every request.
            thread = thread_info.get(self.name) if comments.comments else None
            return comments, ordered_query.pinned_comments(self.name, thread.pins if thread else ())

        return presentation.page(*transactions.at_one_moment(read))


def _shown_rows(
    view: merged_view.View,
    rows: Sequence[buckets.ListedEntry],
    places: tuple[presentation.Place, ...],
) -> presentation.Rows:
    # In every order, a discussion's rows follow one another, so a row has replies only if the next
    # row is below it. The row that follows the last row is unknown.
    following = [*(row.sort_hash for row in rows[1:]), ""]
    below = tuple(
        view.below(row.sort_hash) if not after or after.startswith(row.sort_hash) else 0
        for row, after in zip(rows, following, strict=False)
    )
    return presentation.Rows(tuple(row.json for row in rows), below, places)


def view_of(source: PageData, *shapes: int | None) -> merged_view.View:
    """Return `source`, which must be a view. Only pages with `first` may get a head.

    `shapes` are the shapes of the data that the caller combines with the view.

    Raises:
        NotMaterialized: one of `shapes` differs from the view's shape. The ordered query then
        decides which data is outdated.
    """
    if not isinstance(source, merged_view.View):
        raise TypeError("only pages in reading order can be made from a head")
    if any(shape not in {None, source.shape} for shape in shapes):
        raise NotMaterialized("the thread has moved to another scheme")
    return source


def past(sort_hash: str) -> str:
    """Return the first string that sorts after a hash."""
    return sort_hash + "\0"


class InOrder(ListingPage):
    """A page in reading order. The first page may be served from the thread's head."""

    def __init__(self, name: records.ThreadName, asked: PageRequest) -> None:
        super().__init__(name, asked, ListingOrder.THREAD)
        if asked.is_first:
            self.first = asked.limit
            self._is_first = True

    def _cut_page(self, source: PageData) -> presentation.ThreadPage:
        if isinstance(source, first_page.FirstPage):
            return source.page(self.asked.limit, label=self._label, secret=self.secret)
        view = view_of(source, self._shape)
        return self._page_in_order(view, arrangements.Reading(view), self._seal_cursor)

    def _query(self) -> presentation.ThreadPage:
        asked = self.asked

        def ordered_page() -> records.OrderedPage:
            return ordered_query.uncounted_page(
                self.name,
                order=ordered_query.QueryOrder.THREAD,
                parent=None,
                limit=asked.limit,
                cursor=asked.start,
                secret=asked.secret,
            ).with_counts()

        return self._query_page(ordered_page)


class Below(ListingPage):
    """A page of all comments below a comment, in reading order."""

    def __init__(self, row: records.Comment, asked: PageRequest) -> None:
        name = records.ThreadName(row.site, row.thread)
        super().__init__(name, asked, ListingOrder.THREAD, f"below {row.id}")
        self._comment, self._row_shape = row.id, row.shape
        low, self._high = sorthash.subtree_range(row.sort_hash)
        self._low = max(past(sort_hash) for sort_hash in (low, *self._after))

    def _cut_page(self, source: PageData) -> presentation.ThreadPage:
        view = view_of(source, self._shape, self._row_shape)
        start = view.position(self._low)
        wanted = range(start, min(view.total, start + self.asked.limit + 1))
        rows = itertools.takewhile(lambda row: row.sort_hash < self._high, view.at([wanted]))
        return self._page_of_run(view, list(rows))

    def _query(self) -> presentation.ThreadPage:
        asked = self.asked
        return presentation.page(
            ordered_query.replies(
                self._comment, limit=asked.limit, cursor=asked.cursor, secret=asked.secret
            )
        )


class Around(ListingPage):
    """The page around a comment, which `address` names by its id or its slug.

    The page starts at the comment's root if both fit on it.
    The page loads one bucket and shows only rows in that bucket's range. The page may therefore
    start after the root, or contain fewer comments than the limit although it has a cursor.

    Raises:
        errors.NotFound: the comment does not exist or is not listed.
        errors.BadInput: the comment belongs to a different thread.
    """

    is_exact = True

    def __init__(
        self, scheme: sorthash.Scheme, name: records.ThreadName, address: str, asked: PageRequest
    ) -> None:
        super().__init__(name, asked, ListingOrder.THREAD)
        self._row = slugs.find(scheme, name, address, field="around")
        self._scheme = scheme
        self.key = cursors.label(self.key, f"around {self._row.id}")

    def _cut_page(self, source: PageData) -> presentation.ThreadPage:
        view, limit = view_of(source, self._row.shape), self.asked.limit
        root = buckets.root_of(view.scheme(self._scheme), self._row.sort_hash)
        low, high, following = view.stretch(self._row.sort_hash)
        rows = list(view.rows(max(low, root), high))
        place = next((n for n, row in enumerate(rows) if row.id == self._row.id), None)
        if place is None:
            raise errors.NotFound("comment", self._row.id)  # The comment is no longer listed
        start = 0 if place < limit else min(place, len(rows) - limit)
        page = self._with_around(self._page_of_run(view, rows[start : start + limit + 1]))
        if page.cursor is None and following:
            return msgspec.structs.replace(page, cursor=self._seal_cursor(view, rows[-1].sort_hash))
        return page

    def _query(self) -> presentation.ThreadPage:
        asked = self.asked
        page = ordered_query.around(self.name, self._row.id, limit=asked.limit, secret=asked.secret)
        return self._with_around(presentation.page(page))

    def _with_around(self, page: presentation.ThreadPage) -> presentation.ThreadPage:
        return msgspec.structs.replace(page, around=self._row.id)
