"""Move threads to other ids, and undo moves.

    move = thread_moves.begin(site, plan, "old.example=new.example", actor, now=now)
    move = thread_moves.run_to_end(move)
    thread_moves.undo(site.id, move.id, actor, now=now)

One transaction moves the threads of one part of the journal, and advances the journal. A thread
therefore always shows either its old or its new id, with all of its comments, and both ids lead to
it. If a process dies, `finish` continues the move in another one.

A move and its undo pass over threads that have changed since they were planned: a thread that shows
another id now, and a new id that leads to another thread. An undo also passes over threads whose
old id no page has by the site's present rules. The journal contains the numbers.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from comments import errors
from comments.domain import records
from comments.domain.ids import thread_ids
from comments.events import audit_log, backlog
from comments.sites import site_settings
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, conversion, schema
from comments.threads import comment_flags, details, naming, thread_aliases
from comments.transfer.moves import move_journal, move_plan, thread_joins
from comments.transfer.moves.move_journal import Move, MoveEntry, MoveState

MOVE, UNDO = "move-threads", thread_joins.UNDO  # Verbs in the audit log


def begin(
    site: records.Site, plan: move_plan.Plan, what: str, actor: records.Actor, *, now: datetime
) -> Move:
    """Begin a move. From now on, it ends even if this process dies. `what` describes the move.

    Raises:
        errors.MoveRefused: the plan moves nothing, or another move of the site is unfinished.
    """
    if not plan.moves:
        raise errors.MoveRefused("No thread moves.")
    move_journal.check_idle(site.id)
    entries = [MoveEntry(*msgspec.structs.astuple(move)) for move in plan.moves]
    planned = move_journal.plan(site.id, what, actor, entries, now=now)
    return _switch(planned, MoveState.RUNNING, audit_log.Act(actor, MOVE), now=now)


def undo(site_id: str, move_id: str, actor: records.Actor, *, now: datetime) -> Move:
    """Begin to undo a move. From now on, the undo ends even if this process dies.

    Raises:
        errors.MoveRefused: there is no such move, it is too old, it is already undone, or another
            move of the site is unfinished.
    """
    move = move_journal.get(site_id, move_id)
    if move is None:
        raise errors.MoveRefused(f"The site {site_id} has no move {move_id}.")
    move_journal.check_idle(site_id)
    if move.state is not MoveState.DONE:
        raise errors.MoveRefused(f"The move {move_id} is {move.state}, so it cannot be undone.")
    if now - move.began > move_journal.TERM:
        raise errors.MoveRefused(
            f"The move {move_id} began more than {move_journal.TERM.days} days ago."
        )
    if move.join is not None:
        return thread_joins.undo(move, move.join, actor, now=now)
    return _switch(move, MoveState.UNDOING, audit_log.Act(actor, UNDO), now=now)


def run_to_end(move: Move, progress: Callable[[Move], None] = lambda _: None) -> Move:
    """Run the remaining parts of a move, or of its undo, and return its final state.

    Raises:
        errors.Overloaded: the store did not answer in time; `finish` continues the move later.
    """
    while move.is_unfinished:
        move = _run_part(move)
        progress(move)
    return move


def finish(steps: int) -> int:
    """Continue all unfinished moves and undos for up to `steps` parts; return how many ran."""
    left = steps
    for unfinished in move_journal.every():
        move = unfinished
        with contextlib.suppress(errors.MoveRefused):  # The site was erased in the meantime
            while move.is_unfinished and left > 0:
                move = _run_part(move)
                left -= 1
    return steps - left


def _switch(move: Move, state: MoveState, act: audit_log.Act, *, now: datetime) -> Move:
    """Begin a move or its undo, with an entry in the audit log."""
    begun = msgspec.structs.replace(move, state=state, next=0)
    moved = "1 thread" if move.threads == 1 else f"{move.threads} threads"

    def body() -> Move:
        stored = move_journal.get(move.site, move.id)
        if transactions.may_have_run() and audit_log.is_done(act):
            return begun
        if stored is None or stored.state is not move.state:
            raise errors.MoveRefused(f"The move {move.id} has changed in the meantime.")
        note = audit_log.entry_writes(act, move.site, "site", before="", after=moved, now=now)
        transactions.apply(move_journal.writes(begun), note)
        return begun

    return transactions.transaction(body)


@dataclasses.dataclass(slots=True)
class _PartChanges:
    """What one transaction changes."""

    added: list[comment_rows.ThreadAliasRow] = dataclasses.field(default_factory=list)
    removed: list[schema.RowKey] = dataclasses.field(default_factory=list)
    writes: list[ownership.Writes] = dataclasses.field(default_factory=list)
    names: list[records.ThreadName] = dataclasses.field(default_factory=list)


def _run_part(move: Move) -> Move:
    """Run the next part of a move or its undo in one transaction, and return the move afterwards.

    If another process has run the part, nothing changes.
    """
    if move.join is not None:
        return thread_joins.step(move, move.join)
    changed, after = transactions.transaction(functools.partial(_change_part, move))
    site_settings.COPIES.get().drop(move.site)
    for name in changed:
        backlog.note_erasure(name)
    return after


def _change_part(move: Move) -> tuple[list[records.ThreadName], Move]:
    stored, site = move_journal.get(move.site, move.id), reads.get(comment_rows.site_key(move.site))
    if stored is None or site is None:
        raise errors.MoveRefused(f"The site {move.site} has no move {move.id}.")
    if (stored.state, stored.next) != (move.state, move.next):
        return [], stored
    undoes = move.state is MoveState.UNDOING
    number = move.parts - 1 - move.next if undoes else move.next
    entries = move_journal.part(move, number)
    names = [records.ThreadName(move.site, entry.stored) for entry in entries]
    threads = reads.get_multi([comment_rows.thread_key(name) for name in names])
    changes = _PartChanges()
    run = _restore_all if undoes else _move_all
    run(conversion.site_record(site), entries, threads, changes)
    count = len(changes.names)
    after = msgspec.structs.replace(
        move,
        next=move.next + 1,
        moved=move.moved + (0 if undoes else count),
        restored=move.restored + (count if undoes else 0),
    )
    if after.next >= move.parts:
        after = msgspec.structs.replace(after, state=MoveState.UNDONE if undoes else MoveState.DONE)
    aliases = thread_aliases.change_writes(site, added=changes.added, removed=changes.removed)
    transactions.apply(move_journal.writes(after, number, entries), aliases, *changes.writes)
    return changes.names, after


def _move_all(
    site: records.Site,
    entries: Sequence[MoveEntry],
    threads: Sequence[comment_rows.ThreadRow | None],
    changes: _PartChanges,
) -> None:
    targets = [records.ThreadName(site.id, entry.new) for entry in entries]
    others = reads.get_multi([comment_rows.thread_key(name) for name in targets])
    aliases = reads.get_multi([comment_rows.thread_alias_key(name) for name in targets])
    for entry, thread, other, alias in zip(entries, threads, others, aliases, strict=True):
        is_own = entry.new == entry.stored or (other is None and alias is None)
        is_own |= alias is not None and alias.thread_id == entry.stored
        if thread is None or (thread.alias or entry.stored) != entry.old or not is_own:
            continue
        entry.moved = True
        entry.made = alias is None and entry.new != entry.stored
        if entry.made:
            changes.added.append(thread_aliases.alias_row(site.id, entry.new, entry.stored))
        thread.alias = "" if entry.new == entry.stored else entry.new
        if entry.url and entry.url != thread.url:
            entry.was, entry.owned = thread.url, "url" in thread.own
            _store(thread, entry.url, changes)
        else:
            _store(thread, None, changes)


def _restore_all(
    site: records.Site,
    entries: Sequence[MoveEntry],
    threads: Sequence[comment_rows.ThreadRow | None],
    changes: _PartChanges,
) -> None:
    for entry, thread in zip(entries, threads, strict=True):
        if thread is None or not entry.moved or (thread.alias or entry.stored) != entry.new:
            continue
        if thread_ids.is_replaced(entry.old, site):
            continue
        if entry.made:
            name = records.ThreadName(site.id, entry.new)
            changes.removed.append(comment_rows.thread_alias_key(name))
        thread.alias = "" if entry.old == entry.stored else entry.old
        is_ours = entry.was is not None and thread.url == entry.url and "url" in thread.own
        _store(thread, entry.was if is_ours else None, changes, inherits=not entry.owned)


def _store(
    thread: comment_rows.ThreadRow,
    url: str | None,
    changes: _PartChanges,
    *,
    inherits: bool = False,
) -> None:
    """Store a thread, with another address unless `url` is None.

    With `inherits`, the address comes from the thread's comments again.
    """
    naming.forget(thread)
    changes.names.append(records.ThreadName(thread.site, thread.thread))
    if url is None:
        changes.writes.append(ownership.Writes(comment_flags.OWNER, put=(thread,)))
    elif inherits:
        changes.writes.append(
            details.field_writes(thread, naming.Brought(), fields=(), inherits=("url",))
        )
    else:
        wanted = naming.Brought(url=url)
        changes.writes.append(details.field_writes(thread, wanted, fields=("url",)))
