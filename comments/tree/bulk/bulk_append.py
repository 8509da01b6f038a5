"""Append comments from another system's export to threads."""

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
from comments.store import ownership, reads
from comments.store.models import comment_rows, conversion, schema
from comments.threads import naming, thread_aliases
from comments.threads.comment_flags import OWNER, change_time, compaction_deadline, touch
from comments.tree import votes
from comments.tree.bulk import bulk_removal
from comments.tree.counters import in_transaction
from comments.tree.placement import new_row, new_thread, place, site_scheme
from comments.tree.status_changes import MOST_PINS
from comments.tree.values import Draft, Imported, ImportedThread, RenderedText

# The maximum number of votes that are stored in the same transaction as their comment.
VOTES_AT_ONCE = 300


def append_imported(
    scheme: sorthash.Scheme,
    threads: Sequence[ImportedThread],
    *,
    now: datetime,
    run: str = "",
    revision: int = 1,
) -> Imported:
    """Append comments from another system's export to threads, in the given order.

    New comments come after the existing comments, with the revision `revision`. An answered comment
    must be in the store, or precede its replies in `nodes`. Existing comments are not changed,
    except that a comment that an undo has erased gets its content back in its old place. Replies to
    retracted or held comments are allowed. The retracted or held comments are then listed as
    tombstones.

    Each thread must be given only once, and all threads belong to one site. One lookup reads the
    rows of all threads, and an event may record changes in several threads. `run` identifies the
    import. After an undo, another import may add the same comments again.

    Raises:
        errors.NotFound: a node answers a comment that is neither in `nodes` nor in the thread.
    """
    parts = _read_parts(scheme, threads, now, revision)
    for part in parts:
        part.append()
    put = tuple(row for part in parts for row in part.rows_to_store())
    grown = [part for part in parts if part.added]
    counted = [part.changes() for part in grown]
    changes = [change for batch in counted for change in batch]
    ids = [row_id for part in grown for row_id in part.changed]
    revisions = [part.rows[row_id].revision for part in grown for row_id in part.changed]
    event_writes: list[ownership.Writes] = []
    events: list[str] = []
    for stretch in outbox.parts(changes) if changes else ():
        # The first comment of each event is new, so no other event has this id. An existing comment
        # changes only because of a new comment of its thread that precedes it in the batch. Such a
        # change adds nothing to the counters.
        event = outbox.event_id(ids[stretch.start], revisions[stretch.start], run)
        detail = outbox.encode_imported(ids[stretch])
        event_writes.append(
            outbox.event_writes(
                outbox.EventKind.IMPORTED, event, changes[stretch], now=now, detail=detail
            )
        )
        events.append(event)
    writes = (
        ownership.Writes(OWNER, put=put),
        *(part.entry.writes(batch) for part, batch in zip(grown, counted, strict=True)),
        *(vote_writes for part in grown for vote_writes in part.votes),
        *event_writes,
        *thread_aliases.adoption_writes({part.name: part.aliases for part in grown if part.is_new}),
    )
    return Imported(
        writes,
        {part.name: len(part.added) for part in grown},
        tuple(events),
        ids=tuple(row_id for part in grown for row_id in part.added),
        made=tuple(part.name for part in parts if part.is_new and (part.added or part.is_kept)),
    )


def early_vote_writes(
    name: records.ThreadName, comment_id: str, cast: Sequence[tuple[str, int]]
) -> ownership.Writes:
    """If a comment of an export is new, store some of the votes on it before the comment."""
    if reads.get(comment_rows.comment_key(comment_id)) is not None:
        return ownership.Writes(votes.OWNER)
    return votes.import_writes(comment_id, comment_rows.thread_key_name(name), cast)


def _read_parts(
    scheme: sorthash.Scheme, threads: Sequence[ImportedThread], now: datetime, revision: int
) -> list["_Part"]:
    """Read the rows of all threads with one lookup."""
    parts = [_Part(given, revision) for given in threads]
    stored = iter(reads.get_multi([key for part in parts for key in part.keys]))
    for part in parts:
        part.fill([next(stored) for _ in part.keys])
    new = [part for part in parts if part.is_new]
    known = site_scheme([part.name for part in new], scheme) if new else scheme
    for part in parts:
        part.begin(now, known if part.is_new else scheme)
    return parts


