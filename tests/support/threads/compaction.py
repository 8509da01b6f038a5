"""Compact threads immediately, and empty a process's caches."""

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

import pytest

from comments import errors
from comments.domain import records
from comments.domain.ids import sorthash
from comments.reading.compaction import compactor, rebuilding
from comments.reading.materialized import (
    directories,
    merged_view,
    thread_view,
    time_index,
    view_cache,
)
from comments.store.memory import caches
from tests.support.threads import sample_threads

T = TypeVar("T")
_TRIES = 5


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


def rebuild(
    scheme: sorthash.Scheme, name: records.ThreadName, *, now: datetime | None = None
) -> compactor.CompactionResult:
    """Rebuild a thread; `compactor.clear` takes the result."""
    rebuilding.request(name)
    for _ in range(_TRIES):
        done = compactor.compact(scheme, name, now=now)
        if done is not None:
            return done
    raise errors.Overloaded(f"another process is compacting {name.site} {name.id}")


def with_view(name: records.ThreadName, answer: Callable[[merged_view.View], T]) -> T:
    """Compute a result from a view. If the view's buckets have been replaced, use a new view."""
    for _ in range(_TRIES):
        try:
            return answer(thread_view.view(name, 0.0))
        except directories.DirectoryOutdated:
            forget()
    raise errors.Overloaded("the thread is compacted faster than it is read")


def forget() -> None:
    """Empty this process's thread caches, as after a restart."""
    _held().cache = caches.Cache(view_cache.CACHE_BYTES)


def forget_directory(name: records.ThreadName) -> None:
    """Make the next read of a thread fetch the directory again."""
    _held().cache.drop(("directory", name))


def _held() -> view_cache.Holdings:
    return view_cache.HOLDINGS.get()
