"""Remove the comments of an import: first erase them, then delete their rows.

`erase` changes a comment as a retraction does, and marks its row with `comment_rows.ERASED`.
Readers see each change of a row immediately, because the row is flagged (`unfolded`). A deleted row
has no flag, so `delete` also flags another comment of the thread as moved. Readers then use the
ordered query until the next compaction, which reads all rows. The last comment of a thread is
deleted only after a compaction has cleared its flag.

Invariant: A commit that deletes a row flags another row of the thread as moved, unless no directory
can contain any row of the thread
(test_undo_steps.py::test_readers_see_no_removed_comment_at_any_step).

A row is deleted only if no comment is below it and no comment names it as the answered comment
(`reply_to`). On the deepest level, the answered comment can be a sibling. Nobody can answer a
deleted comment later, because retracted comments take no replies. Child counters do not change, so
numbers are not reused. The commit that changes or deletes a comment also counts it, and writes the
event for the other counters.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from comments.domain import records
from comments.domain.counters import counting
from comments.domain.counters.counting import CountedChange as Counted
from comments.domain.ids import sorthash
from comments.domain.records import Status, ThreadState
from comments.events import outbox
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, conversion, counter_rows, schema, vote_rows
from comments.threads import category_journal, naming, thread_aliases, thread_terms
from comments.threads.comment_flags import OWNER, flag_as_moved, touch
from comments.tree import votes
from comments.tree.changes import erase_content
from comments.tree.counters import in_transaction
from comments.tree.values import ThreadSettings
from comments.tree.visibility import Changed

AT_ONCE = 50  # Maximum number of comments in a transaction, each with up to six rows.

Answered = Mapping[str, Collection[str]]  # Answers to a comment, by the comment's id.


class Removal(NamedTuple):
    """A step that erases or deletes comments: its writes, its events, its threads, its comments.

    `voted` contains the erased comments whose votes are to be deleted. For a step that deletes
    rows, `kept` is the number of erased comments that other comments need. `waiting` contains the
    threads whose last comment a compaction must clear first, and `emptied` contains the threads
    that have no comments left. `revision` is the highest revision of the deleted rows.
    """

    writes: tuple[ownership.Writes, ...] = ()
    events: tuple[str, ...] = ()
    threads: tuple[records.ThreadName, ...] = ()
    ids: tuple[str, ...] = ()
    voted: tuple[str, ...] = ()
    kept: int = 0
    waiting: tuple[records.ThreadName, ...] = ()
    emptied: tuple[records.ThreadName, ...] = ()
    revision: int = 0


def erase(ids: Sequence[str], *, now: datetime, run: str) -> Removal:
    """Erase the imported comments among these comments, in the current transaction.

    Each comment loses its text, author, votes, pin and source. An erased comment stays listed as a
    tombstone while a listed comment is below it. Comments that are already erased do not change.
    `run` identifies the import.
    """
    rows = [row for row in stored_rows(ids) if row.source]
    voted = _rows_with_votes(rows)
    parts = [_ThreadErasure(name, here) for name, here in _by_thread(rows)]
    for part in parts:
        part.erase(now)
    changes = [change for part in parts for change in part.row_changes]
    event_writes, events = _event_writes(changes, run, now=now)
    writes = (*(written for part in parts for written in part.writes()), *event_writes)
    ended = (
        votes.scheduled_deletion_writes(
            row.key.id(), records.ThreadName(row.site, row.thread_id), now=now
        )
        for row in voted
    )
    return Removal(
        (*writes, *ended),
        events,
        tuple(part.name for part in parts),
        tuple(row.key.id() for row in rows),
        tuple(row.key.id() for row in voted),
    )


def delete(ids: Sequence[str], answered: Answered, *, now: datetime, run: str) -> Removal:
    """Delete the rows of erased comments that no comment needs, in the current transaction.

    `answered` contains the comments that are answered by comments other than their children.
    """
    rows = [row for row in stored_rows(ids) if is_erased(row)]
    parts = [_ThreadDeletion(name, here, answered) for name, here in _by_thread(rows)]
    changes = [
        (row, Counted(conversion.comment_state(row), None))
        for part in parts
        for row in part.gone.values()
    ]
    event_writes, events = _event_writes(changes, run, now=now, after=1)
    return Removal(
        (*(written for part in parts for written in part.writes()), *event_writes),
        events,
        tuple(part.name for part in parts if part.gone),
        tuple(row.key.id() for row, _ in changes),
        kept=sum(part.kept for part in parts),
        waiting=tuple(part.name for part in parts if part.is_waiting),
        emptied=tuple(part.name for part in parts if part.is_emptied),
        revision=max((row.revision for row, _ in changes), default=0),
    )


def answers(name: records.ThreadName) -> dict[str, set[str]]:
    """Map each comment to the comments that answer it without being its children."""
    by_comment: dict[str, set[str]] = {}
    where = (("thread", "=", comment_rows.thread_key_name(name)),)
    for message in reads.walk(reads.Query("Comment", where=where, order=("__key__",))):
        answered = message.properties["reply_to"].string_value
        if answered and answered != message.properties["parent"].string_value:
            by_comment.setdefault(answered, set()).add(message.key.path[-1].name)
    return by_comment


def needed_comments(name: records.ThreadName, ids: Collection[str]) -> set[str] | None:
    """Return which of these comments are needed by other comments; None if there are no others.

    A comment needs the comments above it, the comment that it answers, and all comments that these
    comments need.
    """
    links: dict[str, set[str]] = {}
    where = (("thread", "=", comment_rows.thread_key_name(name)),)
    for message in reads.walk(reads.Query("Comment", where=where, order=("__key__",))):
        values = message.properties
        both = {values["parent"].string_value, values["reply_to"].string_value}
        links[message.key.path[-1].name] = both - {""}
    waiting = [comment_id for comment_id in links if comment_id not in ids]
    reached = set(waiting)
    while waiting:
        more = links.get(waiting.pop(), set()) - reached
        reached |= more
        waiting += more
    return reached.intersection(ids).intersection(links) if reached else None


def thread_deletion_writes(
    name: records.ThreadName, made: ThreadSettings
) -> tuple[ownership.Writes, ...]:
    """Return the writes that delete an empty thread, in the current transaction.

    Return no writes if the thread has comments, several counter shards, or settings that differ
    from those with which it was made. The thread's followers and their number stay.
    """
    key = counter_rows.thread_counter_key(name, 0)
    thread, counter = reads.get_multi([comment_rows.thread_key(name), key])
    if thread is None:
        return ()
    is_closed = thread.state == ThreadState.CLOSED
    settings = ThreadSettings(is_closed, thread.policy or "", tuple(thread.own))
    if settings != made or (thread.shards or 1) > 1 or _first(name, ()) is not None:
        return ()
    naming.forget(thread)
    transactions.afterwards(lambda: thread_terms.COPIES.get().drop(name))
    has_numbers = bool(counter_rows.numbers_of(counter))
    return (
        *thread_aliases.removal_writes(name),
        ownership.Writes(OWNER, delete=(thread.key, category_journal.key(thread.key.id()))),
        ownership.Writes(counter_rows.OWNER, delete=() if has_numbers else (key,)),
    )


def is_erased(row: comment_rows.CommentRow) -> bool:
    """Return whether an undo has erased a comment."""
    return bool(row.source == comment_rows.ERASED and row.status == Status.RETRACTED)


class _ThreadErasure:
    """The comments of one thread that a transaction erases, and the rows above them."""

    def __init__(self, name: records.ThreadName, rows: Iterable[comment_rows.CommentRow]) -> None:
        self.name = name
        self._rows = {row.key.id(): row for row in rows}
        self._above = _ancestors(self._rows)
        self._changed: list[Changed] = []
        # The sort hashes of the rows that are stored as listed but are no longer listed.
        self._unlisted: dict[str, str] = {}
        self._others: tuple[schema.StoredRow, ...] = ()

    def erase(self, now: datetime) -> None:
        """Erase the comments, and unlist the tombstones that no longer have a listed comment."""
        rows = [*self._rows.values(), *self._above.values()]
        for row in sorted(rows, key=lambda row: row.sort_hash, reverse=True):
            if row.key.id() in self._above:
                self._settle(row)
            elif row.status == Status.RETRACTED:
                # Readers see no change, but the row is marked.
                row.source = comment_rows.ERASED
                self._others = (*self._others, row)
                self._settle(row)
            else:
                self._erase(row, now)
        self._name()

    def _erase(self, row: comment_rows.CommentRow, now: datetime) -> None:
        before, was_listed = conversion.comment_state(row), row.listed
        erase_content(row)
        row.source, row.edited = comment_rows.ERASED, now
        row.listed = was_listed and self._has_listed_below(row)
        self._note(row, before, was_listed=was_listed)

    def _settle(self, row: comment_rows.CommentRow) -> None:
        if not row.listed or row.status == Status.APPROVED or self._has_listed_below(row):
            return
        before = conversion.comment_state(row)
        row.listed = False
        self._note(row, before, was_listed=True)

    def _note(
        self, row: comment_rows.CommentRow, before: counting.CountedState, *, was_listed: bool
    ) -> None:
        touch(row, was_listed=was_listed)
        if was_listed and not row.listed:
            self._unlisted[row.key.id()] = row.sort_hash
        self._changed.append((before, row))

    def _has_listed_below(self, row: comment_rows.CommentRow) -> bool:
        """Return whether a comment below a row stays listed; check replies before their row.

        Stored rows that this transaction unlists do not count.
        """
        return _has_below(row, self._unlisted, (("listed", "=", True),))

    def _name(self) -> None:
        """If the naming comment is erased, name the thread after another; also remove pins."""
        # Name the thread first: the naming comment is counted under the categories that it sets.
        named = naming.follow(self.name, self._changed)
        threads = [row for row in named if isinstance(row, comment_rows.ThreadRow)]
        thread = threads[0] if threads else reads.get(comment_rows.thread_key(self.name))
        self._others = (*self._others, *named)
        if thread is not None and not self._rows.keys().isdisjoint(thread.pins):
            thread.pins = [comment_id for comment_id in thread.pins if comment_id not in self._rows]
            naming.forget(thread)
            self._others = (*self._others, thread)

    @property
    def row_changes(self) -> list[tuple[comment_rows.CommentRow, Counted]]:
        """Return the changed rows, each with its old and new state."""
        return [
            (row, Counted(before, conversion.comment_state(row))) for before, row in self._changed
        ]

    def writes(self) -> tuple[ownership.Writes, ...]:
        """Return the writes of the comments, the thread and the thread's counters."""
        put = {entity.key: entity for entity in (*self._others, *(row for _, row in self._changed))}
        return (
            ownership.Writes(OWNER, put=tuple(put.values())),
            in_transaction.counter_writes(self.name, [change for _, change in self.row_changes]),
        )


