"""Page through whole discussions, newest first or best first.

If a thread is not materialized, the ordered query reads all its rows, and a view is made from them.
"""

import itertools
from collections.abc import Callable, Iterator, Sequence

from comments import errors
from comments.domain import presentation, records, sorthash
from comments.domain.crypto import cursors
from comments.reading.materialized import (
    arrangements,
    buckets,
    directories,
    merged_view,
    ranking,
    thread_view,
)
from comments.reading.materialized.view_cache import HOLDINGS
from comments.reading.page_source import Found
from comments.reading.thread_pages import ListingOrder, ListingPage, PageRequest, view_of
from comments.store import transactions
from comments.tree import ordered_query


class RecentDiscussions(ListingPage):
    """A page of discussions, newest first."""

    def __init__(
        self, scheme: sorthash.Scheme, name: records.ThreadName, asked: PageRequest
    ) -> None:
        super().__init__(name, asked, ListingOrder.RECENT)
        self._is_first = asked.is_first
        self._scheme = scheme

    def _cut(self, found: Found) -> presentation.ThreadPage:
        view = view_of(found)
        return self._arranged(view, arrangements.Recent(view, self._scheme), self._sealed)

    def _query(self) -> presentation.ThreadPage:
        self._shown = view = _whole_view(self.name)
        return self._cut(view)


class BestDiscussions(ListingPage):
    """A page of discussions, best first. A cursor names its ranking and a position in it."""

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
        if best is not None and best.ranked and key == newest:
            return key, ranking.of_listed(best.ranked)
        found = HOLDINGS.get().load_ranking(self.name, key, is_newest=key == newest)
        if found is None:
            raise errors.CursorExpired if self.asked.cursor else directories.DirectoryOutdated
        return key, found

    def _cut(self, found: Found) -> presentation.ThreadPage:
        view, asked = view_of(found), self.asked
        key, ranked = self._ranked(view)

        def seal(sort_hash: str) -> str:
            return cursors.seal([key, sort_hash], self._label, asked.secret)

        order = arrangements.Best(view, self._scheme, ranked)
        best, end = view.directory.content.best, min(asked.offset + asked.limit, view.total)
        is_in_top = asked.is_first or asked.offset < end <= ranking.TOP_ROWS
        if best is None or asked.cursor is not None or not is_in_top:
            return self._arranged(view, order, seal)
        top = HOLDINGS.get().load_top(self.name, best.top)
        rows = ranking.top_rows(view, self._scheme, ranked, top, limit=end)
        return self._of_top(view, list(itertools.islice(rows, end)), order, seal)

    def _of_top(
        self,
        view: merged_view.View,
        rows: Sequence[tuple[buckets.ListedEntry, int]],
        order: arrangements.Arrangement,
        seal: Callable[[str], str],
    ) -> presentation.ThreadPage:
        """Make a page from the first rows in this order, each with its number of replies."""
        offset = self.asked.offset
        places = list(_places(view, self._scheme, [entry.sort_hash for entry, _ in rows]))
        shown = rows[offset:]
        cursor = seal(shown[-1][0].sort_hash) if shown and len(rows) < view.total else None
        comments = presentation.Rows(
            tuple(entry.json for entry, _ in shown),
            tuple(below for _, below in shown),
            tuple(places[offset:]),
        )
        return self._of(view, comments, cursor, order)

    def _query(self) -> presentation.ThreadPage:
        self._shown = view = _whole_view(self.name)
        return self._cut(view)


def _places(
    view: merged_view.View, scheme: sorthash.Scheme, hashes: Sequence[str]
) -> Iterator[presentation.Place]:
    """Yield the places of the first comments in an order, which contain whole discussions."""
    positions = itertools.count(1)
    for root, group in itertools.groupby(hashes, lambda each: buckets.root_of(scheme, each)):
        start = 1 + view.start_of_root(root)
        for number, _ in enumerate(group):
            yield presentation.Place(next(positions), start + number)


def _whole_view(name: records.ThreadName) -> merged_view.View:
    """Read all rows with the ordered query, and make a view from them."""
    return transactions.at_one_moment(
        lambda: thread_view.from_rows(
            ordered_query.thread(name), changed=ordered_query.changed(name)
        )
    )
