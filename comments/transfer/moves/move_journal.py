"""The journal of moves of threads, from which a move continues and is undone.

    Job       key: "moves/{site id}/{id}"; `position` is a Move as JSON
    MovePart  key: "{site id}/{id}/{number}"; `content` contains MoveEntry values as JSON: the
              threads that one transaction moves, and what an undo must know about them

The parts are stored before the move begins, so a move that began always has all of its parts.
"""

import enum
import itertools
import secrets
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from comments import errors
from comments.domain import decoders, records
from comments.store import ownership, reads, transactions
from comments.store.models import event_rows, schema

OWNER = "move_journal"
AT_ONCE = 10  # Threads in one part, which one transaction moves
TERM = timedelta(days=30)  # A move can be undone for this time.
PLACES_AT_ONCE = 5_000  # Former places in one part
_PREFIX = "moves/"
_MOST_PARTS = 500  # As many as a move in the console has
_STORED_AT_ONCE = 50  # Parts in one transaction
_BEHIND = "\U0010ffff"


class MoveState(enum.StrEnum):
    """The state of a move. A move in `PLANNED` has not begun; its parts may be incomplete."""

    PLANNED = "planned"
    RUNNING = "running"
    DONE = "done"
    UNDOING = "undoing"
    UNDONE = "undone"


class Join(msgspec.Struct, frozen=True):
    """What the undo of a merge or a split must know about it.

    `source` and `target` are stored ids. For a merge, `row` is the source's row, and `aliases` are
    the other ids of the source. For a split, `comment` is the comment that was split off, and
    `answered` the comment that it answered, or "". `is_new` tells whether the split created the
    target. `own` is the target's value before the operation, and `shape` its value afterwards.
    `comments` is the number of moved comments. `places` is the number of parts that contain former
    places of comments; each further part is a follower of the source (`CarriedFollower`). From
    `due` on, the buckets of the thread that the merge emptied can be deleted.
    """

    kind: Literal["merge", "split"]
    source: str
    target: str
    shape: int
    comment: str = ""
    answered: str = ""
    row: str = ""
    aliases: tuple[str, ...] = ()
    is_new: bool = False
    own: tuple[str, ...] = ()
    places: int = 0
    comments: int = 0
    due: datetime | None = None


class FormerPlace(msgspec.Struct, frozen=True, array_like=True):
    """The place of a comment before a merge or a split, if the comment moved or got another one.

    `answered` is the comment that it answered ("" for none), and `status` its status, if the merge
    has changed them.
    """

    comment: str
    parent: str
    number: int
    has_moved: bool
    answered: str | None = None
    status: records.Status | None = None


class CarriedFollower(msgspec.Struct, frozen=True, array_like=True):
    """A follower who now follows the target; `is_new` tells whether they did not before."""

    member: str
    is_new: bool


class Move(msgspec.Struct, frozen=True):
    """One operation. `next` is the number of finished parts of the move, or of its undo.

    `threads`, `moved` and `restored` are numbers of threads. A thread that another operation or a
    new thread has overtaken is not moved, and not restored. `join` describes a merge or a split.
    """

    site: str
    id: str
    what: str
    actor: records.Actor
    began: datetime
    parts: int
    threads: int
    state: MoveState = MoveState.PLANNED
    next: int = 0
    moved: int = 0
    restored: int = 0
    join: Join | None = None

    @property
    def is_unfinished(self) -> bool:
        """Return whether the move, or its undo, has begun and has parts left."""
        return self.state in {MoveState.RUNNING, MoveState.UNDOING}


class MoveEntry(msgspec.Struct, array_like=True):
    """A thread of a part, as planned and as moved.

    `was` is the address that the thread had if the move replaced it, and `owned` whether a
    moderator had set it. `made` tells whether the move added the alias.
    """

    stored: str
    old: str
    new: str
    url: str
    moved: bool = False
    made: bool = False
    was: str | None = None
    owned: bool = False


_MOVE = decoders.json(Move)
_PLACES = decoders.json(list[FormerPlace])
_FOLLOWER = decoders.json(CarriedFollower)
_ENTRIES = decoders.json(list[MoveEntry])


def key(site: str, move: str) -> schema.RowKey:
    return event_rows.job_key(f"{_PREFIX}{site}/{move}")


def get(site: str, move: str) -> Move | None:
    """Read a move, in or outside a transaction."""
    row = reads.get(key(site, move))
    return None if row is None else _MOVE.decode(row.position)


def part(move: Move, number: int) -> list[MoveEntry]:
    """Read the entries of a part."""
    row = reads.get(_part_key(move, number))
    return [] if row is None else _ENTRIES.decode(row.content)


