"""Look up thread titles and page addresses, and keep copies of them in the process.

Directories contain titles and addresses too (`compactor`), so building a page of a compacted thread
does not use this module. Titles and addresses were sent by the author of an approved comment or set
by a moderator (`naming`). An address is used only if it is on one of the site's own origins. A
process that changes a thread drops its copy of the thread. Copies in other processes are up to a
minute old. Mail uses `fresh`. Only existing threads are kept as copies.
"""

from collections.abc import Sequence

from comments.domain import records
from comments.domain.text.addresses import percent_encoding
from comments.store import reads
from comments.store.models import comment_rows, conversion
from comments.threads import thread_cache


def get(name: records.ThreadName) -> records.Thread | None:
    """Return the thread as of at most a minute ago, or None if it has no comments yet."""
    return get_many([name])[0]


def get_many(names: Sequence[records.ThreadName]) -> list[records.Thread | None]:
    """Return several threads with one call.

    Each thread is up to a minute old, or None if it has no comments yet.
    """
    copies = thread_cache.COPIES.get()
    threads = {name: copies.get(name) for name in names}
    missing = [name for name, thread in threads.items() if thread is None]
    if missing:
        threads.update(zip(missing, _stored_threads(missing), strict=True))
    return [threads[name] for name in names]


def fresh(name: records.ThreadName) -> records.Thread | None:
    """Return the thread as it is stored now, or None if it has no comments yet."""
    return _stored_threads([name])[0]


def has_threads(site: str) -> bool:
    """Return whether a site has any thread."""
    return bool(reads.names("Thread", (("site", "=", site),), limit=1))


def _stored_threads(names: Sequence[records.ThreadName]) -> list[records.Thread | None]:
    drops = thread_cache.COPIES.get().drops
    rows = reads.get_multi([comment_rows.thread_key(name) for name in names])
    threads = [None if row is None else conversion.thread_record(row) for row in rows]
    for thread in filter(None, threads):
        thread_cache.keep(thread, drops=drops)
    return threads


def address(url: str, site: records.Site) -> str:
    """Return a thread's page address without its fragment, or "" if the address is not on the site.

    Exports often contain addresses from before the site used HTTPS, which are mapped to the HTTPS
    origin. After the origin, an address must continue with a character that ends a host name, so
    that no parser, in a browser or elsewhere, finds a different host in it. The case of letters in
    the origin makes no difference.
    """
    url = percent_encoding.valid(url.partition("#")[0])
    for origin in site.origins:
        for known in (origin, origin.replace("https://", "http://", 1)):
            rest = url[len(known) :]
            if url[: len(known)].lower() == known and rest[:1] in {"", "/", "?"}:
                return origin + rest
    return ""


def page_address(url: str, thread: str, site: records.Site) -> str:
    """Return the address of a thread's page, even if no comment has named the thread.

    `thread` is the thread's id. If no address on the site is known, the id may be an address
    without its scheme (`thread_ids`).
    """
    known = address(url, site)
    if known:
        return known
    addresses = (
        address(f"{origin.partition('://')[0]}://{www}{thread}", site)
        for www in ("", "www.")[: 1 + site.ignore_www]
        for origin in site.origins
    )
    return next(filter(None, addresses), "")
