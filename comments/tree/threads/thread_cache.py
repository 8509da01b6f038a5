"""This process's copies of threads.

`thread_info` reads them; `naming` drops the copy of a thread that it changes. If this process
changes a thread, it keeps no copy that was read before the change (`drops`, see `caches`).
"""

from comments.domain import records
from comments.store import caches, per_process

TERM = 60.0  # seconds that a copy is used
_BYTES = 1024 * 1024  # in one process
_OVERHEAD = 500  # bytes of Python around a copy, roughly

COPIES = per_process.PerProcess(
    lambda: caches.Cache[records.ThreadName, records.Thread](_BYTES, TERM)
)


def keep(thread: records.Thread, *, drops: int) -> None:
    """Keep a thread. `drops` is the cache's `drops` from before the thread was read."""
    size = _OVERHEAD + 4 * (len(thread.name.id) + len(thread.title) + len(thread.url))
    COPIES.get().keep(thread.name, thread, size, drops=drops)