def check_idle(site: str) -> None:
    """Check that no move, merge, split or undo of the site is unfinished.

    Raises:
        errors.MoveRefused: one of them is.
    """
    other = next((move for move in of_site(site) if move.is_unfinished), None)
    if other is not None:
        raise errors.MoveRefused(
            f"The move {other.id} of this site is not finished. The service continues it; wait "
            f"until `thread moves {site}` lists it as done or undone."
        )


def former_places(move: Move, count: int) -> list[FormerPlace]:
    """Read the first `count` parts of a merge or a split."""
    rows = reads.get_multi([_part_key(move, number) for number in range(count)])
    return [place for row in rows if row is not None for place in _PLACES.decode(row.content)]


def place_writes(move: Move, places: Sequence[FormerPlace]) -> ownership.Writes:
    """Store the former places of a merge or a split as the parts of its journal."""
    parts = range(0, len(places), PLACES_AT_ONCE)
    rows = (
        _row(move, number, places[start : start + PLACES_AT_ONCE])
        for number, start in enumerate(parts)
    )
    return ownership.Writes(OWNER, put=tuple(rows))


def follower(move: Move, number: int) -> CarriedFollower:
    """Read a part that contains a follower."""
    row = reads.get(_part_key(move, number))
    return _FOLLOWER.decode(row.content)


def follower_writes(move: Move, number: int, carried: CarriedFollower) -> ownership.Writes:
    return ownership.Writes(OWNER, put=(_row(move, number, carried),))


def writes(
    move: Move, number: int | None = None, entries: Sequence[MoveEntry] = ()
) -> ownership.Writes:
    """Store a move, and the entries of one of its parts."""
    position = msgspec.json.encode(move).decode()
    rows: list[schema.StoredRow] = [
        event_rows.JobRow(key=key(move.site, move.id), position=position)
    ]
    if number is not None:
        rows.append(_part_row(move, number, entries))
    return ownership.Writes(OWNER, put=tuple(rows))


def plan(
    site: str, what: str, actor: records.Actor, entries: Sequence[MoveEntry], *, now: datetime
) -> Move:
    """Store a move that has not begun, with all of its parts."""
    parts = -(-len(entries) // AT_ONCE)
    move = Move(site, secrets.token_hex(4), what, actor, now, parts, len(entries))
    transactions.transaction(lambda: transactions.apply(writes(move)))
    numbers = iter(range(parts))
    while some := list(itertools.islice(numbers, _STORED_AT_ONCE)):
        rows = tuple(
            _part_row(move, number, entries[number * AT_ONCE : (number + 1) * AT_ONCE])
            for number in some
        )
        _apply(ownership.Writes(OWNER, put=rows))
    return move


def of_site(site: str) -> list[Move]:
    """Return the moves of a site, newest first."""
    return sorted(_moves(f"{_PREFIX}{site}/"), key=lambda move: move.began, reverse=True)


def left_ids(site: str) -> set[str]:
    """Return the ids that threads have left by moves and merges that can be undone.

    Of a longer move, only the first `_MOST_PARTS` parts are read.
    """
    left: set[str] = set()
    for move in of_site(site):
        if move.state is not MoveState.DONE:
            continue
        if move.join is None:
            for number in range(min(move.parts, _MOST_PARTS)):
                left.update(entry.old for entry in part(move, number) if entry.moved)
        elif move.join.kind == "merge":
            left.update((move.join.source, *move.join.aliases))
    return left


def every() -> Iterator[Move]:
    """Yield the moves of all sites."""
    yield from _moves(_PREFIX)


def expire(now: datetime) -> None:
    """Delete the journals of moves that can no longer be undone."""
    for move in every():
        if move.is_unfinished or now - move.began < TERM:
            continue
        keys = [_part_key(move, number) for number in range(move.parts)]
        for start in range(0, len(keys), _STORED_AT_ONCE):
            _apply(ownership.Writes(OWNER, delete=tuple(keys[start : start + _STORED_AT_ONCE])))
        _apply(ownership.Writes(OWNER, delete=(key(move.site, move.id),)))


def _apply(changed: ownership.Writes) -> None:
    transactions.transaction(lambda: transactions.apply(changed))


def _moves(prefix: str) -> Iterator[Move]:
    where = (("__key__", ">=", prefix), ("__key__", "<", f"{prefix}{_BEHIND}"))
    for message in reads.fetch(reads.Query("Job", where, ("__key__",))):
        yield _MOVE.decode(message.properties["position"].string_value)


def _part_key(move: Move, number: int) -> schema.RowKey:
    return event_rows.move_part_key(f"{move.site}/{move.id}/{number:06}")


def _part_row(move: Move, number: int, entries: Sequence[MoveEntry]) -> event_rows.MovePartRow:
    return _row(move, number, list(entries))


def _row(move: Move, number: int, content: object) -> event_rows.MovePartRow:
    text = msgspec.json.encode(content).decode()
    return event_rows.MovePartRow(key=_part_key(move, number), content=text)