class _Part:
    """A thread's part of a batch: the rows read or written, by id, and the changed rows in order.

    `fill` takes the rows that were read at `keys`, and `begin` makes a new thread.
    """

    thread: comment_rows.ThreadRow
    scheme: sorthash.Scheme

    def __init__(self, given: ImportedThread, revision: int) -> None:
        self._given = given
        self._revision = revision
        self.name = given.name
        self.is_kept = given.kept is not None
        self.aliases = () if given.kept is None else given.kept.aliases
        ids = dict.fromkeys(node.id for node in given.nodes)
        ids.update(dict.fromkeys(node.reply_to for node in given.nodes if node.reply_to))
        self._comments = len(ids)
        self.entry = in_transaction.TransactionCounters(
            self.name, (node.author.id for node in given.nodes)
        )
        self.keys = [
            comment_rows.thread_key(self.name),
            *map(comment_rows.comment_key, ids),
            *self.entry.keys,
        ]
        self.changed: dict[str, None] = {}
        self.added: dict[str, None] = {}
        self.votes: list[ownership.Writes] = []

    def fill(self, loaded: Sequence[Any]) -> None:
        self._stored: comment_rows.ThreadRow | None = loaded[0]
        rows, counters = loaded[1 : self._comments + 1], loaded[self._comments + 1 :]
        self.entry.fill(self._stored, counters)
        self.is_new = self.thread_changed = self._stored is None
        self.rows: dict[str, comment_rows.CommentRow] = {row.key.id(): row for row in rows if row}
        # The states of existing comments before this batch.
        self._before = {key: conversion.comment_state(row) for key, row in self.rows.items()}

    def begin(self, now: datetime, scheme: sorthash.Scheme) -> None:
        if self._stored is None:
            self.thread = new_thread(self.name, now, scheme)
            self.thread.state = self._given.state.value
            if self._given.kept is not None:
                _keep_thread(self.thread, self._given, self._given.kept)
            # Only the import that creates a thread sets `active`, so an undo need not restore it.
            dates = (node.created for node in self._given.nodes)
            self.thread.active = self._given.newest or max(dates, default=self.thread.created)
        else:
            self.thread = self._stored
        self.scheme = conversion.scheme_of(self.thread, scheme)

    def append(self) -> None:
        """Place the nodes that are not stored yet, and restore the comments that an undo erased."""
        brought = naming.encode(naming.Brought(self._given.title, self._given.url))
        for node in self._given.nodes:
            stored = self.rows.get(node.id)
            if stored is None:
                self.add(node, brought)
            elif bulk_removal.is_erased(stored):
                self.restore(stored, node, brought)

    def rows_to_store(self) -> tuple[schema.StoredRow, ...]:
        """Return the rows to store, after naming the thread."""
        named = self.name_thread()
        put: tuple[schema.StoredRow, ...] = tuple(self.rows[row_id] for row_id in self.changed)
        if named or self.thread_changed:
            put = (*put, *(named or (self.thread,)))
        return put

    def add(self, node: records.ImportedComment, brought: str) -> None:
        """Place a node that is not stored yet."""
        answered = None if node.reply_to is None else self._row(node.reply_to)
        parent = answered
        if answered is not None and answered.level >= self.scheme.levels - 1:
            parent = self._parent(answered)
        row = new_row(
            Draft(
                id=node.id,
                name=self.name,
                reply_to=node.reply_to,
                author=node.author,
                text=RenderedText(node.body, node.html, node.renderer),
                fingerprint=b"",
                created=node.created,
                brought=brought,
            ),
            reply_to=node.reply_to,
            ruling=records.Ruling(node.status),
            source=node.source,
        )
        row.revision = self._revision
        row.up, row.down, row.score = node.up, node.down, node.up - node.down
        row.edited = node.edited
        if node.kept is not None:
            _keep_comment(row, node)
            _keep_number(self.thread if parent is None else parent, node.kept.number, parent)
            self._count_votes(row, node.kept.votes)
        place(self.scheme, row, parent, self.thread)
        if node.kept is not None:
            row.populate(former_slugs=[slug for slug in node.kept.slugs if slug != row.slug])
        self.rows[node.id] = row
        self.changed[node.id] = None
        self.added[node.id] = None
        if node.pinned and (node.status is Status.APPROVED or self.is_kept):
            self._pin(row)
        if parent is None:
            self.thread_changed = True
        else:
            self.changed[row.parent] = None
        if row.listed:
            self._list_above(parent)

    def restore(
        self, row: comment_rows.CommentRow, node: records.ImportedComment, brought: str
    ) -> None:
        """Restore an erased comment's content, in the place that it kept for its replies."""
        was_listed = row.listed
        row.status, row.source, row.brought = node.status.value, node.source, brought
        row.body, row.html, row.renderer = node.body, node.html, node.renderer
        row.author_name, row.author_website = node.author.name, node.author.website
        row.author_email, row.author_id = node.author.email, node.author.id
        row.by_staff = node.author.is_staff
        row.up, row.down, row.score = node.up, node.down, node.up - node.down
        row.edited, row.listed = node.edited, was_listed or node.status is Status.APPROVED
        if node.kept is not None:
            _keep_comment(row, node)
            # These votes were not stored early, so votes beyond `VOTES_AT_ONCE` are only counted.
            self._count_votes(row, node.kept.votes[:VOTES_AT_ONCE])
        self.changed[node.id] = self.added[node.id] = None
        touch(row, was_listed=was_listed)
        if node.pinned and (node.status is Status.APPROVED or self.is_kept):
            self._pin(row)
        if row.listed and not was_listed and row.parent:
            self._list_above(self._row(row.parent))

    def _count_votes(self, row: comment_rows.CommentRow, cast: Sequence[tuple[str, int]]) -> None:
        """Count votes as cast, and store those that were not stored early."""
        row.cast_up = sum(1 for _, value in cast if value == votes.UP)
        row.cast_down = len(cast) - row.cast_up
        if cast:
            self.votes.append(votes.import_writes(row.key.id(), row.thread, cast[:VOTES_AT_ONCE]))

    def _pin(self, row: comment_rows.CommentRow) -> None:
        if len(self.thread.pins) < MOST_PINS:
            row.pinned = True
            self.thread.pins = [*self.thread.pins, row.key.id()]
            self.thread_changed = True

    def _row(self, comment_id: str) -> comment_rows.CommentRow:
        row = self.rows.get(comment_id) or reads.get(comment_rows.comment_key(comment_id))
        if row is None or row.thread != comment_rows.thread_key_name(self.name):
            raise errors.NotFound("parent", comment_id)
        if comment_id not in self.rows:
            self._before[comment_id] = conversion.comment_state(row)
        self.rows[comment_id] = row
        loaded: comment_rows.CommentRow = row
        return loaded

    def _parent(self, row: comment_rows.CommentRow) -> comment_rows.CommentRow | None:
        parent_id = conversion.parent_id(row)
        return None if parent_id is None else self._row(parent_id)

    def _list_above(self, parent: comment_rows.CommentRow | None) -> None:
        while parent is not None and not parent.listed:
            parent.listed = parent.unfolded = True
            parent.changed, parent.fold_by = change_time(parent), compaction_deadline(parent)
            if parent.key.id() not in self.added:
                touch(parent, was_listed=False)
            self.changed[parent.key.id()] = None
            parent = self._parent(parent)

    def name_thread(self) -> tuple[schema.StoredRow, ...]:
        """Name an unnamed thread after the oldest added comment. Return the rows to store."""
        if self.thread.named_by:
            return ()
        came = [
            row for row in map(self.rows.__getitem__, self.added) if row.status == Status.APPROVED
        ]
        return naming.take_oldest(self.thread, came, [self.rows[row_id] for row_id in self.changed])

    def changes(self) -> list[Counted]:
        """Return the old and new state of each changed row, for the counters and the event."""
        return [
            Counted(self._before.get(row_id), conversion.comment_state(self.rows[row_id]))
            for row_id in self.changed
        ]


