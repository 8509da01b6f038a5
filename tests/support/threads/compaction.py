"""Compact threads immediately, and empty a process's caches."""

from datetime import datetime

import pytest

from comments.domain import records
from comments.reading.compaction import compactor
from comments.reading.materialized import time_index, view_cache
from comments.store.memory import caches
from tests.support.threads import sample_threads


def small_buckets(patch: pytest.MonkeyPatch, rows: int = 4, tail: int = 2) -> None:
    """Limit buckets, tails and time chunks to a few rows, so that short threads have several."""
    patch.setattr(compactor, "BUCKET_ROWS", rows)
    patch.setattr(compactor, "TAIL_ROWS", tail)
    patch.setattr(time_index, "LEAST_ROWS", rows)
    patch.setattr(time_index, "CHUNK_ROWS", 2)
    patch.setattr(time_index, "MOST_LATE", 2)


def whole(name: records.ThreadName, **at: datetime) -> None:
    """Compact a thread and clear its flags without a grace period; fail if there is no delta."""
    folded = compactor.compact(sample_threads.SETTINGS.scheme, name, **at)  # type: ignore[arg-type]
    assert folded is not None
    compactor.clear(folded)


def forget() -> None:
    """Empty this process's thread caches, as after a restart."""
    _held().cache = caches.Cache(view_cache.CACHE_BYTES)


def forget_directory(name: records.ThreadName) -> None:
    """Make the next read of a thread fetch the directory again."""
    _held().cache.drop(("directory", name))


def _held() -> view_cache.Holdings:
    return view_cache.HOLDINGS.get()