class _ThreadDeletion:
    """The comments of one thread that a transaction deletes, by id, and the row that it flags."""

    def __init__(
        self, name: records.ThreadName, rows: Iterable[comment_rows.CommentRow], answered: Answered
    ) -> None:
        self.name = name
        self.gone: dict[str, comment_rows.CommentRow] = {}
        self.kept = 0
        self.is_emptied = self.is_waiting = False
        self._flagged: comment_rows.CommentRow | None = None
        hashes: dict[str, str] = {}
        # Replies come after the comment that they answer, so this order begins with the replies.
        for row in sorted(rows, key=lambda row: row.sort_hash, reverse=True):
            key = row.key.id()
            if _has_below(row, hashes) or not self.gone.keys() >= set(answered.get(key, ())):
                self.kept += 1
            else:
                self.gone[key], hashes[key] = row, row.sort_hash
        if self.gone:
            self._choose()

    def _choose(self) -> None:
        """Choose the row to flag. If all rows of the thread would be deleted, keep one of them."""
        first = _first(self.name, self.gone)
        if first is not None:
            self._flagged = first
        elif not any(map(_has_been_seen, self.gone.values())):
            self.is_emptied = True
        else:
            last = min(self.gone.values(), key=lambda row: row.sort_hash)
            del self.gone[last.key.id()]
            self.is_waiting = True
            # A process may use the next directory for some time after the thread is deleted, and
            # even for new comments. That directory must therefore not contain the time of a change.
            if self.gone or last.changed is not None:
                last.changed = None
                self._flagged = last

    def writes(self) -> Iterator[ownership.Writes]:
        """Yield the writes of the rows and of the thread's counters."""
        if self._flagged is not None:
            yield ownership.Writes(OWNER, put=(flag_as_moved(self._flagged),))
        yield ownership.Writes(OWNER, delete=tuple(row.key for row in self.gone.values()))
        states = map(conversion.comment_state, self.gone.values())
        yield in_transaction.counter_writes(self.name, [Counted(state, None) for state in states])


