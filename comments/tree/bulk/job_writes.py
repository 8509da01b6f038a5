"""Build background jobs' writes to comments: compaction flags, repaired places, categories."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from comments.domain import records
from comments.domain.counters.counting import CountedChange as Counted
from comments.events import outbox
from comments.store import ownership, reads
from comments.store.models import comment_rows, conversion, schema
from comments.threads import thread_terms
from comments.threads.comment_flags import (
    OWNER,
    change_time,
    compaction_deadline,
    flag_as_moved,
    raise_revision,
    touch,
    touch_around_text,
)
from comments.tree.counters import in_transaction
from comments.tree.values import Recategorized, RenderedText, TreePlace


def compaction_writes(seen: Mapping[str, tuple[int, bool]]) -> ownership.Writes:
    """For `compactor`, clear the flags of comments that a directory contains.

    `seen` maps each id to the revision in the directory and whether the directory lists the
    comment. A comment that has changed since that revision keeps its flag.
    """
    rows = reads.get_multi([comment_rows.comment_key(comment_id) for comment_id in seen])
    cleared = []
    for row, (revision, is_listed) in zip(rows, seen.values(), strict=True):
        if row is None or row.revision != revision or not row.unfolded:
            continue
        row.unfolded = row.rewrites = row.moved = False
        row.fold_by = None
        row.shelved = is_listed
        cleared.append(row)
    return ownership.Writes(OWNER, put=tuple(cleared))


def missing_flag_writes(ids: Sequence[str]) -> ownership.Writes:
    """Flag listed comments that have no flag, for example because an older release stored them."""
    rows = reads.get_multi([comment_rows.comment_key(comment_id) for comment_id in ids])
    unknown = [row for row in rows if row is not None and row.listed and not row.unfolded]
    for row in unknown:
        row.unfolded, row.changed = True, change_time(row)
        row.fold_by = compaction_deadline(row)
    return ownership.Writes(OWNER, put=tuple(unknown))


def rebuild_request_writes(ids: Sequence[str]) -> ownership.Writes:
    """Flag one of these comments, so that readers use the ordered query until the next compaction.

    The text of the comment and the revision of this text stay the same.
    """
    rows = reads.get_multi([comment_rows.comment_key(comment_id) for comment_id in ids])
    # A row that another program has written may lack a required value.
    row = next((row for row in rows if row is not None and row.created is not None), None)
    if row is None:
        return ownership.Writes(OWNER)
    return ownership.Writes(OWNER, put=(flag_as_moved(row),))


def revision_writes(ids: Sequence[str]) -> ownership.Writes:
    """Raise the revisions of comments, so that processes stop using copies that they have read."""
    stored = reads.get_multi([comment_rows.comment_key(comment_id) for comment_id in ids])
    rows = [row for row in stored if row is not None and row.created is not None]
    for row in rows:
        raise_revision(row)
    return ownership.Writes(OWNER, put=tuple(rows))


def address_erasure_writes(ids: Sequence[str]) -> ownership.Writes:
    """Erase comments' addresses and network marks, and fingerprints that could confirm an address.

    Readers see no change, so the revision stays the same. If a post whose fingerprint was erased is
    retried with the same idempotency key, the retry is refused as a reused key.
    """
    rows = reads.get_multi([comment_rows.comment_key(comment_id) for comment_id in ids])
    known = [row for row in rows if row is not None and (row.author_email or row.came_from)]
    for row in known:
        if row.author_email:
            row.author_email, row.fingerprint = "", b""
        row.origin, row.came_from = None, ""
    return ownership.Writes(OWNER, put=tuple(known))


def rerendering_writes(comment_id: str, text: RenderedText, *, now: datetime) -> ownership.Writes:
    """Replace the HTML of a comment, unless its body has changed since the HTML was made."""
    row = reads.get(comment_rows.comment_key(comment_id))
    if row is None or row.body != text.body or row.renderer == text.renderer:
        return ownership.Writes(OWNER)
    row.html, row.renderer = text.html, text.renderer
    touch_around_text(row, now=now)
    return ownership.Writes(OWNER, put=(row,))


def repair_writes(
    name: records.ThreadName, places: Sequence[TreePlace]
) -> tuple[ownership.Writes, ...]:
    """For `repair`, write rebuilt places, counters and texts, and flag the rows for compaction.

    Skip rows that have changed since they were read.
    """
    rows = reads.get_multi([comment_rows.comment_key(place.id) for place in places])
    mended: list[schema.StoredRow] = []
    counted: list[Counted] = []
    for row, place in zip(rows, places, strict=True):
        if row is None or row.revision != place.was_at:
            continue
        if row.thread != comment_rows.thread_key_name(name):
            continue
        before = conversion.comment_state(row)
        # Buckets may contain the row at its previous sort hash, or at the sort hash from before the
        # damage.
        row.moved = row.moved or (row.sort_hash, row.shape) != (place.sort_hash, place.shape)
        was_listed = row.listed
        row.parent, row.number, row.level = place.parent, place.number, place.level
        row.sort_hash, row.slug, row.shape = place.sort_hash, place.slug, place.shape
        row.status, row.listed = place.status, place.listed
        row.score = row.up - row.down
        if place.text is not None:
            row.html, row.renderer = place.text.html, place.text.renderer
        # Numbers are never reused, so a counter is only ever raised.
        row.child_count = max(row.child_count, place.child_count)
        touch(row, was_listed=was_listed)
        mended.append(row)
        counted.append(Counted(before, conversion.comment_state(row)))
    return (
        ownership.Writes(OWNER, put=tuple(mended)),
        in_transaction.counter_writes(name, counted),
    )


def thread_repair_writes(
    name: records.ThreadName, child_count: int, pins: Sequence[str]
) -> tuple[ownership.Writes, ...]:
    """For `repair`, raise the thread's root counter to at least `child_count`, and add pins.

    The directory's copy of the thread's terms becomes equal to the thread's own terms.
    """
    thread = reads.get(comment_rows.thread_key(name))
    if thread is None:
        return ()
    copy = thread_terms.copy_writes(thread)
    missing = [comment_id for comment_id in pins if comment_id not in thread.pins]
    if thread.child_count >= child_count and not missing:
        return (copy,)
    thread.child_count = max(thread.child_count, child_count)
    thread.pins = [*thread.pins, *missing]
    return (ownership.Writes(OWNER, put=(thread,)), copy)


def recategorize(name: records.ThreadName, ids: Sequence[str], *, now: datetime) -> Recategorized:
    """For the job `recategorize`, count comments under their thread's current categories.

    Readers see no change, so the revision stays the same and no compaction is needed. Comments
    of an older release are stored again, with the terms that find their categories.
    """
    thread, *rows = reads.get_multi(
        [
            comment_rows.thread_key(name),
            *(comment_rows.comment_key(comment_id) for comment_id in ids),
        ]
    )
    changed: list[comment_rows.CommentRow] = []
    without_terms: list[comment_rows.CommentRow] = []
    counted: list[Counted] = []
    for row in rows:
        is_here = row is not None and row.thread == thread.key.id()
        if not is_here:
            continue
        if row.categories == thread.categories:
            without_terms += [row] if row.categories and not row.category_terms else []
            continue
        before = conversion.comment_state(row)
        row.categories = list(thread.categories)
        changed.append(row)
        counted.append(Counted(before, conversion.comment_state(row)))
    if not changed:
        again = ownership.Writes(OWNER, put=tuple(without_terms))
        return Recategorized((again,) if without_terms else (), 0)
    events = {
        outbox.filing_id(changed[part.start].key.id(), thread.filed): counted[part]
        for part in outbox.parts(counted)
    }
    writes = (
        ownership.Writes(OWNER, put=(*changed, *without_terms)),
        *(outbox.event_writes(outbox.EventKind.FILED, *event, now=now) for event in events.items()),
    )
    return Recategorized(writes, len(changed), tuple(events))
