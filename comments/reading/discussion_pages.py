"""Page through whole discussions, newest first or best first.

If a thread is not materialized, the ordered query reads all its rows, and a view is made from them.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence

from comments import errors
from comments.domain import presentation, records
from comments.domain.crypto import cursors
from comments.domain.ids import sorthash
from comments.reading.materialized import (
    arrangements,
    buckets,
    directories,
    merged_view,
    ranking,
    thread_view,
)
from comments.reading.materialized.view_cache import HOLDINGS
from comments.reading.page_source import PageData
from comments.reading.thread_pages import ListingOrder, ListingPage, PageRequest, view_of
from comments.store import reads, transactions
from comments.store.models import comment_rows
from comments.tree.lists import ordered_query


class RecentDiscussions(ListingPage):
    """A page of discussions, newest first."""

    def __init__(
        self, scheme: sorthash.Scheme, name: records.ThreadName, asked: PageRequest
    ) -> None:
        super().__init__(name, asked, ListingOrder.RECENT)
        self._is_first = asked.is_first
        self._scheme = scheme

    def _cut_page(self, source: PageData) -> presentation.ThreadPage:
        view = view_of(source, self._shape)
        order = arrangements.Recent(view, view.scheme(self._scheme))
        return self._page_in_order(view, order, self._seal_cursor)

    def _query(self) -> presentation.ThreadPage:
        self._shown = view = _whole_view(self.name, self._shape)
        return self._cut_page(view)


class BestDiscussions(ListingPage):
    """A page of discussions, best first. A cursor names a ranking and a position in it."""

    def __init__(
        self, scheme: sorthash.Scheme, name: records.ThreadName, asked: PageRequest
    ) -> None:
        super().__init__(name, asked, ListingOrder.BEST)
        self._is_first = asked.is_first
        self._scheme = scheme
        self._ranking = self._after[0] if self._after else ""

    def look(self, age: float = 0.0) -> str:
        """Find the source of the page and return the page's tag.

        Raises:
            errors.CursorExpired: the cursor's ranking no longer exists.
        """
        tag = super().look(age)
        if self.asked.cursor is not None and self._source is not None:
            view = view_of(self._source)
            if view.shape == self._shape:
                self._load_ranking(view)
            # Even if the tag is the same, the page must not be reused, because it also expires with
            # its ranking.
            self.lasts = ""
        return tag

    def _load_ranking(self, view: merged_view.View) -> tuple[str, ranking.Ranking]:
        best = view.directory.content.best
        newest = "" if best is None else best.ranking
        key = newest if self.asked.cursor is None else self._ranking
        if best is not None and best.ranked and key == newest:
            return key, ranking.of_hashes(best.ranked)
        ranked = HOLDINGS.get().load_ranking(self.name, key, is_newest=key == newest)
        if ranked is None:
            raise errors.CursorExpired if self.asked.cursor else directories.DirectoryOutdated
        return key, ranked

    def _cut_page(self, source: PageData) -> presentation.ThreadPage:
        view, asked = view_of(source, self._shape), self.asked
        scheme = view.scheme(self._scheme)
        key, ranked = self._load_ranking(view)

        def seal(view: merged_view.View, sort_hash: str) -> str:
            return cursors.seal([key, sort_hash], self._label, asked.secret, shape=view.shape)

        order = arrangements.Best(view, scheme, ranked)
        best, end = view.directory.content.best, min(asked.offset + asked.limit, view.total)
        is_in_top = asked.is_first or asked.offset < end <= ranking.TOP_ROWS
        if best is None or asked.cursor is not None or not is_in_top:
            return self._page_in_order(view, order, seal)
        top = HOLDINGS.get().load_top(self.name, best.top)
        rows = ranking.top_rows(view, scheme, ranked, top, limit=end)
        return self._of_top(view, list(itertools.islice(rows, end)), order, seal)

    def _of_top(
        self,
        view: merged_view.View,
        rows: Sequence[tuple[buckets.ListedEntry, int]],
        order: arrangements.Arrangement,
        seal: Callable[[merged_view.View, str], str],
    ) -> presentation.ThreadPage:
        """Make a page from the first rows in this order, each with its number of replies."""
        offset = self.asked.offset
        scheme = view.scheme(self._scheme)
        places = list(_places(view, scheme, [entry.sort_hash for entry, _ in rows]))
        shown = rows[offset:]
        cursor = seal(view, shown[-1][0].sort_hash) if shown and len(rows) < view.total else None
        comments = presentation.Rows(
            tuple(entry.json for entry, _ in shown),
            tuple(below for _, below in shown),
            tuple(places[offset:]),
        )
        return self._of(view, comments, cursor, order)

    def _query(self) -> presentation.ThreadPage:
        self._shown = view = _whole_view(self.name, self._shape)
        return self._cut_page(view)


def _places(
    view: merged_view.View, scheme: sorthash.Scheme, hashes: Sequence[str]
) -> Iterator[presentation.Place]:
    """Yield the places of the first comments in an order of whole discussions."""
    positions = itertools.count(1)
    for root, group in itertools.groupby(hashes, lambda each: buckets.root_of(scheme, each)):
        start = 1 + view.start_of_root(root)
        for number, _ in enumerate(group):
            yield presentation.Place(next(positions), start + number)


def _whole_view(name: records.ThreadName, shape: int | None) -> merged_view.View:
    """Read all rows with the ordered query, and make a view from them.

    Raises:
        errors.CursorExpired: the cursor's `shape` differs from that of the thread.
    """

    def read() -> merged_view.View:
        rows = ordered_query.thread(name)
        thread = reads.get(comment_rows.thread_key(name)) if rows else None
        scheme = "" if thread is None else thread.scheme
        return thread_view.from_rows(rows, changed=ordered_query.last_change(name), scheme=scheme)

    view = transactions.at_one_moment(read)
    if view.total and shape not in {None, view.shape}:
        raise errors.CursorExpired
    return view
