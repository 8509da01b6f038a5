"""Switch a thread to another scheme, in one transaction.

The transaction reads the thread and all its comments, computes the new places (`reshaping`), and
patches the comments. One commit therefore moves the whole tree. A patch contains only the place,
not the text, so tens of thousands of comments fit into one commit.

Every post reads the thread's row in its transaction. A post that races with the switch is therefore
either one of the comments that the switch moves, or placed by the new scheme. All comments of a
thread have the thread's `shape`. If any place changes, the switch increments the thread's `shape`
and writes the new `shape` to every comment. A reader that combines data of different shapes notices
the difference, and a page cursor of an earlier shape is refused.

Every comment gets a new revision, so no process uses a copy with the previous place. The texts, the
times of changes and the revisions of texts stay the same, so nobody sees an edit. One comment is
flagged as moved, so no process uses the previous buckets after the commit
(`deltas.DeltaRow.moved`). Comments that become listed or unlisted are also flagged, and the site's
counters count them from events.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from comments import errors
from comments.domain import records
from comments.domain.counters.counting import CountedChange as Counted
from comments.domain.ids import sorthash
from comments.events import outbox
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, conversion
from comments.threads import naming
from comments.threads.comment_flags import AT_ONCE, OWNER
from comments.tree.counters import in_transaction
from comments.tree.schemes import reshaping

# Maximum bytes of one commit. Datastore's limit is 10 MiB; the difference is left for the counters
# and the journal.
MOST_BYTES = 9 << 20
_PER_EVENT = 50  # Maximum number of comments per event
MOST_SLUGS = 50  # Maximum number of former slugs of a comment
_PLACE = (
    "parent", "number", "level", "sort_hash", "slug", "listed", "child_count",
    "shape", "former_slugs", "revision", "text_revision",
)  # fmt: skip
FROM = "@"  # Separates a former slug and the digest of a thread that the comment has left
_FLAGS = ("unfolded", "moved", "fold_by")


class SchemeChange(NamedTuple):
    """The number of comments that get a new slug, whether any place changes, and event ids."""

    renamed: int
    is_change: bool
    events: tuple[str, ...] = ()


def stamp_writes(ids: Sequence[str], scheme: sorthash.Scheme) -> ownership.Writes:
    """Store the scheme in the threads that have none, given the threads' key names."""
    rows = reads.get_multi([comment_rows.thread_key_of(key) for key in ids])
    bare = [row for row in rows if row is not None and not row.scheme]
    for row in bare:
        row.scheme = sorthash.encode_scheme(scheme)
        naming.forget(row)
    return ownership.Writes(OWNER, put=tuple(bare))


def switch(name: records.ThreadName, scheme: sorthash.Scheme, *, now: datetime) -> SchemeChange:
    """Move a thread to a scheme, in the current transaction.

    Nothing is written if the thread has this scheme already and every comment is in its place.
    Deliver the events after the commit: they count the comments that became listed or unlisted.

    Raises:
        errors.Conflict: the thread is too large for one commit or damaged, or a comment has more
            replies than the scheme can number.
    """
    thread = reads.get(comment_rows.thread_key(name))
    if thread is None:
        return SchemeChange(0, is_change=False)
    messages = {message.key.path[-1].name: message for message in _comments(name)}
    rows = {
        comment_id: conversion.comment_from_message(messages[comment_id]) for comment_id in messages
    }
    places = reshaping.places(scheme, rows)
    moved = [row for row in rows.values() if _place_of(row) != places[row.id]]
    root_count = max(thread.child_count, reshaping.needed_root_count(places))
    stored = sorthash.encode_scheme(scheme)
    if (thread.scheme, thread.child_count) != (stored, root_count) or moved:
        thread.scheme, thread.child_count = stored, root_count
        thread.shape = (thread.shape or 0) + bool(moved)
        naming.forget(thread)
        transactions.apply(ownership.Writes(OWNER, put=(thread,)))
    events = _move(name, thread.shape, rows, places, messages, now) if moved else ()
    renamed = sum(row.slug != places[row.id].slug for row in rows.values())
    return SchemeChange(renamed, bool(moved), events)


