"""Make views of materialized threads from the directory, the buckets and the changed rows.

A view costs one read for the directory and one read for each necessary bucket. A bounded cache
keeps directories and buckets (`view_cache`). A view also needs a *probe*: a projection query for
the keys and revisions of the flagged rows. A probe costs one read. By one interpretation of
Datastore's prices, a probe without results is free (see the emulator's cost meter). The rows that a
probe finds are read only if neither the directory nor this process has these rows at the revisions
found. Callers may accept a probe that is at most `age` seconds old. If `age` is 0, a new probe is
always sent.

If a row is in both the view and the directory, it has the same hash in both. When a commit in
`tree` gives a row a new hash, it also sets the row's `moved` flag, and no view is made of a thread
with a moved row. The caches contain no private data, only data that all readers get. The `moved`
flag and the rules of `view_cache` together prevent readers from seeing outdated rows.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeVar

from comments import errors
from comments.domain import presentation, records
from comments.reading.materialized import (
    buckets,
    deltas,
    first_page,
    merged_view,
    view_cache,
)
from comments.reading.materialized.view_cache import (
    HOLDINGS,
    KeptDirectory,
    Moment,
    NotMaterialized,
)
from comments.threads import thread_terms

T = TypeVar("T")

_TRIES = 3


def tag(name: records.ThreadName) -> str | None:
    """Return the tag of the thread's current view, or None if a probe cannot determine it."""
    try:
        return tag_before_view(name)
    finally:
        forget_probe()


def tag_before_view(name: records.ThreadName, age: float = 0.0) -> str | None:
    """Return the thread's tag, or None if it is unknown.

    If the tag is unknown, the probe is kept for the next view.

    The tag is known if this process's last view used the same directory and its probe found the
    same rows. If a row has changed or the directory is too old, a new view is needed. The caller
    must call `forget_probe` at the end of the request, because the next request must not use this
    probe.
    """
    held = HOLDINGS.get()
    kept: KeptDirectory | None = held.cache.get(("directory", name))
    moment: Moment | None = held.cache.get(("moment", name))
    if kept is None or moment is None or kept.directory.version != moment.version:
        return None
    try:
        probed = held.probe(name, kept, age)
    except NotMaterialized:
        return None
    if probed != moment.probed or held.clock() - kept.since >= view_cache.CACHE_MAX_AGE:
        held.hand_on(name, kept, probed)
        return None
    return moment.tag


def terms(name: records.ThreadName) -> records.ThreadTerms:
    """Return the thread's terms, at most a minute old.

    If the thread has ever been compacted, this function needs no reads beyond those of a view.
    """
    return thread_terms.get(name, HOLDINGS.get().directory(name).terms)


def forget_probe() -> None:
    """Drop the probe that `tag_before_view` or `current_first_page` kept, if no view used it."""
    HOLDINGS.get().forget_probe()


def first_page_or_view(
    name: records.ThreadName, limit: int, age: float = 0.0
) -> first_page.FirstPage | merged_view.View:
    """Return the thread's head if it is current and long enough, otherwise a view.

    Raises:
        NotMaterialized: the caller must use the ordered query.
    """
    try:
        return current_first_page(name, limit, age) or view(name, age)
    finally:
        forget_probe()


def current_first_page(
    name: records.ThreadName, limit: int, age: float = 0.0
) -> first_page.FirstPage | None:
    """Return the directory's head if it is current and has enough rows for `limit`, otherwise None.

    The head is current if no row has changed since the directory was written. If the head is
    outdated, the probe is kept for the `view` that the caller makes next (see `tag_before_view`).

    Raises:
        NotMaterialized: the caller must use the ordered query.
    """
    held = HOLDINGS.get()
    kept = held.directory(name)
    page = kept.page
    if page is None or not page.has_enough(limit):
        return None
    probed = held.probe(name, kept, age)
    if probed or held.clock() - kept.since >= view_cache.CACHE_MAX_AGE:
        held.hand_on(name, kept, probed)
        return None
    moment = Moment(kept.directory.version, {}, page.tag)
    held.cache.keep(("moment", name), moment, view_cache.OVERHEAD)
    return page


def view(name: records.ThreadName, age: float = 0.0) -> merged_view.View:
    """Make a view of the thread that is at most `age` seconds old.

    Raises:
        NotMaterialized: the caller must use the ordered query.
        errors.Overloaded: reading the thread took longer than a directory may be used.
    """
    held = HOLDINGS.get()
    for _ in range(_TRIES):
        kept = held.directory(name)
        if not kept.directory.version:
            # Rows stored by older releases have no flag, so a probe would not find them.
            raise NotMaterialized("the thread was never compacted")
        rows = held.changed_rows(name, kept, age)
        shape = kept.directory.content.shape if rows else 0
        if any(row.moved or row.shape != shape for row in rows.values()):
            # The bucket that contains a moved row is unknown. The next compaction rebuilds all
            # buckets.
            raise NotMaterialized("buckets are stale: some comments have moved")
        if held.clock() - kept.since < view_cache.CACHE_MAX_AGE:
            content = kept.directory.content
            made = merged_view.View(
                kept.directory,
                deltas.merge(kept.directory, rows.values()) if rows else content.tail,
                lambda keys: held.load_buckets(name, keys),
                changed=deltas.newest_change(content, rows.values()) if rows else content.changed,
                shifts=tuple(deltas.shifts(kept.directory, rows.values())),
            )
            probed = {comment_id: row.entry.revision for comment_id, row in rows.items()}
            moment = Moment(kept.directory.version, probed, made.tag)
            size = view_cache.OVERHEAD * (1 + len(probed))
            held.cache.keep(("moment", name), moment, size)
            return made
        held.forget(name)
    raise errors.Overloaded("reading the thread took longer than its view may be cached")


def from_rows(
    rows: Sequence[records.Comment], *, changed: datetime | None, scheme: str = ""
) -> merged_view.View:
    """Make a view of the given listed rows. `changed` is the time of the thread's newest change.

    `scheme` is the stored form of the scheme that the rows' hashes use.
    """
    marks = [
        buckets.ChangedEntry(
            row.sort_hash, row.id, row.revision, presentation.fragment(row), held=False
        )
        for row in rows
    ]
    content = buckets.DirectoryContent(shape=rows[0].shape if rows else 0, scheme=scheme)
    return merged_view.View(
        buckets.Directory("", content), marks, lambda _keys: (), changed=changed
    )
