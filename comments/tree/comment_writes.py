"""What the verbs share: rows as they are made, placed and marked, and what a change writes."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from comments import errors
from comments.domain import counting, records, sorthash
from comments.domain.counting import Change as Counted
from comments.domain.records import Status
from comments.events import backlog, outbox
from comments.store import ownership, reads
from comments.store.models import comment_rows, conversion
from comments.tree.counters import in_transaction
from comments.tree.threads import naming
from comments.tree.values import Change, Draft

OWNER = "tree"
_AT_ONCE = datetime(1970, 1, 1, tzinfo=UTC)  # over by any clock, however wrong those were


def new_thread(name: records.ThreadName, now: datetime) -> comment_rows.Thread:
    """A thread nobody has written in."""
    return comment_rows.Thread(
        key=comment_rows.thread_key(name),
        site=name.site,
        thread=name.id,
        named_by="",
        created=now,
    )


def new_row(
    draft: Draft,
    *,
    reply_to: str | None,
    ruling: records.Ruling,
    source: str | None = None,
) -> comment_rows.Comment:
    """The row of a comment that has no place yet."""
    status = ruling.status
    row = comment_rows.Comment(
        key=comment_rows.comment_key(draft.id),
        site=draft.name.site,
        thread=comment_rows.thread_key_name(draft.name),
        thread_id=draft.name.id,
        reply_to=reply_to,
        author_name=draft.author.name,
        author_website=draft.author.website,
        author_email=draft.author.email,
        author_id=draft.author.id,
        by_staff=draft.author.is_staff,
        body=draft.text.body,
        html=draft.text.html,
        renderer=draft.text.renderer,
        status=status.value,
        listed=status is Status.APPROVED,
        # What readers never saw and do not see is nothing to fold.
        unfolded=status is Status.APPROVED,
        created=draft.created,
        changed=draft.created if status is Status.APPROVED else None,
        fingerprint=draft.fingerprint,
        origin=draft.origin or None,
        came_from=draft.came_from,
        source=source,
        brought=naming.encode(naming.Brought(draft.title, draft.url, draft.categories)),
        rule=ruling.rule,
        why=ruling.why,
        # What an import brought was decided elsewhere.
        judged=draft.created if ruling.rule else None,
    )
    if row.unfolded:
        # Nobody writes beside an import, so nothing more is worth waiting for.
        row.fold_by = in_time(draft.created) if source is None else at_once(row)
    return row


def place(
    scheme: sorthash.Scheme,
    row: comment_rows.Comment,
    parent: comment_rows.Comment | None,
    thread: comment_rows.Thread,
) -> None:
    """Take the next number of `parent`, or of the thread, and write the row's place from it."""
    if parent is None:
        # Roots count from 0, so the number is the counter before it grows.
        row.number = thread.child_count
        thread.child_count += 1
    else:
        parent.child_count += 1
        row.number = parent.child_count
    above = "" if parent is None else parent.sort_hash
    try:
        row.sort_hash = sorthash.child(scheme, above, row.number)
    except sorthash.BadSortHash as error:
        raise errors.Conflict("no more replies fit here", code="parent-full") from error
    row.parent = None if parent is None else parent.key.id()
    row.level = 0 if parent is None else parent.level + 1
    row.slug = sorthash.slug(scheme, row.sort_hash)
    row.populate(categories=list(thread.categories))


def existing(comment_id: str) -> comment_rows.Comment:
    """The row of a comment.

    Raises:
        errors.NotFound: there is no such comment.
    """
    row = reads.get(comment_rows.comment_key(comment_id)) if comment_id else None
    if row is None:
        raise errors.NotFound("comment", comment_id)
    found: comment_rows.Comment = row
    return found


def parent_row(row: comment_rows.Comment) -> comment_rows.Comment | None:
    """The row above one, None for a root.

    Raises:
        errors.Conflict: it is not there; `repair` mends such a thread.
    """
    parent_id = conversion.parent_id(row)
    if parent_id is None:
        return None
    parent = reads.get(comment_rows.comment_key(parent_id))
    if parent is None:
        raise errors.Conflict("the thread is damaged here: run repair", code="thread-damaged")
    found: comment_rows.Comment = parent
    return found


def touch(row: comment_rows.Comment, *, was_listed: bool) -> None:
    """Mark a change readers can see. `was_listed`: they saw the row before it."""
    row.revision += 1
    row.text_revision = None  # this one
    # What readers neither saw nor see is nothing to fold: ten thousand held comments cost nobody.
    row.unfolded = row.unfolded or row.listed or row.shelved
    # A bucket may hold what this change took away.
    row.rewrites = row.unfolded
    row.fold_by = at_once(row)
    if was_listed or row.listed:
        row.changed = changed_at(row)


def in_time(now: datetime) -> datetime:
    """By when a row is to be folded that changes now, where that takes nothing away."""
    return now + timedelta(seconds=backlog.FOLD_AFTER)


def at_once(row: comment_rows.Comment) -> datetime | None:
    """By when a row that cannot wait is to be folded: a moment that is over. None if it is."""
    return _AT_ONCE if row.unfolded else None


def changed_at(row: comment_rows.Comment) -> datetime | None:
    """When readers last got to see another state of the row. Never back, whose clock it may be."""
    written: tuple[datetime | None, ...] = (row.changed, row.created, row.edited)
    return records.newest(written)


def changed_rows(
    kind: outbox.Kind,
    changed: Sequence[tuple[counting.State, comment_rows.Comment]],
    *,
    now: datetime,
    detail: str = "",
) -> Change:
    """The change of the first row and of those that changed with it, each with its state before.

    `detail` is what its event says beside that.
    """
    row = changed[0][1]
    name = records.ThreadName(row.site, row.thread_id)
    # First: a comment that names its thread is counted under the categories that it brings.
    named = naming.follow(name, changed)
    counted = [Counted(before, conversion.comment_state(after)) for before, after in changed]
    event = outbox.event_id(row.key.id(), row.revision)
    writes = (
        ownership.Writes(OWNER, put=(*(after for _, after in changed), *named)),
        in_transaction.entered(name, counted),
        outbox.tell(kind, event, counted, now=now, detail=detail),
    )
    return Change(conversion.comment_record(row), writes, event)
