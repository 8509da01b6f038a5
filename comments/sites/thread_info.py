"""What a thread shows of itself, with copies in the process: its title and its page's address.

Directories carry them too (`compactor`), so a page of a folded thread does not ask here. Both are
text that the author of an approved comment sent, or that a moderator set (`naming`); an
address is used only if it is on one of the site's own origins. A change ends the copy of the
process that makes it; copies of other processes are up to a minute old. What is sent to somebody
is made from `fresh`. Only threads that exist are kept.
"""

from collections.abc import Sequence

from comments.domain import records
from comments.store import reads
from comments.store.models import comment_rows, conversion
from comments.tree.threads import thread_cache


def get(name: records.ThreadName) -> records.Thread | None:
    """The thread, perhaps a minute old; None where nobody wrote yet."""
    return get_many([name])[0]


def get_many(names: Sequence[records.ThreadName]) -> list[records.Thread | None]:
    """Threads, each perhaps a minute old; None where nobody wrote yet. One call reads them."""
    copies = thread_cache.COPIES.get()
    found = {name: copies.get(name) for name in names}
    missing = [name for name, thread in found.items() if thread is None]
    if missing:
        found.update(zip(missing, _read(missing), strict=True))
    return [found[name] for name in names]


def fresh(name: records.ThreadName) -> records.Thread | None:
    """The thread as it is now; None where nobody wrote yet."""
    return _read([name])[0]


def _read(names: Sequence[records.ThreadName]) -> list[records.Thread | None]:
    drops = thread_cache.COPIES.get().drops
    rows = reads.get_multi([comment_rows.thread_key(name) for name in names])
    found = [None if row is None else conversion.thread_record(row) for row in rows]
    for thread in filter(None, found):
        thread_cache.keep(thread, drops=drops)
    return found


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
