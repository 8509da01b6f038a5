"""Place new comments, or find the places that an earlier run of the same request gave them.

The comments of one transaction belong to one thread, and are placed one after another. They share
the thread's row, the rows of the answered comments and a counter shard. Each of these rows is read
once and written once.

A comment that is refused changes no row, and all other comments get the places and numbers that
they would get in separate transactions.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from comments import errors
from comments.domain import records
from comments.domain.counters.counting import CountedChange as Counted
from comments.domain.ids import sorthash
from comments.domain.moderation import reasons
from comments.domain.records import Status
from comments.events import outbox
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, conversion, schema
from comments.threads import activity, naming, thread_aliases
from comments.threads.comment_flags import AT_ONCE, IN_TIME, OWNER
from comments.tree.counters import in_transaction, sharding
from comments.tree.values import ChangeResult, Decide, Draft

_SHADOW = "shadow"  # The rule of a reply to a shadowed comment; stored as text


class Placement:
    """The new comments of one thread in one transaction.

    Read `keys` and call `fill` first. Then call `place` for each draft, and apply `writes`.

    `scheme` is the site's scheme according to this process's copy of the site. A new thread gets
    the stored scheme. `turn` chooses the counter shard in which the comments are counted.
    """

    def __init__(
        self,
        scheme: sorthash.Scheme,
        drafts: Sequence[Draft],
        turn: sharding.TransactionShard = sharding.FIRST,
    ) -> None:
        self._name, self._created = drafts[0].name, drafts[0].created
        self._scheme = scheme
        ids = dict.fromkeys(draft.reply_to for draft in drafts if draft.reply_to is not None)
        # Look for the comments first only if an earlier run may have been applied. Otherwise, the
        # insert fails if a comment exists, so an ordinary post saves this read.
        self._looked_for = {draft.id for draft in drafts if transactions.may_have_run()}
        self._ids = list(dict.fromkeys([*ids, *self._looked_for]))
        self._counters = in_transaction.TransactionCounters(
            self._name, [draft.author.id for draft in drafts], turn
        )
        self.keys: list[schema.RowKey] = [
            comment_rows.thread_key(self._name),
            *map(comment_rows.comment_key, self._ids),
            *self._counters.keys,
        ]
        self._is_new_thread = False
        self._thread: comment_rows.ThreadRow
        self._comments: dict[str, comment_rows.CommentRow | None] = {}
        self._inserted: dict[schema.RowKey, comment_rows.CommentRow] = {}
        self._changed: dict[schema.RowKey, schema.StoredRow] = {}
        self._changes: list[Counted] = []
        self._events: list[ownership.Writes] = []

    def fill(self, rows: Sequence[Any]) -> None:
        """Use the rows that were read at `keys`."""
        thread, *others = rows
        number = len(self._ids)
        self._comments = dict(zip(self._ids, others[:number], strict=True))
        self._counters.fill(thread, others[number:])
        self._is_new_thread = thread is None
        if thread is None:
            thread = new_thread(self._name, self._created, site_scheme([self._name], self._scheme))
        self._thread = thread
        self._scheme = conversion.scheme_of(thread, self._scheme)

    def earlier(self, draft: Draft) -> ChangeResult | None:
        """Return the change that an earlier request with the draft's id made, if any.

        Raises:
            errors.KeyReused: a comment with different content already has this id.
        """
        if draft.id in self._looked_for:
            row = self._comments[draft.id]
        else:
            row = reads.get(comment_rows.comment_key(draft.id))
        return None if row is None else _repeat(row, draft)

    def check_thread(self, draft: Draft) -> None:
        """Check that the answered comment is in this thread, if it exists.

        Raises:
            errors.ThreadMoved: it is in another thread of the site, for example after a split.
        """
        row = self._comments.get(draft.reply_to or "")
        if row is not None and row.site == self._name.site and row.thread_id != self._name.id:
            raise errors.ThreadMoved(self._name.id, row.thread_id)

    def place(self, draft: Draft, decide: Decide) -> ChangeResult:
        """Place a new comment, or recognize that it has already been placed.

        `decide` is called in every run of the transaction, and raises an error if the author must
        not post.

        Raises:
            errors.NotFound: the answered comment does not exist, is in a different thread, or is
                not public.
            errors.Conflict: the answered comment was retracted, the thread is closed, or the new
                comment's parent already has the maximum number of children in this scheme.
            errors.KeyReused: a comment with different content already has this id.
            errors.TooMany: the thread received too many posts recently.
        """
        earlier = self.earlier(draft) if self._looked_for else None
        if earlier is not None:
            return earlier
        try:
            return self._place_new(draft, decide)
        except errors.FlatthreadError:
            earlier = None if self._looked_for else self.earlier(draft)
            if earlier is not None:
                return earlier
            raise

    def writes(self) -> tuple[ownership.Writes, ...]:
        """Return the writes of all placed comments, which are empty if no comment was placed."""
        if not self._inserted:
            return ()
        placed = ownership.Writes(
            OWNER, insert=tuple(self._inserted.values()), put=tuple(self._changed.values())
        )
        return (placed, self._counters.writes(self._changes), *self._events)

    def _place_new(self, draft: Draft, decide: Decide) -> ChangeResult:
        thread, counters = self._thread, self._counters
        if self._is_new_thread:
            thread.created = thread.active = draft.created
        if thread.state != records.ThreadState.OPEN:
            raise errors.Conflict("thread-closed")
        target = None
        if draft.reply_to is not None:
            target = _answerable(self._comments[draft.reply_to], draft)
        is_known = draft.author.id in counters.known
        ruling = _below(target, decide(conversion.thread_record(thread), is_known))
        row = new_row(draft, reply_to=draft.reply_to, ruling=ruling)
        parent = self._tree_parent(target)
        number(self._scheme, row, parent, thread)
        if draft.pace:
            counters.pace(draft.pace, draft.created)
        # No check follows, so from here on rows may change.
        above = thread if parent is None else parent
        above.child_count += 1
        self._is_new_thread = False
        named: tuple[schema.StoredRow, ...] = ()
        if ruling.status is Status.APPROVED:
            named = naming.take_oldest(thread, [row], [row])
            counters.known.add(draft.author.id)
        # The row of a root's thread is written in any case.
        grown = (thread,) if activity.advance(thread, draft.created) else ()
        self._inserted[row.key] = self._comments[draft.id] = row
        self._changed.update(
            (entity.key, entity)
            for entity in (above, *named, *grown)
            if entity.key not in self._inserted
        )
        return self._note_change(draft, row)

    def _note_change(self, draft: Draft, row: comment_rows.CommentRow) -> ChangeResult:
        change = Counted(None, conversion.comment_state(row))
        event = outbox.event_id(draft.id, row.revision)
        self._changes.append(change)
        self._events.append(
            outbox.event_writes(
                outbox.EventKind.POSTED, event, [change], now=draft.created, detail=draft.detail
            )
        )
        return ChangeResult(conversion.comment_record(row), event=event, is_new=True)

    def _tree_parent(
        self, answered: comment_rows.CommentRow | None
    ) -> comment_rows.CommentRow | None:
        """Return a reply's parent: the answered comment, or its parent at the deepest level."""
        if answered is None or answered.level < self._scheme.levels - 1:
            return answered
        parent_id = conversion.parent_id(answered)
        if parent_id is None:
            return None
        # Another draft may have changed the same row, so never read a row twice.
        if parent_id not in self._comments:
            self._comments[parent_id] = reads.get(comment_rows.comment_key(parent_id))
        parent = self._comments[parent_id]
        if parent is None:
            raise errors.Conflict("thread-damaged")  # `repair` corrects such a thread.
        return parent


