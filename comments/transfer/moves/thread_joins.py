"""Merge two threads into one, split a discussion off into another thread, and undo both.

    move = thread_joins.begin(site, plan, actor, now=now)  # `join_plan` makes plans
    move = thread_moves.run_to_end(move)
    thread_moves.undo(site.id, move.id, actor, now=now)

One transaction moves the comments (`tree.schemes.transplant`), changes the aliases and writes the
journal. Readers therefore see the state before or after, and a crash leaves nothing half done. A
merge deletes the thread that it empties, and hides the comments that the other thread has too
(`join_plan.find_copies`); the ids of this thread become aliases of the other one.
The directory and the buckets of this thread stay for a while: readers whose process does not know
the aliases yet see the last compacted state before the merge. Its followers then follow the other
thread, one per transaction.

An undo moves the comments back, with the comments that answer them. Other comments that were posted
later stay. The comments get their former numbers back; those of the target keep their numbers if it
has been merged, split or moved to another scheme in the meantime.
"""

import functools
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from comments import errors
from comments.domain import decoders, records
from comments.domain.counters import counting
from comments.domain.records import Status
from comments.events import audit_log, backlog
from comments.notifications import reader_follows, subscriptions, thread_followers
from comments.reading.compaction import compactor, leftovers
from comments.reading.materialized import view_cache
from comments.sites import site_settings
from comments.store import connection, reads, transactions
from comments.store.large_sets import membership
from comments.store.models import comment_rows, conversion
from comments.threads import naming, thread_aliases, thread_terms
from comments.transfer.moves import join_plan, move_journal
from comments.transfer.moves.move_journal import CarriedFollower, FormerPlace, Join, Move, MoveState
from comments.tree.schemes import transplant
from comments.tree.schemes.transplant import StoredTree, ThreadTree

MERGE, SPLIT, UNDO = "merge-threads", "split-thread", "undo-move"  # Verbs in the audit log
_KEPT = timedelta(minutes=2)  # Longer than any process uses an old copy of a site
_NAMES = ("title", "url", "categories")
_ROW = decoders.json(dict[str, Any])
_Rows = Mapping[str, records.Comment]

Change = Callable[[records.Site], tuple[Move, Sequence[str]]]  # Returns also the events to deliver


