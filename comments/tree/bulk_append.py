"""Append comments from another system's export to a thread."""

from collections.abc import Sequence
from datetime import datetime

from google.cloud import ndb

from comments import errors
from comments.domain import records, sorthash
from comments.domain.counting import CountedChange as Counted
from comments.domain.records import Status
from comments.events import outbox
from comments.store import ownership, reads
from comments.store.models import comment_rows, conversion
from comments.tree.comment_writes import (
    OWNER,
    at_once,
    changed_at,
    touch,
)
from comments.tree.counters import in_transaction
from comments.tree.placement import new_row, new_thread, place, site_scheme
from comments.tree.threads import naming
from comments.tree.values import Draft, Imported, RenderedText


def append_imported(  # noqa: PLR0913 - a batch with the thread it may have to make
    scheme: sorthash.Scheme,
    name: records.ThreadName,
    nodes: Sequence[records.ImportedComment],
    *,
    title: str,
    url: str,
    state: records.ThreadState,
    now: datetime,
) -> Imported:
    """Append comments from another system's export after the existing ones, in the given order.

    An answered comment must be in the store, or precede its replies in `nodes`. Existing comments
    are not changed. Replies to retracted or held comments are allowed; these comments are then
    listed as tombstones.

    Raises:
        errors.NotFound: a node answers a comment that is neither in `nodes` nor in the thread.
    """
    batch = _Batch(scheme, name, nodes, now)
    if batch.is_new:
        batch.thread.state = state.value
    brought = naming.encode(naming.Brought(title, url))
    for node in nodes:
        if node.id not in batch.rows:
            batch.add(node, brought)
    named = batch.named()
    put: tuple[ndb.Model, ...] = tuple(batch.rows[row_id] for row_id in batch.changed)
    if named or batch.thread_changed:
        put = (*put, *(named or (batch.thread,)))
    if not batch.added:
        return Imported((ownership.Writes(OWNER, put=put),), 0)
    changes = batch.changes()
    events = {batch.event(part): changes[part] for part in outbox.parts(changes)}
    writes = (
        ownership.Writes(OWNER, put=put),
        batch.entry.writes(changes),
        *(outbox.tell(outbox.EventKind.IMPORTED, *event, now=now) for event in events.items()),
    )
    return Imported(writes, len(batch.added), tuple(events))


class _Batch:
    """An imported batch: the rows read or written for it, by id, and the changed rows in order."""

    def __init__(
        self,
        scheme: sorthash.Scheme,
        name: records.ThreadName,
        nodes: Sequence[records.ImportedComment],
        now: datetime,
    ) -> None:
        self.name = name
        ids = dict.fromkeys(node.id for node in nodes)
        ids.update(dict.fromkeys(node.reply_to for node in nodes if node.reply_to))
        self.entry = in_transaction.TransactionCounters(name, (node.author.id for node in nodes))
        thread, *rows = reads.get_multi(
            [comment_rows.thread_key(name), *map(comment_rows.comment_key, ids), *self.entry.keys]
        )
        self.entry.fill(thread, rows[len(ids) :])
        del rows[len(ids) :]
        self.is_new = self.thread_changed = thread is None
        self.thread: comment_rows.ThreadRow = thread or new_thread(
            name, now, site_scheme(name, scheme)
        )
        self.scheme = conversion.scheme_of(self.thread, scheme)
        self.rows: dict[str, comment_rows.CommentRow] = {row.key.id(): row for row in rows if row}
        self.changed: dict[str, None] = {}
        self.added: set[str] = set()
        # The states of existing comments before this batch.
        self._before = {key: conversion.comment_state(row) for key, row in self.rows.items()}

    def add(self, node: records.ImportedComment, brought: str) -> None:
        """Place a node that is not stored yet."""
        answered = None if node.reply_to is None else self._row(node.reply_to)
        parent = answered
        if answered is not None and answered.level >= self.scheme.levels - 1:
            parent = self._above(answered)
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
        row.up, row.down, row.score = node.up, node.down, node.up - node.down
        place(self.scheme, row, parent, self.thread)
        self.rows[node.id] = row
        self.changed[node.id] = None
        self.added.add(node.id)
        if parent is None:
            self.thread_changed = True
        else:
            self.changed[parent.key.id()] = None
        if row.listed:
            self._list_above(parent)

    def _row(self, comment_id: str) -> comment_rows.CommentRow:
        row = self.rows.get(comment_id) or reads.get(comment_rows.comment_key(comment_id))
        if row is None or row.thread != comment_rows.thread_key_name(self.name):
            raise errors.NotFound("parent", comment_id)
        if comment_id not in self.rows:
            self._before[comment_id] = conversion.comment_state(row)
        self.rows[comment_id] = row
        found: comment_rows.CommentRow = row
        return found

    def _above(self, row: comment_rows.CommentRow) -> comment_rows.CommentRow | None:
        parent_id = conversion.parent_id(row)
        return None if parent_id is None else self._row(parent_id)

    def _list_above(self, parent: comment_rows.CommentRow | None) -> None:
        while parent is not None and not parent.listed:
            parent.listed = parent.unfolded = True
            parent.changed, parent.fold_by = changed_at(parent), at_once(parent)
            if parent.key.id() not in self.added:
                touch(parent, was_listed=False)
            self.changed[parent.key.id()] = None
            parent = self._above(parent)

    def named(self) -> tuple[ndb.Model, ...]:
        """Name an unnamed thread after the oldest added comment. Return the rows to store."""
        if self.thread.named_by:
            return ()
        came = [
            row for row in map(self.rows.__getitem__, self.added) if row.status == Status.APPROVED
        ]
        return naming.first(self.thread, came, [self.rows[row_id] for row_id in self.changed])

    def changes(self) -> list[Counted]:
        """Return the old and new state of each changed row, for the counters and the event."""
        return [
            Counted(self._before.get(row_id), conversion.comment_state(self.rows[row_id]))
            for row_id in self.changed
        ]

    def event(self, part: slice) -> str:
        """Return the event id for a part of the changes, derived from the part's first comment.

        The first comment is always new, so no other event has this id. An existing comment changes
        only because of a new comment earlier in the batch, and adds nothing to the counters.
        """
        first = list(self.changed)[part.start]
        return outbox.event_id(first, self.rows[first].revision)