def site_scheme(names: Sequence[records.ThreadName], known: sorthash.Scheme) -> sorthash.Scheme:
    """Read the scheme of new threads in the transaction; return `known` if the site is not stored.

    A process may have an outdated copy of the site. If it used the previous scheme for a new thread
    after the job `rescheming` has passed, nothing would find that thread.

    Raises:
        errors.ThreadMoved: a name belongs to a thread that has moved.
    """
    keys = [comment_rows.thread_alias_key(name) for name in names]
    row, *aliases = reads.get_multi([comment_rows.site_key(names[0].site), *keys])
    for name, alias in zip(names, aliases, strict=True):
        thread_aliases.check_is_free(name, alias)
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
        active=now,
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
    """Number a row, and count it in the counter of `parent` or the thread."""
    number(scheme, row, parent, thread)
    above = thread if parent is None else parent
    above.child_count += 1


def number(
    scheme: sorthash.Scheme,
    row: comment_rows.CommentRow,
    parent: comment_rows.CommentRow | None,
    thread: comment_rows.ThreadRow,
) -> None:
    """Number a row by the counter of `parent` or the thread, and set its place in the tree.

    The counter does not change.
    """
    # Roots are numbered from 0, and replies from 1.
    row.number = thread.child_count if parent is None else parent.child_count + 1
    above = "" if parent is None else parent.sort_hash
    try:
        row.sort_hash = sorthash.child(scheme, above, row.number)
    except sorthash.BadSortHash as error:
        raise errors.Conflict("parent-full") from error
    row.parent = None if parent is None else parent.key.id()
    row.level = 0 if parent is None else parent.level + 1
    row.slug = f"{row.number + 1}" if parent is None else f"{parent.slug}-{row.number}"
    row.shape = thread.shape or 0
    row.categories = list(thread.categories)


def _repeat(row: comment_rows.CommentRow, draft: Draft) -> ChangeResult:
    """Return the change that an earlier request, or an earlier run of this request, has made.

    The comment may have moved to another thread since then.
    """
    if row.fingerprint != draft.fingerprint:
        raise errors.KeyReused
    is_from_origin = (row.origin or b"") == draft.origin
    if transactions.may_have_run() and is_from_origin and row.created == draft.created:
        event = outbox.event_id(draft.id, row.revision)
        return ChangeResult(conversion.comment_record(row), event=event, is_new=True)
    return ChangeResult(conversion.comment_record(row), is_from_origin=is_from_origin)


def _answerable(row: comment_rows.CommentRow | None, draft: Draft) -> comment_rows.CommentRow:
    """Return the comment that a draft answers. Raise an error if the comment accepts no replies."""
    wanted = draft.reply_to or ""
    if row is None or row.thread != comment_rows.thread_key_name(draft.name):
        raise errors.NotFound("parent", wanted)
    if row.status == Status.RETRACTED:
        raise errors.Conflict("parent-retracted")
    is_own = bool(draft.author.id) and row.author_id == draft.author.id
    if row.status == Status.SHADOWED and is_own:
        return row  # A refusal would tell the comment's author that the comment is shadowed
    if row.status != Status.APPROVED:
        # For readers, held and rejected comments do not exist.
        raise errors.NotFound("parent", wanted)
    return row


def _below(target: comment_rows.CommentRow | None, ruling: records.Ruling) -> records.Ruling:
    """If a reply answers a shadowed comment, shadow the reply without letting its author notice."""
    if target is None or target.status != Status.SHADOWED:
        return ruling
    why = "it answers a comment that only its author sees"
    if ruling.status is Status.APPROVED:
        return records.Ruling(Status.SHADOWED, _SHADOW, why)
    if ruling.status is Status.PENDING:
        return records.Ruling(Status.SPAM, _SHADOW, why)
    return ruling