def begin(
    site: records.Site, plan: join_plan.JoinPlan, actor: records.Actor, *, now: datetime
) -> Move:
    """Merge or split. Afterwards, the followers of a merged thread begin to follow the other one.

    Raises:
        errors.MoveRefused: the plan has become impossible, or a move of the site is unfinished.
        errors.Conflict: see `transplant.apply`.
        errors.ThreadMoved: the id of a new thread now belongs to another thread. Plan again.
    """
    move_journal.check_idle(site.id)
    source, target = plan.source, plan.target
    act = audit_log.Act(actor, SPLIT if plan.comment else MERGE)
    move = Move(site.id, secrets.token_hex(4), plan.what, actor, now, 0, 1, moved=1)
    if not plan.comment:
        compactor.compact(site.scheme, records.ThreadName(site.id, source))

    def change(site: records.Site) -> tuple[Move, Sequence[str]]:
        divided = join_plan.divide(site, source, target, plan.comment)
        old, new = divided.source, divided.target
        join = Join(
            kind="split" if plan.comment else "merge", source=source, target=target,
            comment=plan.comment, is_new=divided.is_new, shape=(new.thread.shape or 0) + 1,
            own=tuple(new.thread.own), comments=len(divided.moved),
        )  # fmt: skip
        if plan.comment:
            answered = old.rows[plan.comment].reply_to or ""
            join = msgspec.structs.replace(join, answered=answered)
        else:
            ids = _ids(old.thread)
            join = msgspec.structs.replace(
                join, row=_encode(old.thread), aliases=tuple(ids[1:]), due=now + _KEPT
            )
            _change_aliases(site.id, put=dict.fromkeys(ids, target))
        if divided.is_new:
            new.thread.populate(url=plan.url, title=old.thread.title)
        # The comments that join the thread must not change its title, address and categories.
        new.thread.own = sorted({*new.thread.own, *_NAMES})
        events = _apply((old, new), divided.trees, move.id, now)
        joined = divided.trees[-1].rows
        places = [*_places(old.rows, divided.moved, joined, has_moved=True)]
        places += _places(new.rows, new.rows, joined, has_moved=False)
        join = msgspec.structs.replace(join, places=-(-len(places) // move_journal.PLACES_AT_ONCE))
        begun = msgspec.structs.replace(
            move, join=join, parts=join.places, next=join.places,
            state=MoveState.DONE if plan.comment else MoveState.RUNNING,
        )  # fmt: skip
        transactions.apply(
            move_journal.writes(begun), move_journal.place_writes(begun, places),
            audit_log.entry_writes(
                act, site.id, "site", before="", after=f"{join.comments} comments", now=now
            ),
        )  # fmt: skip
        return begun, events

    return _run(move, (source, target), act, change)


def undo(move: Move, join: Join, actor: records.Actor, *, now: datetime) -> Move:
    """Move the comments of a finished merge or split back. Afterwards, the followers follow.

    Raises:
        errors.MoveRefused: one of the threads has been merged, moved or deleted in the meantime.
        errors.Conflict: see `transplant.apply`.
    """
    act = audit_log.Act(actor, UNDO)

    def change(site: records.Site) -> tuple[Move, Sequence[str]]:
        seen = move_journal.get(move.site, move.id)
        if seen != move:
            raise errors.MoveRefused(f"The move {move.id} has changed in the meantime.")
        places = move_journal.former_places(move, join.places)
        stored, trees = _divide_back(site, join, places)
        events = _apply(stored, trees, f"{move.id}.u", now)
        is_left = move.parts > join.places
        undone = msgspec.structs.replace(
            move, join=msgspec.structs.replace(join, due=None), next=0,
            state=MoveState.UNDOING if is_left else MoveState.UNDONE, restored=1,
        )  # fmt: skip
        note = audit_log.entry_writes(
            act, site.id, "site", before="", after=f"{join.comments} comments", now=now
        )
        transactions.apply(move_journal.writes(undone), note)
        return undone, events

    return _run(move, (join.source, join.target), act, change)


def _run(move: Move, threads: Iterable[str], act: audit_log.Act, change: Change) -> Move:
    """Run a change in one transaction, and tell this process about it."""
    names = [records.ThreadName(move.site, thread) for thread in threads]

    def body() -> tuple[Move, Sequence[str]]:
        stored = move_journal.get(move.site, move.id)
        if transactions.may_have_run() and audit_log.is_done(act) and stored is not None:
            return stored, ()
        row = reads.get(comment_rows.site_key(move.site))
        if row is None:
            raise errors.MoveRefused(f"There is no site {move.site}.")
        return change(conversion.site_record(row))

    with connection.within(join_plan.SECONDS):
        done, events = transactions.transaction(body, line=f"{move.site}/{names[1].id}")
    site_settings.COPIES.get().drop(move.site)
    for name in names:
        thread_terms.COPIES.get().drop(name)
        view_cache.HOLDINGS.get().forget(name)
        backlog.note_changes(name)
    for event in events:
        backlog.tell(event)
    return done


# --- The threads after an undo --------------------


def _divide_back(
    site: records.Site, join: Join, places: Sequence[FormerPlace]
) -> tuple[tuple[StoredTree, ...], tuple[ThreadTree, ...]]:
    """Return the stored threads, and the threads after the undo."""
    source, target = join_plan.read(site, join.source), join_plan.read(site, join.target)
    if target is None or (source is None) != bool(join.row):
        gone = join.target if target is None else join.source
        raise errors.MoveRefused(f"The thread {gone} has changed too much since then.")
    before = {place.comment: place for place in places}
    back = transplant.branch(target.rows, [place.comment for place in places if place.has_moved])
    moved = {key: _replace(target.rows[key], before) for key in back}
    rest = {key: row for key, row in target.rows.items() if key not in back}
    if (target.thread.shape or 0) == join.shape:
        rest = {key: _replace(row, before) for key, row in rest.items()}
    if join.comment in moved and source is not None and join.answered in source.rows:
        moved[join.comment] = msgspec.structs.replace(moved[join.comment], reply_to=join.answered)
    thread = source.thread if source else _restore(site.id, join, target, moved)
    own = ThreadTree(thread, {**(source.rows if source else {}), **moved})
    own.thread.pins = [*own.thread.pins, *(key for key in target.thread.pins if key in moved)]
    own.thread.pins = list(dict.fromkeys(key for key in own.thread.pins if key in own.rows))
    target.thread.pins = [key for key in target.thread.pins if key in rest]
    if not join.is_new and not {*_NAMES}.issubset(join.own):
        target.thread.own = list(join.own)
    stored = tuple(tree for tree in (source, target) if tree is not None)
    if not rest:
        transactions.apply(leftovers.deletion_writes(_name(target.thread)))
    if join.is_new and not rest:
        transactions.apply(*thread_aliases.removal_writes(_name(target.thread)))
        return stored, (own,)
    return stored, (own, ThreadTree(target.thread, rest))


def _restore(
    site: str, join: Join, target: StoredTree, moved: Mapping[str, records.Comment]
) -> comment_rows.ThreadRow:
    """Restore the thread that a merge has deleted, with its ids."""
    if target.thread.alias in {join.source, *join.aliases}:
        raise errors.MoveRefused(
            f"The thread {join.target} has moved to {target.thread.alias}. Move it back first."
        )
    aliases = dict.fromkeys(join.aliases, join.source)
    _change_aliases(site, put=aliases, gone=(join.source,), only=join.target)
    thread = _decode(site, join, target.messages, moved)
    # Slugs that the comments had in the target stay free, so links with them stay unambiguous.
    thread.child_count = max(thread.child_count, target.thread.child_count)
    return thread


def _replace(row: records.Comment, before: Mapping[str, FormerPlace]) -> records.Comment:
    """Return a comment with its former place, if it had another one."""
    place = before.get(row.id)
    if place is None:
        return row
    is_same = place.status is None or row.status is not Status.HIDDEN
    return msgspec.structs.replace(
        row, parent=place.parent or None, number=place.number,
        reply_to=row.reply_to if place.answered is None else place.answered or None,
        status=row.status if is_same else place.status,
    )  # fmt: skip


def _places(
    rows: _Rows, ids: Iterable[str], joined: _Rows, *, has_moved: bool
) -> Iterable[FormerPlace]:
    """Return the places of comments before the operation, which has `joined` them."""
    for key in ids:
        row, after = rows[key], joined[key]
        answered = None if after.reply_to == row.reply_to else row.reply_to or ""
        status = None if after.status is row.status else row.status
        yield FormerPlace(key, row.parent or "", row.number, has_moved, answered, status)


# --- The rows of threads and aliases --------------------


def _encode(thread: comment_rows.ThreadRow) -> str:
    """Encode a thread's row for the journal, without the values that its comments brought."""
    kept = {*thread.COLUMNS} - {name for name in _NAMES if name not in thread.own}
    return msgspec.json.encode({name: getattr(thread, name) for name in kept}).decode()


def _decode(
    site: str, join: Join, messages: Mapping[str, Any], rows: Mapping[str, records.Comment]
) -> comment_rows.ThreadRow:
    """Restore a thread's row. Its naming comment names it again, if readers may see it."""
    values = _ROW.decode(join.row)
    for name in ("named_at", "created", "active"):
        values[name] = values[name] and datetime.fromisoformat(values[name])
    thread = comment_rows.ThreadRow(
        key=comment_rows.thread_key(records.ThreadName(site, join.source)), **values
    )
    thread.shards = 1
    thread.filed = (thread.filed or 0) + 1
    row = rows.get(thread.named_by or "")
    if row is not None and row.status is Status.APPROVED:
        brought = naming.decode(messages[row.id].properties["brought"].string_value)
        naming.set_fields(thread, brought, [name for name in _NAMES if name not in thread.own])
    return thread


def _ids(thread: comment_rows.ThreadRow) -> list[str]:
    """Return all ids of a stored thread, beginning with the stored one."""
    where = [("thread", "=", thread.key.id())]
    aliases = reads.fetch(reads.Query("ThreadAlias", where=where))
    return [thread.thread, *sorted(row.properties["alias"].string_value for row in aliases)]


def _change_aliases(
    site: str, *, put: Mapping[str, str], gone: Sequence[str] = (), only: str = ""
) -> None:
    """Let ids lead to stored threads, and remove others; with `only`, those that lead to it now."""
    keys = [comment_rows.thread_alias_key(records.ThreadName(site, name)) for name in (*put, *gone)]
    row, *aliases = reads.get_multi([comment_rows.site_key(site), *keys])
    leading = {alias.alias for alias in aliases if alias is not None and alias.thread_id == only}
    if not leading.issuperset(gone):
        raise errors.MoveRefused(f"The thread {gone[0]} has been merged or moved since then.")
    added = [
        thread_aliases.alias_row(site, name, stored)
        for name, stored in put.items()
        if not only or name in leading
    ]
    removed = keys[len(put) :]
    transactions.apply(thread_aliases.change_writes(row, added=added, removed=removed))


def _apply(
    stored: Sequence[StoredTree], trees: Sequence[ThreadTree], run: str, now: datetime
) -> tuple[str, ...]:
    left = {
        tree.thread.key.id(): [
            counting.thread_digest(
                comment_rows.thread_key_name(records.ThreadName(tree.thread.site, name))
            )
            for name in _ids(tree.thread)
        ]
        for tree in stored
    }
    return transplant.apply(stored, trees, left, run=run, now=now)


def _name(thread: comment_rows.ThreadRow) -> records.ThreadName:
    return records.ThreadName(thread.site, thread.thread)


# --- What follows the transaction --------------------


def step(move: Move, join: Join) -> Move:
    """Let the next follower follow the other thread, and return the move afterwards.

    If another process has done this, nothing changes.
    """
    source = records.ThreadName(move.site, join.source)
    undoes = move.state is MoveState.UNDOING
    page = membership.page(thread_followers.set_of(source), limit=1)
    member = "" if undoes else "".join(page.ids)
    token, now = thread_followers.new_token(), datetime.now(UTC)

    def body() -> tuple[Move, thread_followers.FollowerChanges | None]:
        stored = move_journal.get(move.site, move.id)
        if stored is None:
            raise errors.MoveRefused(f"The site {move.site} has no move {move.id}.")
        if (stored.state, stored.next) != (move.state, move.next):
            return stored, None
        changes = thread_followers.FollowerChanges(token, now)
        change = _carry_back if undoes else _carry_next
        after = change(move, join, member, changes)
        transactions.apply(move_journal.writes(after), *changes.writes)
        return after, changes

    after, changes = transactions.transaction(body)
    if changes is not None:
        changes.tell()
    return after


def _carry_next(
    move: Move, join: Join, member: str, changes: thread_followers.FollowerChanges
) -> Move:
    if not member:
        return msgspec.structs.replace(move, state=MoveState.DONE)
    is_new = _carry(member, (move.site, join.source, join.target), changes, keeps=False)
    part = CarriedFollower(member, is_new)
    changes.writes.append(move_journal.follower_writes(move, move.parts, part))
    return msgspec.structs.replace(move, next=move.next + 1, parts=move.parts + 1)


def _carry_back(move: Move, join: Join, _: str, changes: thread_followers.FollowerChanges) -> Move:
    part = move.parts - 1 - move.next
    if part < join.places:
        return msgspec.structs.replace(move, state=MoveState.UNDONE)
    carried = move_journal.follower(move, part)
    threads = (move.site, join.target, join.source)
    _carry(carried.member, threads, changes, keeps=not carried.is_new)
    return msgspec.structs.replace(move, next=move.next + 1)


def _carry(
    member: str,
    threads: tuple[str, str, str],
    changes: thread_followers.FollowerChanges,
    *,
    keeps: bool,
) -> bool:
    site, *ids = threads
    source, target = (records.ThreadName(site, thread) for thread in ids)
    if member.startswith(thread_followers.READER):
        author = member.removeprefix(thread_followers.READER)
        return reader_follows.carry(author, source, target, changes, keeps=keeps)
    return subscriptions.carry(member, source, target, changes, keeps=keeps)


def expire(now: datetime) -> None:
    """Delete the directories and buckets of the threads that merges have emptied."""
    for move in move_journal.every():
        if move.join is not None and move.join.due is not None and move.join.due <= now:
            transactions.transaction(functools.partial(_sweep, move))


def _sweep(move: Move) -> None:
    join = move.join
    if join is None or move_journal.get(move.site, move.id) != move:
        return
    name = records.ThreadName(move.site, join.source)
    swept = msgspec.structs.replace(move, join=msgspec.structs.replace(join, due=None))
    transactions.apply(move_journal.writes(swept))
    if reads.get(comment_rows.thread_key(name)) is None:
        transactions.apply(leftovers.deletion_writes(name))
