"""Place a new comment, or find the place that an earlier run of the same request gave it."""

from collections.abc import Sequence
from datetime import datetime

from comments import errors
from comments.domain import reasons, records, sorthash
from comments.domain.counting import CountedChange as Counted
from comments.domain.records import Status
from comments.events import outbox
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, conversion
from comments.tree.comment_writes import AT_ONCE, IN_TIME, OWNER, parent_row
from comments.tree.counters import in_transaction, sharding
from comments.tree.threads import naming
from comments.tree.values import ChangeResult, Draft

_SHADOW = "shadow"  # the rule of a reply to a shadowed comment; stored as text


def append(
    scheme: sorthash.Scheme, draft: Draft, turn: sharding.TransactionShard = sharding.FIRST
) -> ChangeResult:
    """Place a new comment, or recognize that it has already been placed.

    `scheme` is the scheme of the site in this process's copy. A new thread gets the stored one.
    `turn` chooses the counter shard in which the comment is counted.

    Raises:
        errors.NotFound: the answered comment does not exist, is in a different thread, or is not
            public.
        errors.Conflict: the answered comment was retracted, the thread is closed, or the new
            comment's parent already has the maximum number of children in this scheme.
        errors.KeyReused: a comment with different content already has this id.
        errors.TooMany: the thread received too many posts recently.
    """
    # Look for the comment first only if an earlier run may have been applied. Otherwise, the insert
    # fails if the comment exists, so an ordinary post saves this read.
    if transactions.may_have_run():
        earlier = _earlier(draft)
        if earlier is not None:
            return earlier
    keys = [comment_rows.thread_key(draft.name)]
    if draft.reply_to is not None:
        keys.append(comment_rows.comment_key(draft.reply_to))
    entry = in_transaction.TransactionCounters(draft.name, [draft.author.id], turn)
    thread, *others = reads.get_multi([*keys, *entry.keys])
    answered, counted = others[: len(keys) - 1], others[len(keys) - 1 :]
    entry.fill(thread, counted)
    if thread is None:
        thread = new_thread(draft.name, draft.created, site_scheme(draft.name, scheme))
    try:
        return _placed(conversion.scheme_of(thread, scheme), draft, thread, answered, entry)
    except errors.FlatthreadError:
        earlier = _earlier(draft)
        if earlier is not None:
            return earlier
        raise


def _placed(
    scheme: sorthash.Scheme,
    draft: Draft,
    thread: comment_rows.ThreadRow,
    answered: Sequence[comment_rows.CommentRow | None],
    entry: in_transaction.TransactionCounters,
) -> ChangeResult:
    target = _admitted(draft, thread, answered)
    is_known = draft.author.id in entry.known
    ruling = _below(target, draft.decide(conversion.thread_record(thread), is_known))
    row = new_row(draft, reply_to=draft.reply_to, ruling=ruling)
    parent = _tree_parent(scheme, target)
    place(scheme, row, parent, thread)
    named = naming.first(thread, [row], [row]) if ruling.status is Status.APPROVED else ()
    if draft.pace:
        entry.pace(draft.pace, draft.created)
    changes = [Counted(None, conversion.comment_state(row))]
    record = conversion.comment_record(row)
    above = named or (thread,) if parent is None else (parent, *named)
    counted = entry.writes(changes)
    event = outbox.event_id(draft.id, row.revision)
    told = outbox.tell(
        outbox.EventKind.POSTED, event, changes, now=draft.created, detail=draft.detail
    )
    placed = ownership.Writes(OWNER, insert=(row,), put=above)
    return ChangeResult(record, (placed, counted, told), event, is_new=True)


def site_scheme(name: records.ThreadName, known: sorthash.Scheme) -> sorthash.Scheme:
    """Read the scheme for a new thread in the transaction; `known` if the site is not stored.

    A process may have an outdated copy of the site, and nothing would find a thread with the
    previous scheme after the job `rescheming` has passed.
    """
    row = reads.get(comment_rows.site_key(name.site))
    return known if row is None else conversion.site_record(row).scheme


def new_thread(
    name: records.ThreadName, now: datetime, scheme: sorthash.Scheme
) -> comment_rows.ThreadRow:
    """Make a thread without comments."""
    return comment_rows.ThreadRow(
        key=comment_rows.thread_key(name),
        site=name.site,
        thread=name.id,
        named_by="",
        scheme=sorthash.encode_scheme(scheme),
        created=now,
    )


