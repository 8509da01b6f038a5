"""Page through whole discussions, newest first or best first.

If a thread is not materialized, the ordered query reads all its rows, and a view is made from them.
"""

import itertools
from collections.abc import Iterator, Sequence

from comments import errors
from comments.domain import presentation, records, sorthash
from comments.domain.crypto import cursors
from comments.reading.materialized import buckets, directories, merged_view, ranking, thread_view
from comments.reading.materialized.view_cache import HOLDINGS
from comments.reading.page_source import Found
from comments.reading.thread_pages import ListingOrder, ListingPage, PageRequest, past, view_of
from comments.store import transactions
from comments.tree import ordered_query


class RecentDiscussions(ListingPage):
    """A page of discussions, newest first."""

    def __init__(
        self, scheme: sorthash.Scheme, name: records.ThreadName, asked: PageRequest
    ) -> None:
        super().__init__(name, asked, ListingOrder.RECENT)
        self._is_first = asked.cursor is None
        self._scheme = scheme
        self._place = "".join(self._after)

    def _cut(self, found: Found) -> presentation.ThreadPage:
        view, most = view_of(found), self.asked.limit + 1
        return self._of(view, self._rows(view, most))

    def _rows(self, view: merged_view.View, limit: int) -> Iterator[buckets.ListedEntry]:
        """Yield the rows after the cursor: the rest of its discussion, then older discussions."""
        after, open_root = self._place, buckets.root_of(self._scheme, self._place)
        if after:
            yield from view.rows(past(after), sorthash.subtree_range(open_root)[1], limit=limit)
        for root in reversed(view.roots(self._scheme)):
            if not after or root < open_root:
                yield from view.rows(*sorthash.subtree_range(root), limit=limit)

    def _query(self) -> presentation.ThreadPage:
        self._shown = view = _whole_view(self.name)
        return self._cut(view)


class BestDiscussions(ListingPage):
    """A page of discussions, best first. A cursor names its ranking and a position in it."""

    def __init__(
        self, scheme: sorthash.Scheme, name: records.ThreadName, asked: PageRequest
    ) -> None:
        super().__init__(name, asked, ListingOrder.BEST)
        self._is_first = asked.cursor is None
        self._scheme = scheme
        self._ranking, self._place = self._after or ("", "")

    def look(self, age: float = 0.0) -> str:
        """Find the source of the page and return the page's tag.

        Raises:
            errors.CursorExpired: the cursor's ranking no longer exists.
        """
        tag = super().look(age)
        if self.asked.cursor is not None and self._found is not None:
            self._ranked(view_of(self._found))
            # Even if the tag is the same, the page must not be reused, because it also expires with
            # its ranking.
            self.lasts = ""
        return tag

    def _ranked(self, view: merged_view.View) -> tuple[str, ranking.Ranking]:
        best = view.directory.content.best
        newest = "" if best is None else best.ranking
        key = newest if self.asked.cursor is None else self._ranking
        found = HOLDINGS.get().load_ranking(self.name, key, is_newest=key == newest)
        if found is None:
            raise errors.CursorExpired if self.asked.cursor else directories.DirectoryOutdated
        return key, found

    def _cut(self, found: Found) -> presentation.ThreadPage:
        view, asked = view_of(found), self.asked
        most = asked.limit + 1
        key, ranked = self._ranked(view)
        best = view.directory.content.best
        if best is not None and asked.cursor is None:
            top = HOLDINGS.get().load_top(self.name, best.top)
            rows = ranking.top_rows(view, self._scheme, ranked, top, limit=most)
        else:
            rows = ranking.rows(view, self._scheme, ranked, after=self._place, limit=most)
        return self._ranked_page(view, list(itertools.islice(rows, most)), key)

    def _ranked_page(
        self, view: merged_view.View, rows: Sequence[tuple[buckets.ListedEntry, int]], key: str
    ) -> presentation.ThreadPage:
        asked = self.asked
        shown = rows[: asked.limit]
        cursor = None
        if len(rows) > asked.limit:
            cursor = cursors.seal([key, shown[-1][0].sort_hash], self._label, asked.secret)
        comments = presentation.Rows(
            tuple(entry.json for entry, _ in shown), tuple(below for _, below in shown)
        )
        return presentation.ThreadPage(
            comments, cursor, view.total, view.changed, self._pinned_in(view)
        )

    def _query(self) -> presentation.ThreadPage:
        self._shown = view = _whole_view(self.name)
        return self._cut(view)


def _whole_view(name: records.ThreadName) -> merged_view.View:
    """Read all rows with the ordered query, and make a view from them."""
    return transactions.at_one_moment(
        lambda: thread_view.from_rows(
            ordered_query.thread(name), changed=ordered_query.changed(name)
        )
    )