def _has_been_seen(row: comment_rows.CommentRow) -> bool:
    """Return whether readers have seen a comment and a directory may still show its changes."""
    return bool(row.unfolded or row.shelved or row.listed or row.changed is not None)


def stored_rows(ids: Iterable[str]) -> list[comment_rows.CommentRow]:
    """Return the rows of those comments that are stored."""
    rows = reads.get_multi([comment_rows.comment_key(comment_id) for comment_id in ids])
    return [row for row in rows if row is not None]


def _by_thread(
    rows: Iterable[comment_rows.CommentRow],
) -> Iterator[tuple[records.ThreadName, list[comment_rows.CommentRow]]]:
    groups: dict[str, list[comment_rows.CommentRow]] = {}
    for row in rows:
        groups.setdefault(row.thread, []).append(row)
    for here in groups.values():
        yield records.ThreadName(here[0].site, here[0].thread_id), here


def _ancestors(
    rows: Mapping[str, comment_rows.CommentRow],
) -> dict[str, comment_rows.CommentRow]:
    """Read the rows above these rows, level by level."""
    above: dict[str, comment_rows.CommentRow] = {}
    level: Iterable[comment_rows.CommentRow] = rows.values()
    while ids := {parent_id for parent_id in map(conversion.parent_id, level) if parent_id} - {
        *rows,
        *above,
    }:
        level = stored_rows(sorted(ids))
        above.update((row.key.id(), row) for row in level)
    return above


