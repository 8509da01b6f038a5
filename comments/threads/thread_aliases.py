"""Give threads other ids, because a page may move to another address.

A thread keeps the id under which it is stored: this id is part of the keys of its comments, votes,
counters, pages and followers, so moving a thread rewrites none of them. An alias is a row of its
own that names the stored thread. `stored_id` translates an id once, where a request, a command or
an import names a thread; everything below knows only stored ids. `Thread.alias` is the id that a
moved thread shows, its canonical id. The stored id and all other aliases continue to work.

    ThreadAlias  key: another id, in the form of a Thread's key; `site`, the other id (`alias`), and
                 the stored thread's key name (`thread`) and id (`thread_id`)

Every change of aliases also counts up `Site.moves`. The number is 0 on sites whose threads have
never moved; there, an id is translated without a read. A process keeps translations for as long as
its copy of the site has the same number, so they are never older than the copy.

An id leads to one thread only: a transaction that adds an alias reads the thread with this id, and
a transaction that adds a thread reads the alias with its id.
"""

from collections.abc import Iterable, Mapping, Sequence

from comments import errors
from comments.domain import records
from comments.store import ownership, reads
from comments.store.memory import caches, per_process
from comments.store.models import comment_rows, schema

OWNER = "thread_aliases"
_BYTES = 4 * 1024 * 1024  # Maximum bytes per process
_OVERHEAD = 300  # Approximate bytes that Python adds to an entry

# The stored ids of threads, by site, number of moves, and id.
COPIES = per_process.PerProcess(lambda: caches.Cache[tuple[str, int, str], str](_BYTES))


def stored_id(site: records.Site, thread: str) -> str:
    """Return the id under which a thread is stored, given any of its ids; `thread` if none is."""
    return stored_ids(site, [thread])[0]


def stored_ids(site: records.Site, threads: Sequence[str]) -> list[str]:
    """Translate several ids, with at most one look-up."""
    if not site.moves:
        return list(threads)
    copies = COPIES.get()
    stored = {thread: copies.get((site.id, site.moves, thread)) for thread in threads}
    missing = [thread for thread, target in stored.items() if target is None]
    if not missing:
        return [stored[thread] or thread for thread in threads]
    rows = reads.get_multi(
        [comment_rows.thread_alias_key(records.ThreadName(site.id, thread)) for thread in missing]
    )
    for thread, row in zip(missing, rows, strict=True):
        target = thread if row is None else row.thread_id
        size = _OVERHEAD + 2 * (len(thread) + len(target))
        copies.keep((site.id, site.moves, thread), target, size)
        stored[thread] = target
    return [stored[thread] or thread for thread in threads]


def check_is_free(name: records.ThreadName, alias: comment_rows.ThreadAliasRow | None) -> None:
    """Check that a new thread may have this id, given the alias with the same id.

    Raises:
        errors.ThreadMoved: the id belongs to a thread that has moved. The caller's copy of the site
            is out of date.
    """
    if alias is not None:
        raise errors.ThreadMoved(name.id, alias.thread_id)


def alias_row(site: str, alias: str, stored: str) -> comment_rows.ThreadAliasRow:
    """Make the row of an alias."""
    target = records.ThreadName(site, stored)
    return comment_rows.ThreadAliasRow(
        key=comment_rows.thread_alias_key(records.ThreadName(site, alias)),
        site=site,
        alias=alias,
        thread=comment_rows.thread_key_name(target),
        thread_id=stored,
    )


def of_site(site_id: str) -> dict[str, list[str]]:
    """Return the aliases of a site's threads, sorted, by the threads' key names."""
    aliases: dict[str, list[str]] = {}
    for message in reads.fetch(reads.Query("ThreadAlias", where=(("site", "=", site_id),))):
        thread = message.properties["thread"].string_value
        aliases.setdefault(thread, []).append(message.properties["alias"].string_value)
    return {thread: sorted(ids) for thread, ids in aliases.items()}


def adoption_writes(
    threads: Mapping[records.ThreadName, Sequence[str]],
) -> tuple[ownership.Writes, ...]:
    """Give new threads of one site the aliases that they had in an export.

    An id that leads to another thread stays with that thread.
    """
    wanted = {alias: name for name, aliases in threads.items() for alias in aliases}
    if not wanted:
        return ()
    site = next(iter(threads)).site
    names = [records.ThreadName(site, alias) for alias in wanted]
    row = reads.get(comment_rows.site_key(site))
    taken = zip(
        reads.get_multi([comment_rows.thread_key(name) for name in names]),
        reads.get_multi([comment_rows.thread_alias_key(name) for name in names]),
        strict=True,
    )
    added = [
        alias_row(site, name.id, wanted[name.id].id)
        for name, others in zip(names, taken, strict=True)
        if others == (None, None)
    ]
    return () if row is None else (change_writes(row, added=added),)


def removal_writes(name: records.ThreadName) -> tuple[ownership.Writes, ...]:
    """Remove the aliases of a thread that the current transaction deletes."""
    thread = comment_rows.thread_key_name(name)
    aliases = reads.names("ThreadAlias", [("thread", "=", thread)])
    site = reads.get(comment_rows.site_key(name.site)) if aliases else None
    if site is None:
        return ()
    keys = [schema.RowKey("ThreadAlias", alias) for alias in aliases]
    return (change_writes(site, removed=keys),)


def change_writes(
    site: comment_rows.SiteRow,
    *,
    added: Iterable[comment_rows.ThreadAliasRow] = (),
    removed: Iterable[schema.RowKey] = (),
) -> ownership.Writes:
    """Add and remove aliases, and count the change in the site's row.

    The caller's transaction has read `site`, and has checked that no other thread has these ids.
    """
    site.moves = (site.moves or 0) + 1
    return ownership.Writes(OWNER, put=(site, *added), delete=tuple(removed))
