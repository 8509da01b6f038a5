"""Flatthread's ways to read a thread, with the same calls as the classic layouts.

    Floor         the ordered query over the comments
    Materialized  directory, buckets and delta; compacted and at rest unless stated otherwise
    Warm          the same, in a process that has read the thread before

All of these ways use the product's own code.
"""

from collections.abc import Callable
from datetime import UTC, datetime

from benchmarks.threads import loading
from benchmarks.threads.conversations import Said
from comments.domain import presentation
from comments.reading import listings, thread_pages
from comments.reading.compaction import compactor
from comments.reading.materialized import thread_view
from comments.store import reads, transactions
from comments.tree import changes, ordered_query, placement, values
from comments.tree.threads import naming

_SECRET = "the benchmark's own secret"  # noqa: S105 - the signed cursors are not kept
_MOST = ordered_query.MAX_LIMIT


def fold() -> None:
    """Compact the changes and clear them immediately: this process has no older directory."""
    folded = compactor.compact(loading.SCHEME, loading.NAME)
    if folded is not None:
        compactor.clear(folded)
    loading.cold()


def _all(page: Callable[[str | None], presentation.ThreadPage]) -> list[bytes]:
    """Return all comments of a listing, read page by page."""
    found = page(None)
    comments = list(found.comments)
    while found.cursor is not None:
        found = page(found.cursor)
        comments += found.comments
    return comments


class _Ours:
    """The common part of the ways: writing comments."""

    def post(self, said: Said) -> None:
        """Store a reply."""
        draft = values.Draft(
            id=said.id,
            name=loading.NAME,
            reply_to=said.parent,
            author=loading.author(said),
            text=values.RenderedText(said.body, said.html, loading.RENDERER),
            fingerprint=b"",
            created=said.created,
            brought=naming.encode(naming.Brought()),
        )

        def body() -> None:
            placed = placement.Placement(loading.SCHEME, [draft])
            placed.fill(reads.get_multi(placed.keys))
            placed.place(draft)
            transactions.apply(*placed.writes())

        transactions.transaction(body)

    def edit(self, comment_id: str, html: str) -> None:
        """Replace a text."""
        text = values.RenderedText(html, html, loading.RENDERER)
        now = datetime(2026, 6, 1, tzinfo=UTC)

        def body() -> None:
            change = changes.edit(comment_id, text, now=now, check=lambda _: None)
            transactions.apply(*change.writes)

        transactions.transaction(body)


class Floor(_Ours):
    """Reads with the ordered query, and reads the counts that a page shows."""

    name = "floor"

    def page(self, limit: int) -> list[bytes]:
        """Return the first comments."""
        found = ordered_query.page(
            loading.NAME,
            order=ordered_query.QueryOrder.THREAD,
            parent=None,
            limit=limit,
            cursor=None,
            secret=_SECRET,
        )
        return list(presentation.page(found).comments)

    def whole(self) -> list[bytes]:
        """Return all comments."""
        return [presentation.fragment(row) for row in ordered_query.thread(loading.NAME)]

    def subtree(self, comment_id: str) -> list[bytes]:
        """Return a comment's descendants."""

        def page(cursor: str | None) -> presentation.ThreadPage:
            found = ordered_query.replies(comment_id, limit=_MOST, cursor=cursor, secret=_SECRET)
            return presentation.page(found)

        return _all(page)


class Materialized(_Ours):
    """Reads the directory, buckets and delta, with nothing cached."""

    name = "materialized"

    def before(self) -> None:
        """Prepare a call; this is not measured."""
        loading.cold()

    def page(self, limit: int) -> list[bytes]:
        """Return the first comments."""
        asked = thread_pages.PageRequest(limit, None, _SECRET)
        return list(listings.page(loading.SCHEME, loading.NAME, asked).comments)

    def whole(self) -> list[bytes]:
        """Return all comments."""
        return thread_view.using(loading.NAME, lambda view: [row.json for row in view.rows()])

    def subtree(self, comment_id: str) -> list[bytes]:
        """Return a comment's descendants."""

        def page(cursor: str | None) -> presentation.ThreadPage:
            return listings.replies(comment_id, thread_pages.PageRequest(_MOST, cursor, _SECRET))

        return _all(page)


class Warm(Materialized):
    """Reads in the same way, in a process that has read the thread before."""

    name = "materialized, warm"
    calls = ("page", "whole", "subtree", "page after changes")

    def before(self) -> None:
        """Keep the cache."""