def _keep_thread(
    thread: comment_rows.ThreadRow, given: ImportedThread, kept: records.MovedThread
) -> None:
    """Give a new thread the values that it had in an export of Flatthread.

    If the comment that named the thread is not in the export, an added comment names it.
    """
    thread.title, thread.url = given.title, given.url
    thread.populate(
        policy="" if kept.policy is None else kept.policy.value,
        categories=list(kept.categories),
        own=list(kept.own),
        named_by=kept.named_by,
        named_at=kept.named_at,
    )
    if kept.created is not None:
        thread.created = kept.created


def _keep_comment(row: comment_rows.CommentRow, node: records.ImportedComment) -> None:
    """Give a new comment the values that it had in an export of Flatthread."""
    kept = node.kept or records.MovedComment()
    row.source = kept.source or node.source
    row.edited_by_staff = kept.edited_by_staff
    row.brought = kept.brought
    row.rule, row.why, row.reasons = kept.rule, kept.why, reasons.encode(kept.reasons)
    row.stood = "" if kept.stood is None else kept.stood.value
    row.judged = kept.judged


def _keep_number(
    above: comment_rows.ThreadRow | comment_rows.CommentRow,
    number: int | None,
    parent: comment_rows.CommentRow | None,
) -> None:
    """Raise a counter, so that the next comment gets this number if it is still free."""
    if number is not None:
        above.child_count = max(above.child_count, number if parent is None else number - 1)
