"""Compact threads immediately, and empty a process's caches."""

from datetime import datetime

import pytest

from comments.domain import records
from comments.reading.compaction import compactor
from comments.reading.materialized import view_cache
from comments.store.memory import caches
from tests.support.threads import sample_threads


def small_buckets(patch: pytest.MonkeyPatch, rows: int = 4, tail: int = 2) -> None:
    """Limit buckets and tails to a few rows, so that even a short thread needs several buckets."""
    patch.setattr(compactor, "BUCKET_ROWS", rows)
    patch.setattr(compactor, "TAIL_ROWS", tail)


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
