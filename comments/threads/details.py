"""Change a thread's title, address and categories, for moderators and jobs.

Pages of a compacted thread read the title and address from its directory. Each change therefore
flags a comment that readers see. The flag changes the tags of the thread's pages and schedules a
compaction.
"""

from collections.abc import Sequence

from comments.domain import records
from comments.store import ownership, reads
from comments.store.models import comment_rows, schema
from comments.threads import naming
from comments.threads.comment_flags import OWNER, compaction_deadline, raise_revision


def field_writes(
    thread: comment_rows.ThreadRow,
    wanted: naming.Brought,
    *,
    fields: Sequence[str],
    inherits: Sequence[str] = (),
) -> ownership.Writes:
    """Set a thread's fields for a moderator, and reset the fields listed in `inherits`.

    `fields` contains the names of the fields to set to their values in `wanted`. Reset fields get
    their values from the naming comment again.
    """
    more: list[schema.StoredRow] = [thread]
    if naming.is_unknown(thread):
        more += naming.adopt(thread, {})
    own = {field for field in thread.own if field not in inherits}
    thread.own = sorted({*own, *fields})
    shown = _naming_data(thread, more)._replace(
        **{field: getattr(wanted, field) for field in fields}
    )
    if naming.set_fields(thread, shown, {*fields, *inherits}):
        more.append(naming.begin_recategorizing(thread))
    return ownership.Writes(OWNER, put=_unique([*more, *_flag_oldest_listed(thread)]))


def category_writes(thread: comment_rows.ThreadRow, names: Sequence[str]) -> ownership.Writes:
    """Set a thread's categories for a moderator, and start to recategorize its comments."""
    more = naming.adopt(thread, {}) if naming.is_unknown(thread) else ()
    thread.populate(own=sorted({*thread.own, "categories"}), categories=list(names))
    naming.forget(thread)
    return ownership.Writes(
        OWNER, put=_unique([*more, thread, naming.begin_recategorizing(thread)])
    )


def adoption_writes(name: records.ThreadName) -> ownership.Writes:
    """Determine a thread's naming comment if an older release stored the thread without it."""
    thread = reads.get(comment_rows.thread_key(name))
    if thread is None or thread.named_by is not None:
        return ownership.Writes(OWNER)
    before = (thread.title, thread.url)
    more = list(naming.adopt(thread, {}))
    is_same = (thread.title, thread.url) == before
    return ownership.Writes(
        OWNER, put=_unique(more if is_same else [*more, *_flag_oldest_listed(thread)])
    )


def term_writes(name: records.ThreadName) -> ownership.Writes:
    """Store the category terms of a thread from an older release, and start with its comments'.

    A thread may already have terms while its older comments have none.
    """
    thread = reads.get(comment_rows.thread_key(name))
    if thread is None or not thread.categories:
        return ownership.Writes(OWNER)
    return ownership.Writes(OWNER, put=(thread, naming.begin_recategorizing(thread)))


def _naming_data(
    thread: comment_rows.ThreadRow, written: Sequence[schema.StoredRow]
) -> naming.Brought:
    """Return the naming comment's thread data. `written` contains the rows of this commit."""
    if not thread.named_by:
        return naming.Brought()
    key = comment_rows.comment_key(thread.named_by)
    stored = next((entity for entity in written if entity.key == key), None)
    row = stored if isinstance(stored, comment_rows.CommentRow) else reads.get(key)
    return naming.Brought() if row is None else naming.decode(row.brought)


def _flag_oldest_listed(thread: comment_rows.ThreadRow) -> list[comment_rows.CommentRow]:
    """Flag the oldest comment that readers see, if any, for compaction."""
    query = reads.Query(
        "Comment",
        where=(("thread", "=", thread.key.id()), ("listed", "=", True)),
        order=("created", "sort_hash"),
        limit=1,
    )
    ids = [message.key.path[-1].name for message in reads.fetch(query)]
    rows = [
        row for row in reads.get_multi([*map(comment_rows.comment_key, ids)]) if row is not None
    ]
    for row in rows:
        raise_revision(row)
        row.unfolded = True
        row.fold_by = compaction_deadline(row)
    return rows


def _unique(rows: Sequence[schema.StoredRow]) -> tuple[schema.StoredRow, ...]:
    """Keep the last of several copies of an entity. For a comment, keep the first `brought`."""
    unique: dict[schema.RowKey, schema.StoredRow] = {}
    for row in rows:
        known = unique.get(row.key)
        if isinstance(known, comment_rows.CommentRow):
            row.populate(brought=known.brought)
        unique[row.key] = row
    return tuple(unique.values())
