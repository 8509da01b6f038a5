"""Listings report the time of their newest change, even if changes happen during a read."""

from collections.abc import Iterable, Sequence
from datetime import timedelta

import pytest

from comments.domain import presentation, records
from comments.posting import own_comment
from comments.reading import listings, thread_pages
from comments.reading.compaction import compactor
from comments.store import connection, ownership, reads, transactions
from comments.store.models import bucket_rows
from comments.tree.lists import ordered_query
from tests.support.threads import compaction, sample_threads

SECRET = sample_threads.SETTINGS.secret
SCHEME = sample_threads.SETTINGS.scheme


@pytest.fixture(autouse=True)
def _entered(store: connection.Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run all these tests inside the store, with buckets small enough for a short thread."""
    compaction.small_buckets(monkeypatch)


def test_the_newest_change_may_be_a_retraction(
    site: records.Site,
) -> None:
    rows = sample_threads.grow(site, sample_threads.TREE)
    name = sample_threads.name_of(site)
    newest = max(row.created for row in rows.values())
    last = newest + timedelta(days=1)
    for moment in (newest, last):
        assert _changed(name) == {moment}
        _compact(name)
        assert _changed(name) == {moment}
        if moment is newest:
            own_comment.retract(rows["1.1.1"].id, author_id="g:1.1.1", revision=None, now=last)
    _lose_the_directory(name)
    assert _changed(name) == {last}
    _compact(name)
    assert _changed(name) == {last}


def _lose_the_directory(name: records.ThreadName) -> None:
    gone = ownership.Writes("compactor", delete=(bucket_rows.directory_key(name),))
    transactions.transaction(lambda: transactions.apply(gone))
    compaction.forget_directory(name)


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_comment_that_readers_never_saw_is_not_a_change(
    site: records.Site, *, is_compacted: bool
) -> None:
    sample_threads.post(site, "seen")
    name = sample_threads.name_of(site)
    held = _hold(name)
    if is_compacted:
        _compact(name)
    own_comment.retract(
        held.id, author_id="g:held", revision=None, now=sample_threads.START + timedelta(days=9)
    )
    assert _changed(name) == {sample_threads.START}
    assert _changed(sample_threads.name_of(site, "nobody")) == {None}


def _hold(name: records.ThreadName) -> records.ImportedComment:
    """Store a held comment that is newer than all other comments."""
    late = sample_threads.START + timedelta(days=8)
    held = sample_threads.node("held", status=records.Status.PENDING, author="g:held", created=late)
    sample_threads.store_imported(name, held)
    return held


def _compact(name: records.ThreadName) -> None:
    compaction.whole(name)
    compaction.forget()


def _changed(name: records.ThreadName) -> set[object]:
    """Return the times of the newest change that pages in all orders report."""
    asked = thread_pages.PageRequest(1, None, SECRET)
    pages = [listings.page(SCHEME, name, asked, order=order) for order in thread_pages.ListingOrder]
    pages += [listings.page(SCHEME, name, asked, parent=ordered_query.ROOTS)]
    return {page.changed for page in pages}


def test_a_row_that_changes_during_a_read_comes_with_all_earlier_changes(
    site: records.Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = sample_threads.name_of(site)
    sample_threads.post(site, "first")
    assert compactor.compact(SCHEME, name) is not None
    target = sample_threads.post(site, "second")
    real, waiting = reads.lookup, ["a change meanwhile"]

    def late(kind: str, names: Sequence[str]) -> Iterable[object]:
        if waiting:
            waiting.clear()
            sample_threads.post(site, "third")
            own_comment.retract(
                target.id, author_id=target.author.id, revision=None, now=sample_threads.START
            )
        return real(kind, names)

    monkeypatch.setattr(reads, "lookup", late)
    found = listings.page(SCHEME, name, thread_pages.PageRequest(50, None, SECRET))
    assert found.comments == tuple(map(presentation.fragment, ordered_query.thread(name)))