def new_row(
    draft: Draft,
    *,
    reply_to: str | None,
    ruling: records.Ruling,
    source: str | None = None,
) -> comment_rows.CommentRow:
    """Make the row of a comment that has no place yet."""
    status = ruling.status
    row = comment_rows.CommentRow(
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
        # A row that readers never saw and do not see now need not be compacted.
        unfolded=status is Status.APPROVED,
        created=draft.created,
        changed=draft.created if status is Status.APPROVED else None,
        fingerprint=draft.fingerprint,
        origin=draft.origin or None,
        came_from=draft.came_from,
        source=source,
        brought=draft.brought,
        rule=ruling.rule,
        why=ruling.why,
        reasons=reasons.encode(ruling.reasons),
        # The status of an imported comment was decided by a different system.
        judged=draft.created if ruling.rule else None,
    )
    if row.unfolded:
        # Imports have no concurrent writers, so compact immediately.
        row.fold_by = draft.created + IN_TIME if source is None else AT_ONCE
    return row


def place(
    scheme: sorthash.Scheme,
    row: comment_rows.CommentRow,
    parent: comment_rows.CommentRow | None,
    thread: comment_rows.ThreadRow,
) -> None:
    """Number a row by the counter of `parent` or the thread, and set its place in the tree."""
    if parent is None:
        # Roots are numbered from 0, so the number is the counter's value before the increment.
        row.number = thread.child_count
        thread.child_count += 1
    else:
        parent.child_count += 1
        row.number = parent.child_count
    above = "" if parent is None else parent.sort_hash
    try:
        row.sort_hash = sorthash.child(scheme, above, row.number)
    except sorthash.BadSortHash as error:
        raise errors.Conflict("parent-full") from error
    row.parent = None if parent is None else parent.key.id()
    row.level = 0 if parent is None else parent.level + 1
    row.slug = sorthash.slug(scheme, row.sort_hash)
    row.shape = thread.shape or 0
    row.populate(categories=list(thread.categories))


def _admitted(
    draft: Draft, thread: comment_rows.ThreadRow, answered: Sequence[comment_rows.CommentRow | None]
) -> comment_rows.CommentRow | None:
    """Return the comment that a draft answers, if any. Raise an error if the draft is refused."""
    if thread.state != records.ThreadState.OPEN:
        raise errors.Conflict("thread-closed")
    return _answerable(answered[0], draft) if answered else None


def _earlier(draft: Draft) -> ChangeResult | None:
    """Return the change that an earlier request with the draft's id made, if there was one."""
    row = reads.get(comment_rows.comment_key(draft.id))
    return None if row is None else _repeat(row, draft)


def _repeat(row: comment_rows.CommentRow, draft: Draft) -> ChangeResult:
    """Return the change that an earlier request, or an earlier run of this request, has made."""
    same_thread = row.thread == comment_rows.thread_key_name(draft.name)
    if not same_thread or row.fingerprint not in {
        draft.fingerprint,
        draft.former_fingerprint,
    }:
        raise errors.KeyReused
    if transactions.may_have_run() and row.created == draft.created:
        event = outbox.event_id(draft.id, row.revision)
        return ChangeResult(conversion.comment_record(row), event=event, is_new=True)
    is_from_origin = bool(draft.origin) and row.origin == draft.origin
    return ChangeResult(conversion.comment_record(row), is_from_origin=is_from_origin)


def _answerable(row: comment_rows.CommentRow | None, draft: Draft) -> comment_rows.CommentRow:
    """Return the comment that a draft answers. Raise an error if the comment takes no replies."""
    wanted = draft.reply_to or ""
    if row is None or row.thread != comment_rows.thread_key_name(draft.name):
        raise errors.NotFound("parent", wanted)
    if row.status == Status.RETRACTED:
        raise errors.Conflict("parent-retracted")
    is_own = bool(draft.author.id) and row.author_id == draft.author.id
    if row.status == Status.SHADOWED and is_own:
        return row  # a refusal would tell the comment's author that the comment is shadowed
    if row.status != Status.APPROVED:
        # For readers, held and rejected comments do not exist.
        raise errors.NotFound("parent", wanted)
    return row


def _below(target: comment_rows.CommentRow | None, ruling: records.Ruling) -> records.Ruling:
    """Shadow a reply to a shadowed comment too, without letting the reply's author notice."""
    if target is None or target.status != Status.SHADOWED:
        return ruling
    why = "it answers a comment that only its author sees"
    if ruling.status is Status.APPROVED:
        return records.Ruling(Status.SHADOWED, _SHADOW, why)
    if ruling.status is Status.PENDING:
        return records.Ruling(Status.SPAM, _SHADOW, why)
    return ruling


def _tree_parent(
    scheme: sorthash.Scheme, answered: comment_rows.CommentRow | None
) -> comment_rows.CommentRow | None:
    """Return a reply's parent: the answered comment or, at the deepest level, its parent."""
    if answered is None or answered.level < scheme.levels - 1:
        return answered
    return parent_row(answered)
