"""Keep this process's copies of threads.

`thread_info` reads the copies, and `naming` drops the copy of a thread that it changes. If this
process changes a thread, it does not keep a copy that was read before the change (see `drops` in
`caches`).
"""

from comments.domain import records
from comments.store.memory import caches, per_process

TERM = 60.0  # Seconds for which a copy is used.
_BYTES = 1024 * 1024  # Maximum bytes per process.
_OVERHEAD = 500  # Approximate bytes that Python adds to a copy.

COPIES = per_process.PerProcess(
    lambda: caches.Cache[records.ThreadName, records.Thread](_BYTES, TERM)
)


def keep(thread: records.Thread, *, drops: int) -> None:
    """Keep a copy of a thread. `drops` is the cache's drop count before the thread was read."""
    size = _OVERHEAD + 4 * (len(thread.name.id) + len(thread.title) + len(thread.url))
    COPIES.get().keep(thread.name, thread, size, drops=drops)
