"""What moderators and upkeep do to what a thread shows of itself.

Pages of a folded thread take title and address from its directory, so each verb flags a comment
that readers see: that changes the tags of the thread's pages, and has the thread folded.
"""

from collections.abc import Sequence

from google.cloud import ndb

from comments import datastore, models, records
from comments.tree import naming
from comments.tree.rows import OWNER, at_once


def entitle(
    thread: models.Thread,
    wanted: naming.Brought,
    *,
    fields: Sequence[str],
    inherits: Sequence[str] = (),
) -> datastore.Writes:
    """Set fields of a thread by a moderator; those in `inherits` are again what a comment brought.

    `fields` are the names of those that are set to what is in `wanted`.
    """
    more: list[ndb.Model] = [thread]
    if naming.is_unknown(thread):
        more += naming.adopted(thread, {})
    own = {each for each in thread.own if each not in inherits}
    thread.populate(own=sorted({*own, *fields}))
    shown = _brought(thread, more)._replace(**{each: getattr(wanted, each) for each in fields})
    if naming.is_refiled(thread, shown, {*fields, *inherits}):
        more.append(naming.refiling(thread))
    return datastore.Writes(OWNER, put=_unique([*more, *_shown(thread)]))


def filed(thread: models.Thread, names: Sequence[str]) -> datastore.Writes:
    """Set the categories of a thread by a moderator, and begin the walk through its comments."""
    more = naming.adopted(thread, {}) if naming.is_unknown(thread) else ()
    thread.populate(own=sorted({*thread.own, "categories"}), categories=list(names))
    naming.forget(thread)
    return datastore.Writes(OWNER, put=_unique([*more, thread, naming.refiling(thread)]))


def adopt(name: records.ThreadName) -> datastore.Writes:
    """Find out which comment names a thread that a release stored without saying so."""
    thread = datastore.get(models.thread_key(name))
    if thread is None or thread.named_by is not None:
        return datastore.Writes(OWNER)
    before = (thread.title, thread.url)
    more = list(naming.adopted(thread, {}))
    is_same = (thread.title, thread.url) == before
    return datastore.Writes(OWNER, put=_unique(more if is_same else [*more, *_shown(thread)]))


def _brought(thread: models.Thread, written: Sequence[ndb.Model]) -> naming.Brought:
    """What the comment brought that names a thread; `written` is what this commit puts."""
    if not thread.named_by:
        return naming.Brought()
    key = models.comment_key(thread.named_by)
    found = next((each for each in written if each.key == key), None)
    row = found if isinstance(found, models.Comment) else datastore.get(key)
    return naming.Brought() if row is None else naming.decode(row.brought)


def _shown(thread: models.Thread) -> list[models.Comment]:
    """The oldest comment that readers see, if any, as one that is to be folded."""
    query = datastore.Query(
        "Comment",
        where=(("thread", "=", thread.key.id()), ("listed", "=", True)),
        order=("created", "sort_hash"),
        limit=1,
    )
    ids = [message.key.path[-1].name for message in datastore.fetch(query)]
    rows = [row for row in datastore.get_multi([*map(models.comment_key, ids)]) if row is not None]
    for row in rows:
        text_revision = row.text_revision or row.revision
        row.revision += 1
        row.text_revision = text_revision
        row.unfolded = True
        row.fold_by = at_once(row)
    return rows


def _unique(rows: Sequence[ndb.Model]) -> tuple[ndb.Model, ...]:
    """Each entity once, the last one given; of a comment what the first copy says it brought."""
    found: dict[ndb.Key, ndb.Model] = {}
    for row in rows:
        known = found.get(row.key)
        if isinstance(known, models.Comment):
            row.populate(brought=known.brought)
        found[row.key] = row
    return tuple(found.values())