def _comments(name: records.ThreadName) -> Sequence[Any]:
    where = (("thread", "=", comment_rows.thread_key_name(name)),)
    return list(reads.fetch(reads.Query("Comment", where=where, order=("sort_hash",))))


def _place_of(row: records.Comment) -> reshaping.NewPlace:
    return reshaping.NewPlace(
        row.parent, row.number, row.level, row.sort_hash, row.slug, row.listed, row.child_count
    )


def _move(
    name: records.ThreadName,
    shape: int,
    rows: dict[str, records.Comment],
    places: dict[str, reshaping.NewPlace],
    messages: dict[str, Any],
    now: datetime,
) -> tuple[str, ...]:
    changes: list[tuple[records.Comment, Counted]] = []
    patches: list[ownership.Patch] = []
    for row in rows.values():
        place, message = places[row.id], messages[row.id]
        patches.append(patch(row, place, message, shape, is_first=not patches))
        if row.listed != place.listed:
            before = conversion.state_from_message(message)
            changes.append((row, Counted(before, before._replace(listed=place.listed))))
    transactions.apply(
        ownership.Writes(OWNER, patch=tuple(patches)),
        in_transaction.counter_writes(name, [change for _, change in changes]),
    )
    events = note_changes(changes, now=now)
    if transactions.pending_bytes() > MOST_BYTES:
        raise errors.Conflict("thread-too-large")
    return events


def note_changes(
    changes: Sequence[tuple[records.Comment, Counted]], *, run: str = "", now: datetime
) -> tuple[str, ...]:
    """Write the events of moved comments, in the current transaction, and return their ids.

    Each comment is passed as it was before the move. `run` is part of the ids (`outbox.event_id`).
    """
    events: list[str] = []
    for start in range(0, len(changes), _PER_EVENT):
        some = changes[start : start + _PER_EVENT]
        counted = [change for _, change in some]
        for part in outbox.parts(counted):
            first = some[part.start][0]
            events.append(outbox.event_id(first.id, first.revision + 1, run))
            filed = outbox.EventKind.FILED
            transactions.apply(outbox.event_writes(filed, events[-1], counted[part], now=now))
    return tuple(events)


def patch(  # noqa: PLR0913 - a comment can move between threads
    row: records.Comment,
    place: reshaping.NewPlace,
    message: Any,
    shape: int,
    *,
    is_first: bool,
    moved: Mapping[str, Any] = MappingProxyType({}),
    left: Sequence[str] = (),
    further: Sequence[str] = (),
) -> ownership.Patch:
    """Return the patch that gives a comment a new place.

    A comment that moves to another thread also gets the values in `moved`. `left` contains the
    digests of the ids of its previous thread, under which its former slug can be found. `further`
    contains other slugs that lead to it from now on.
    """
    former = conversion.texts(message.properties["former_slugs"])
    if moved or further or row.slug != place.slug:
        slugs = (*former, *further, row.slug, *(f"{row.slug}{FROM}{digest}" for digest in left))
        former = tuple(dict.fromkeys(slug for slug in slugs if slug != place.slug))
    made = comment_rows.CommentRow(
        key=comment_rows.comment_key(row.id),
        thread=message.properties["thread"].string_value,
        **place._asdict(),
        shape=shape,
        former_slugs=list(former[-MOST_SLUGS:]),
        revision=row.revision + 1,
        text_revision=row.text_revision,
    )
    made.populate(**moved)
    if not (is_first or row.listed != place.listed):
        return ownership.Patch(made, (*_PLACE, *moved), message)
    made.unfolded, made.fold_by = True, AT_ONCE
    made.moved = is_first or message.properties["moved"].boolean_value
    return ownership.Patch(made, (*_PLACE, *_FLAGS, *moved), message)
