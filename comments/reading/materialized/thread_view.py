"""The materialised thread as a view: directory, buckets and the rows beside them.

A view costs one read for the directory and one for each bucket it needs, both kept in a bounded
cache (`view_cache`), and a *probe*: a projection of (key, revision) over the rows that are not
folded, which bills one read; if it finds none, that is free by one reading of the service's price
(`emulator`'s cost meter). Of those rows, only the ones are read that neither the directory nor this
process holds at that revision. A caller may take a probe of some `age` in seconds; 0 always probes.

What must stay true beside the invariants of `view_cache`, or a reader may see an old row: a view is
made only of rows that stand where the directory holds them, if it holds them. `tree` says in the
row, in the commit that moves it, that it has another hash than before.

Nothing is written here, and nobody's name, mail or vote is kept: entries are what everyone gets.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TypeVar

from comments import errors
from comments.domain import presentation, records
from comments.reading.materialized import (
    buckets,
    deltas,
    directories,
    first_page,
    merged_view,
    view_cache,
)
from comments.reading.materialized.view_cache import HOLDINGS, Kept, Moment, NotMaterialized

T = TypeVar("T")

_TRIES = 3


def tag(name: records.ThreadName) -> str | None:
    """The tag that a view of the thread has now, if a probe is enough to know; else None."""
    try:
        return tag_before_view(name)
    finally:
        forget_probe()


def tag_before_view(name: records.ThreadName, age: float = 0.0) -> str | None:
    """The tag of the thread; where that takes a view, the probe is left to the next view.

    It is that of the last view that this process made, if the probe finds what it found then in the
    same directory. A directory too old to be used, or a change, takes a view. The caller calls
    `forget_probe` at the end of the request: what was probed says nothing of the next one's moment.
    """
    held = HOLDINGS.get()
    kept: Kept | None = held.cache.get(("directory", name))
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


def forget_probe() -> None:
    """Drop what `tag_before_view` or `head` left to the next view, if that did not take it."""
    HOLDINGS.get().forget_probe()


def head_or_view(
    name: records.ThreadName, limit: int, age: float = 0.0
) -> first_page.Head | merged_view.View:
    """The thread's head, if it is the first page of this length now; else a view.

    Raises:
        NotMaterialized: ask the ordered query instead.
    """
    try:
        return head(name, limit, age) or view(name, age)
    finally:
        forget_probe()


def head(name: records.ThreadName, limit: int, age: float = 0.0) -> first_page.Head | None:
    """The head of the thread's directory, if it is the first page of this length now; else None.

    It is while no row has changed that the directory does not hold. What was probed to know that
    is for the `view` that is taken instead, at once: see `tag_before_view`.

    Raises:
        NotMaterialized: ask the ordered query instead.
    """
    held = HOLDINGS.get()
    kept = held.directory(name)
    found = kept.head
    if found is None or not found.holds(limit):
        return None
    probed = held.probe(name, kept, age)
    if probed or held.clock() - kept.since >= view_cache.CACHE_MAX_AGE:
        held.hand_on(name, kept, probed)
        return None
    moment = Moment(kept.directory.version, {}, found.tag)
    held.cache.keep(("moment", name), moment, view_cache.OVERHEAD)
    return found


def view(name: records.ThreadName, age: float = 0.0) -> merged_view.View:
    """The thread as it is now, or was at most `age` seconds ago.

    Raises:
        NotMaterialized: ask the ordered query instead.
    """
    held = HOLDINGS.get()
    for _ in range(_TRIES):
        kept = held.directory(name)
        if not kept.directory.version:
            # Also where an older release stored the rows: the probe does not find those.
            raise NotMaterialized("the thread was never folded")
        rows = held.unfolded(name, kept, age)
        if any(row.moved for row in rows.values()):
            # Which bucket holds such a row, and where, the next folding puts right.
            raise NotMaterialized("comments have other places than in the buckets")
        if held.clock() - kept.since < view_cache.CACHE_MAX_AGE:
            content = kept.directory.content
            made = merged_view.View(
                kept.directory,
                deltas.merged(kept.directory, rows.values()) if rows else content.tail,
                lambda keys: held.load_buckets(name, keys),
                changed=deltas.changed(content, rows.values()) if rows else content.changed,
            )
            probed = {each: row.entry.revision for each, row in rows.items()}
            moment = Moment(kept.directory.version, probed, made.tag)
            size = view_cache.OVERHEAD * (1 + len(probed))
            held.cache.keep(("moment", name), moment, size)
            return made
        held.forget(name)
    raise errors.Overloaded("the thread took longer to read than it may be kept")


def using(
    name: records.ThreadName, answer: Callable[[merged_view.View], T], *, age: float = 0.0
) -> T:
    """Answer from a view, and once more from a fresh one if its buckets were replaced meanwhile.

    Raises:
        NotMaterialized: ask the ordered query instead.
    """
    for _ in range(_TRIES):
        try:
            return answer(view(name, age))
        except directories.Gone:
            HOLDINGS.get().forget(name)
    raise errors.Overloaded("the thread is folded faster than it is read")


def from_rows(rows: Iterable[records.Comment], *, changed: datetime | None) -> merged_view.View:
    """A view of listed rows that were read otherwise. `changed`: the thread's newest change."""
    marks = [
        buckets.Mark(row.sort_hash, row.id, row.revision, presentation.fragment(row), held=False)
        for row in rows
    ]
    return merged_view.View(buckets.Directory(""), marks, lambda _keys: (), changed=changed)