def _has_below(
    row: comment_rows.CommentRow,
    without: Mapping[str, str],
    where: tuple[tuple[str, str, object], ...] = (),
) -> bool:
    """Return whether a stored comment is below a row, except those in `without` (hashes by id)."""
    if not row.child_count:
        return False
    low, high = sorthash.subtree_range(row.sort_hash)
    passed = {key for key, sort_hash in without.items() if low < sort_hash < high}
    where = (("thread", "=", row.thread), *where, ("sort_hash", ">", low), ("sort_hash", "<", high))
    ids = reads.names("Comment", where, order=("sort_hash",), limit=len(passed) + 1)
    return not passed.issuperset(ids)


def _first(name: records.ThreadName, without: Collection[str]) -> comment_rows.CommentRow | None:
    """Read a thread's first comment that is not among these comments."""
    where = (("thread", "=", comment_rows.thread_key_name(name)),)
    ids = reads.names("Comment", where, order=("sort_hash",), limit=len(without) + 1)
    others = [comment_id for comment_id in ids if comment_id not in without]
    return next(iter(stored_rows(others[:1])), None)


def _rows_with_votes(rows: Sequence[comment_rows.CommentRow]) -> list[comment_rows.CommentRow]:
    """Return the comments that have votes, or may have uncounted votes."""
    due = reads.get_multi([vote_rows.votes_due_key(row.key.id()) for row in rows])
    return [
        row
        for row, waits in zip(rows, due, strict=True)
        if waits is not None or row.cast_up or row.cast_down
    ]


def _event_writes(
    changes: Sequence[tuple[comment_rows.CommentRow, Counted]],
    run: str,
    *,
    now: datetime,
    after: int = 0,
) -> tuple[tuple[ownership.Writes, ...], tuple[str, ...]]:
    """Write the events of changes, and return their ids. `after` is added to their revisions."""
    counted = [change for _, change in changes]
    writes_by_event: dict[str, ownership.Writes] = {}
    for part in outbox.parts(counted) if counted else ():
        row = changes[part.start][0]
        event = outbox.event_id(row.key.id(), row.revision + after, run)
        writes_by_event[event] = outbox.event_writes(
            outbox.EventKind.UNDONE, event, counted[part], now=now
        )
    return tuple(writes_by_event.values()), tuple(writes_by_event)
