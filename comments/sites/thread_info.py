"""Thread titles and page addresses, with copies in the process.

Directories contain titles and addresses too (`compactor`), so a page of a compacted thread does not
use this module. Both were sent by the author of an approved comment or set by a moderator
(`naming`); an address is used only if it is on one of the site's own origins. A change drops the
copy of the process that makes it; other processes' copies are up to a minute old. Mail is made from
`fresh`. Only threads that exist are kept.
"""

from collections.abc import Sequence

from comments.domain import records
from comments.store import reads
from comments.store.models import comment_rows, conversion
from comments.tree.threads import thread_cache


def get(name: records.ThreadName) -> records.Thread | None:
    """Return the thread, up to a minute old; None if it has no comments yet."""
    return get_many([name])[0]


def get_many(names: Sequence[records.ThreadName]) -> list[records.Thread | None]:
    """Return threads, each up to a minute old; None for threads without comments. One call."""
    copies = thread_cache.COPIES.get()
    found = {name: copies.get(name) for name in names}
    missing = [name for name, thread in found.items() if thread is None]
    if missing:
        found.update(zip(missing, _read(missing), strict=True))
    return [found[name] for name in names]


def fresh(name: records.ThreadName) -> records.Thread | None:
    """Return the thread as it is now; None if it has no comments yet."""
    return _read([name])[0]


def _read(names: Sequence[records.ThreadName]) -> list[records.Thread | None]:
    drops = thread_cache.COPIES.get().drops
    rows = reads.get_multi([comment_rows.thread_key(name) for name in names])
    found = [None if row is None else conversion.thread_record(row) for row in rows]
    for thread in filter(None, found):
        thread_cache.keep(thread, drops=drops)
    return found


def address(url: str, site: records.Site) -> str:
    """Return a thread's page address without its fragment; empty unless it is on the site.

    An address from before the site had HTTPS, as exports often contain, is mapped to the HTTPS
    origin. The address must continue after the origin with a character that ends a host name, so
    that no parser, whether a browser's or another, can read a different host from it.
    """
    url = url.partition("#")[0]
    for origin in site.origins:
        for known in (origin, origin.replace("https://", "http://", 1)):
            if url == known or url.startswith((f"{known}/", f"{known}?")):
                return origin + url.removeprefix(known)
    return ""
