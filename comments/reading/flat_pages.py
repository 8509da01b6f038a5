"""Page through rows that only the ordered query can list: flat by time, or one level at a time."""

from comments.domain import presentation, records
from comments.reading.materialized import merged_view, thread_view
from comments.reading.materialized.view_cache import NotMaterialized
from comments.reading.page_source import Found
from comments.reading.thread_pages import ListingOrder, ListingPage, PageRequest, view_of
from comments.store import transactions
from comments.tree import ordered_query

_TRIES = 3


class Flat(ListingPage):
    """A page of rows that only the ordered query can list: flat by time, or one level at a time.

    If the thread is materialized, the numbers of replies come from a view, which saves a query for
    each row. The rows are read between two probes. If both probes find the same, nothing changed in
    between, so rows and numbers are of one moment. The page is identified by its bytes.
    """

    def __init__(
        self, name: records.ThreadName, asked: PageRequest, order: ListingOrder, parent: str | None
    ) -> None:
        super().__init__(name, asked, order, parent or "")
        self._order, self._parent = order, parent

    def look(self, age: float = 0.0) -> str:
        """Return no tag: the page's rows are not known before it is made."""
        del age
        self._page = None
        return ""

    def _cut(self, found: Found) -> presentation.ThreadPage:
        self._shown = view = view_of(found)
        return _counted(view, self._run())

    def _query(self) -> presentation.ThreadPage:
        try:
            for _ in range(_TRIES):
                tag, page = thread_view.using(self.name, lambda view: (view.tag, self._cut(view)))
                if thread_view.tag(self.name) == tag:
                    return page
        except NotMaterialized:
            pass
        self._shown = None
        run = transactions.at_one_moment(lambda: self._run().counted())
        return presentation.page(run)

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
    """Make a page of the ordered query's rows with the view's numbers of replies."""
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
    # The directory knows the sizes of discussions, so no bucket is loaded. The size is 0 if the
    # discussion has disappeared meanwhile.
    return max(0, view.size_of_root(row.sort_hash) - 1)
