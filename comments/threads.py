"""What a thread says of itself, with copies in the process: its title and its page's address.

Directories carry them too (`folding`), so that a page of a folded thread need not ask here. Both
came with its first comment, from whoever wrote that one: text for readers, and an address
that is worth no more than the site's own origins make it. A thread never changes them, so a copy
is only as old as `_TERM` because an operator may. Only threads that exist are kept.
"""

import dataclasses
import time
from collections.abc import Sequence

from comments import caching, datastore, models, records

_TERM = 60.0  # seconds
_BYTES = 1024 * 1024  # of one process
_OVERHEAD = 500  # bytes of Python around a copy, roughly


@dataclasses.dataclass(frozen=True, slots=True)
class _Copy:
    thread: records.Thread
    loaded: float


def get(name: records.ThreadName) -> records.Thread | None:
    """The thread, perhaps a minute old; None where nobody wrote yet."""
    return get_many([name])[0]


def get_many(names: Sequence[records.ThreadName]) -> list[records.Thread | None]:
    """Threads, each perhaps a minute old; None where nobody wrote yet. One call reads them."""
    copies = datastore.kept("threads", lambda: caching.Cache(_BYTES))
    found: dict[records.ThreadName, records.Thread | None] = {}
    for name in names:
        copy: _Copy | None = copies.get(name)
        is_young = copy is not None and time.monotonic() - copy.loaded <= _TERM
        found[name] = copy.thread if copy is not None and is_young else None
    missing = [name for name, thread in found.items() if thread is None]
    if missing:
        rows = datastore.get_multi([models.thread_key(name) for name in missing])
        for name, row in zip(missing, rows, strict=True):
            found[name] = None if row is None else _keep(copies, name, row)
    return [found[name] for name in names]


def _keep(copies: caching.Cache, name: records.ThreadName, row: models.Thread) -> records.Thread:
    thread = models.thread_record(row)
    size = _OVERHEAD + 4 * (len(name.id) + len(thread.title) + len(thread.url))
    copies.keep(name, _Copy(thread, time.monotonic()), size)
    return thread


def address(url: str, site: records.Site) -> str:
    """Where a thread's page is, without a fragment; empty unless that is on the site itself.

    An address from before the site had HTTPS, as exports are full of, is the one it has now.
    An origin with what ends a host behind it cannot be read as another host by anyone, which a
    parser that differs from the browser's could not promise.
    """
    url = url.partition("#")[0]
    for origin in site.origins:
        for known in (origin, origin.replace("https://", "http://", 1)):
            if url == known or url.startswith((f"{known}/", f"{known}?")):
                return origin + url.removeprefix(known)
    return ""
