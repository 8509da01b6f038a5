"""Simulate the actors in compaction races: processes, compactors, and writers that commit late.

This module owns each actor's state and compares a process's pages with the ordered query.
"""

import contextlib
import dataclasses
import threading
from collections.abc import Callable

import msgspec

from comments import errors
from comments.domain import presentation, records
from comments.reading import listings, thread_pages
from comments.reading.compaction import compactor
from comments.reading.materialized import buckets, ranking, thread_view, view_cache
from comments.store import reads
from comments.store.models import bucket_rows
from comments.tree.lists import ordered_query
from tests.support import datastores
from tests.support.threads import compaction, sample_threads

NAME = records.ThreadName("demo", "page")
SCHEME = sample_threads.SETTINGS.scheme
SECRET = sample_threads.SETTINGS.secret


class Process:
    """A process: a store with separate caches and a clock that starts `ahead` seconds later."""

    def __init__(self, datastore: datastores.Datastore, ahead: float) -> None:
        self.now = ahead
        self.store = datastore.connect()
        view_cache.HOLDINGS.put(self.store, view_cache.Holdings(lambda: self.now))


class Late:
    """A writer that has read its rows and made its decision, and that commits later.

    In an optimistic store, transactions never wait for locks, so the other actors can share one
    thread.
    """

    def __init__(self, datastore: datastores.Datastore, write: Callable[[], object]) -> None:
        self._write = write
        self._is_there = threading.Event()
        self._may_commit = threading.Event()
        self._is_dropped = False
        self._store = datastore.connect(self._call)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()
        self._is_there.wait()

    def _call(self, method: str, _request: object, proceed: Callable[[], bytes]) -> bytes:
        if method.endswith("Commit"):
            self._is_there.set()
            self._may_commit.wait()
            if self._is_dropped:
                raise KilledError
        return proceed()

    def _run(self) -> None:
        with self._store.context(), contextlib.suppress(KilledError, errors.FlatthreadError):
            self._write()
        self._is_there.set()

    def commit(self) -> None:
        self._may_commit.set()
        self._thread.join()

    def drop(self) -> None:
        self._is_dropped = True
        self.commit()


class KilledError(Exception):
    """An error that simulates the end of a process before its commit."""


@dataclasses.dataclass
class Compaction:
    """A process's compaction, which may continue at any time or never."""

    process: Process
    prepared: compactor.PreparedBuckets
    folded: compactor.CompactionResult | None = None
    may_clear: float = 0.0


def assert_view(rows: list[records.Comment], shown: dict[str, object]) -> None:
    """Check that the merged view, if it exists, shows the ordered query's rows.

    `shown` contains the content that each tag has named so far.
    """
    try:
        found = compaction.with_view(
            NAME,
            lambda v: ([each.json for each in v.rows()], [v.below(r.sort_hash) for r in rows]),
        )
    except view_cache.NotMaterialized:
        return
    below = [sum(other.sort_hash.startswith(row.sort_hash) for other in rows) - 1 for row in rows]
    assert found == ([presentation.fragment(row) for row in rows], below)
    view = thread_view.view(NAME)
    assert view.total == len(rows)
    assert view.changed == ordered_query.last_change(NAME)
    # A tag must name the same content in every process and at all times.
    assert shown.setdefault(view.tag, found) == found


def assert_page(rows: list[records.Comment], pick: int) -> None:
    """Check that a short page, from any position and in any order, equals the ordered query."""
    order = list(thread_pages.ListingOrder)[pick % len(thread_pages.ListingOrder)]
    asked = thread_pages.PageRequest(1 + pick % 5, None, SECRET)
    found = listings.page(SCHEME, NAME, asked, order=order)
    if pick % 3 and found.cursor:
        asked = msgspec.structs.replace(asked, cursor=found.cursor)
        found = listings.page(SCHEME, NAME, asked, order=order)
    if order in {thread_pages.ListingOrder.RECENT, thread_pages.ListingOrder.BEST}:
        run = [row for root in _roots(rows, order) for row in rows if _is_in(root, row)]
        first = asked.limit if asked.cursor else 0
        shown = run[first : first + asked.limit]
        assert list(found.comments) == [presentation.fragment(row) for row in shown]
        assert list(found.replies) == [sum(_is_in(r.sort_hash, o) for o in rows) - 1 for r in shown]
        return
    expected = ordered_query.page(
        NAME,
        order=ordered_query.QueryOrder(order),
        parent=None,
        limit=asked.limit,
        cursor=asked.cursor,
        secret=SECRET,
    )
    pinned = None if asked.cursor else records.PinnedComments()
    assert found.json() == presentation.page(expected, pinned).json()


def _roots(rows: list[records.Comment], order: thread_pages.ListingOrder) -> list[str]:
    """Return the discussions newest first or by the directory's ranking."""
    roots = sorted({buckets.root_of(SCHEME, row.sort_hash) for row in rows})
    if order is thread_pages.ListingOrder.RECENT:
        return roots[::-1]
    try:
        best = thread_view.view(NAME).directory.content.best
    except view_cache.NotMaterialized:
        best = None
    if best is None:
        return roots
    stored = reads.get(bucket_rows.ranking_key(NAME, best.ranking))
    ranked = [each.sort_hash for each in ranking.decode(stored.content).ranked]
    return [*ranked, *(root for root in roots if root not in ranked)]


def _is_in(root: str, row: records.Comment) -> bool:
    return row.sort_hash.startswith(root)
