"""Page through a thread with the ordered query, either flat by time or one level at a time.

A page can start at any offset. The time index of a long thread's directory (`time_index`) contains
the places from which the query skips the comments before the page.
"""

import msgspec

from comments.domain import presentation, records
from comments.reading.materialized import first_page, merged_view, thread_view, time_index
from comments.reading.materialized.view_cache import NotMaterialized
from comments.reading.page_source import PageData
from comments.reading.thread_pages import ListingOrder, ListingPage, PageRequest, view_of
from comments.tree.lists import ordered_query


class Flat(ListingPage):
    """A page that is flat by time or shows one level. Only the ordered query can list its rows.

    If the thread is materialized, a view supplies the reply counts, which saves a query for each
    row. The rows are read between two probes. If both probes give the same result, nothing has
    changed between them, so rows and counts show the same moment. The view's tag then identifies
    the page, and the rows need not be read again until a probe finds a change.
    """

    is_exact = True

    def __init__(
        self, name: records.ThreadName, asked: PageRequest, order: ListingOrder, parent: str | None
    ) -> None:
        super().__init__(name, asked, order, parent or "")
        self._order, self._parent = order, parent
        self._is_first = asked.is_first and parent is None

    def look(self, age: float = 0.0) -> str:
        """Find the view of the thread and return the page's tag."""
        tag = super().look(age)
        # A cached page must not be sent again after an older probe (`freshness`).
        self.lasts = ""
        return tag

    def _cut_page(self, source: PageData) -> presentation.ThreadPage:
        view = view_of(source)
        if self.asked.offset and self.asked.offset >= view.total:
            raise ordered_query.beyond_the_end(view.total)
        run = self._run_query(view.times)
        view_of(source, *(row.shape for row in run.rows))
        page = _page_with_counts(view, run)
        if self._is_first:
            page = msgspec.structs.replace(page, pinned=self._pinned_rows(view))
        if thread_view.tag(self.name) != view.tag:
            raise NotMaterialized("the thread changed while it was read")
        return page

    def _pinned_rows(self, view: merged_view.View) -> presentation.Rows:
        """Return the pinned comments, without the positions that they have by time."""
        rows = first_page.pinned_rows(view)
        places = tuple(presentation.Place(None, place.start) for place in rows.places)
        return msgspec.structs.replace(rows, places=places)

    def _query(self) -> presentation.ThreadPage:
        return self._query_page(lambda: self._run_query().with_counts())

    def _run_query(self, times: time_index.TimeIndex | None = None) -> ordered_query.UncountedPage:
        if self._parent is None:
            newest_first = self._order is ListingOrder.NEWEST
            return ordered_query.flat_page(
                self.name,
                order=ordered_query.QueryOrder(self._order),
                limit=self.asked.limit,
                cursor=self.asked.start,
                secret=self.asked.secret,
                starts=time_index.starts(times, newest_first=newest_first),
            )
        return ordered_query.uncounted_page(
            self.name,
            order=ordered_query.QueryOrder(self._order),
            parent=self._parent,
            limit=self.asked.limit,
            cursor=self.asked.start,
            secret=self.asked.secret,
        )


def _page_with_counts(
    view: merged_view.View, run: ordered_query.UncountedPage
) -> presentation.ThreadPage:
    """Make a page from the ordered query's rows and the view's reply counts."""
    before, first = run.before, ""
    if before is None and run.is_in_order and run.rows:
        first = run.rows[0].sort_hash
    nested = [row for row in run.rows if row.level]
    view.load_buckets(row.sort_hash for row in nested if row.child_count or row.sort_hash == first)
    replies = tuple(_below(view, row) for row in run.rows)
    if first:
        before = view.position(first) if nested else view.start_of_root(first)
    positions = run.places(before, replies)
    starts = positions if run.is_in_order else (None,) * len(positions)
    places = tuple(map(presentation.Place, positions, starts))
    comments = presentation.Rows(tuple(map(presentation.fragment, run.rows)), replies, places)
    page = presentation.ThreadPage(comments, run.cursor, view.total, view.changed)
    return presentation.with_ends(page, places)


def _below(view: merged_view.View, row: records.Comment) -> int:
    if not row.child_count:
        return 0
    if row.level:
        return view.below(row.sort_hash)
    # The directory contains the sizes of discussions, so no bucket is loaded. The size is 0 if the
    # discussion is no longer listed.
    return max(0, view.size_of_root(row.sort_hash) - 1)
