"""Move a category with everything below it: give it another name or another category above it.

The site's list of categories changes first, so that new posts cannot file threads under the old
name; other processes notice within seconds. Then each thread gets its new categories in the same
way as from a moderator (`thread_overrides`). A thread that has moved no longer has a term for the
old name. The index of terms therefore contains exactly the remaining threads, and a repetition of
an interrupted move finishes it.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import NamedTuple

from comments import errors
from comments.domain import categories, records
from comments.moderation.policy import thread_overrides
from comments.sites import site_settings
from comments.store import reads
from comments.store.models import comment_rows, conversion


class MovedCategory(NamedTuple):
    """The numbers of threads and of comments that moved."""

    threads: int
    comments: int


def move(
    site: records.Site, old: str, new: str, actor: records.Actor, *, now: datetime, reason: str = ""
) -> MovedCategory:
    """Move the category `old` and everything below it to `new`, which may exist already.

    Raises:
        errors.BadInput: a name is invalid, `new` is `old` or below it, or a category would have too
            many parts. Nothing was stored.
        errors.Overloaded: the store is busy; a repetition continues the move.
    """
    old, new = _canonical("old", old), _canonical("new", new)
    if old in categories.lineage(new):
        raise errors.BadInput("new", "below-itself", value=old)
    listed = _new_names(site.categories, old, new)
    for thread in _threads(site.id, old):
        _new_names(thread.categories, old, new)
    if listed != site.categories:
        site_settings.change(site.id, filed=listed)
    threads = comments = 0
    is_done = False
    while not is_done:
        is_done = True
        for thread in _threads(site.id, old):
            wanted = thread_overrides.NewDetails(categories=_new_names(thread.categories, old, new))
            change = thread_overrides.change_details(
                site, thread.name.id, wanted, actor, now=now, reason=reason
            )
            threads, comments, is_done = threads + 1, comments + change.moved, False
    return MovedCategory(threads, comments)


def _new_names(names: Iterable[str], old: str, new: str) -> tuple[str, ...]:
    moved = (new + name[len(old) :] if old in categories.lineage(name) else name for name in names)
    return categories.canonical_set(moved, categories.MOST_OF_SITE)


def _threads(site: str, category: str) -> Iterator[records.Thread]:
    """Yield the threads in a category now, each as it is stored when its turn comes."""
    where = (("site", "=", site), ("category_terms", "=", category))
    for message in reads.fetch(reads.Query("Thread", where=where, keys_only=True)):
        row = reads.get(comment_rows.thread_key_of(message.key.path[-1].name))
        if row is not None and category in row.category_terms:
            yield conversion.thread_record(row)


def _canonical(field: str, name: str) -> str:
    try:
        return categories.canonical(name)
    except errors.BadInput as error:
        raise error.about(field) from error
