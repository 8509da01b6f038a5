"""Threads folded at once, for tests; and processes that forget what they hold of them."""

from datetime import datetime

import pytest

from comments.domain import records
from comments.reading.compaction import compactor
from comments.reading.materialized import view_cache
from comments.store import caches
from tests.support.threads import sample_threads


def small_buckets(patch: pytest.MonkeyPatch, rows: int = 4, tail: int = 2) -> None:
    """Have buckets, and a tail, of so few rows that a short thread takes several."""
    patch.setattr(compactor, "BUCKET_ROWS", rows)
    patch.setattr(compactor, "TAIL_ROWS", tail)


def whole(name: records.ThreadName, **at: datetime) -> None:
    """Fold a thread and clear its flags without the grace; fail if there was nothing to fold."""
    folded = compactor.compact(sample_threads.SETTINGS.scheme, name, **at)  # type: ignore[arg-type]
    assert folded is not None
    compactor.clear(folded)


def forget() -> None:
    """Be a process that has just started: it holds nothing of any thread."""
    _held().cache = caches.Cache(view_cache.CACHE_BYTES)


def forget_directory(name: records.ThreadName) -> None:
    """Read a thread's directory anew the next time."""
    _held().cache.drop(("directory", name))


def _held() -> view_cache.Holdings:
    return view_cache.HOLDINGS.get()
