"""Page through a thread flat by time, or one level at a time, with the ordered query."""

import msgspec

from comments.domain import presentation, records
from comments.reading.materialized import merged_view, thread_view
from comments.reading.materialized.view_cache import NotMaterialized
from comments.reading.page_source import Found
from comments.reading.thread_pages import ListingOrder, ListingPage, PageRequest, view_of
from comments.tree import ordered_query

_TRIES = 3


class Flat(ListingPage):
    """A page that is flat by time or shows one level. Only the ordered query can list its rows.

    If the thread is materialized, a view supplies the reply counts, which saves a query for each
    row. The rows are read between two probes. If both probes give the same result, nothing has
    changed between them, so rows and counts show the same moment. A flat page has no tag and is
    identified by its bytes.
    """

    def __init__(
        self, name: records.ThreadName, asked: PageRequest, order: ListingOrder, parent: str | None
    ) -> None:
        super().__init__(name, asked, order, parent or "")
        self._order, self._parent = order, parent
        self._is_first = asked.cursor is None and parent is None

    def look(self, age: float = 0.0) -> str:
        """Return no tag, because the rows are unknown until the page is made."""
        del age
        self._page = None
        return ""

    def _cut(self, found: Found) -> presentation.ThreadPage:
        self._shown = view = view_of(found)
        page = _counted(view, self._run())
        return msgspec.structs.replace(page, pinned=self._pinned_in(view))

    def _query(self) -> presentation.ThreadPage:
        try:
            for _ in range(_TRIES):
                tag, page = thread_view.using(self.name, lambda view: (view.tag, self._cut(view)))
                if thread_view.tag(self.name) == tag:
                    return page
        except NotMaterialized:
            pass
        self._shown = None
        return self._queried(lambda: self._run().counted())

    def _run(self) -> ordered_query.UncountedPage:
        return ordered_query.run(
            self.name,
            order=ordered_query.QueryOrder(self._order),
            parent=self._parent,
            limit=self.asked.limit,
            cursor=self.asked.cursor,
            secret=self.asked.secret,
        )


def _counted(view: merged_view.View, run: ordered_query.UncountedPage) -> presentation.ThreadPage:
    """Make a page from the ordered query's rows and the view's reply counts."""
    view.read(row.sort_hash for row in run.rows if row.child_count and row.level)
    comments = presentation.Rows(
        tuple(map(presentation.fragment, run.rows)), tuple(_below(view, row) for row in run.rows)
    )
    return presentation.ThreadPage(comments, run.cursor, view.total, view.changed)


def _below(view: merged_view.View, row: records.Comment) -> int:
    if not row.child_count:
        return 0
    if row.level:
        return view.below(row.sort_hash)
    # The directory contains the sizes of discussions, so no bucket is loaded. The size is 0 if the
    # discussion is no longer listed.
    return max(0, view.size_of_root(row.sort_hash) - 1)
