"""The outbox: events that record changes to comments, for handlers to act on.

This module owns the kind Event. An event is written in the transaction of its change, so each
committed change has an event, and no event exists without its change. An event's id consists of the
comment's id and the comment's revision after the change, so the id is the same no matter how often
the transaction runs. A commit that changes many comments writes several events, each with at most
as many changes as one commit can count (`parts`). The `dispatcher` passes an event to every handler
and deletes it when the last handler is done.

    Event     key: "{comment id}.{revision}"; for an import or its undo,
              "{comment id}.{revision}.{import id}"
              kind, `changes` (states before and after, JSON), `done` (names of handlers),
              `at`, `due`, `since`, `attempts`, `reason` of the last failure,
              `claimed` (when the claim of the process that handles it ends), `detail`

Follow-up work that takes longer than one delivery, such as mail to many recipients, is also an
event (`follow`). The id of a follow-up event is derived from the first event's id; `detail`
contains its other data.

`at` is the time of the change. `since` equals `at` while the event is pending; after the event is
given up, `since` and `due` are `NEVER`. One index therefore serves both the numbers for operators
(how many events are pending, and how old the oldest is) and the list of dead letters.

The only personal data in an event is the author's id in `changes`, which readers never receive. The
event is kept only as long as handlers need it, usually for seconds. An event contains no text,
name, website or address, with one exception: the encrypted sender of a text that Akismet is asked
about (`classifier_verdicts`). The texts in messages are read from the comment when the messages are
sent, so a message about a comment that has been retracted contains none of its text.

The process that wrote an event delivers it immediately. `overdue_ids` lets the sweep find events
whose process died before delivering them. Clock differences can make a sweep early or late but do
no other harm.
"""

import enum
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from comments.domain import decoders
from comments.domain.counters import counting
from comments.domain.counters.counting import CountedChange, Following
from comments.events import retry_pauses
from comments.store import ownership, reads
from comments.store.models import event_rows, schema

_OWNER = "outbox"
COUNTERS = "counters"  # The name of the handler that updates the counters.
SWEPT_AFTER = timedelta(seconds=30)  # Time to deliver an event before a sweep does so.
MOST_ROWS = 280  # Maximum number of counter rows that one event changes.
_MAIL = "mail/"  # Prefix of the ids of mail events; comment ids contain no "/".
_FOLLOWED = "followed/"
NEVER = datetime(9999, 1, 1, tzinfo=UTC)


class EventKind(enum.StrEnum):
    """The kinds of changes that events record.

    The kinds are stored as text, so renaming one requires a migration.
    """

    POSTED = "posted"
    EDITED = "edited"
    RETRACTED = "retracted"
    IMPORTED = "imported"
    VOTED = "voted"
    JUDGED = "judged"  # A moderator or a rule decided about the comment.
    FILED = "filed"  # The thread has new categories, or its comments new places.
    FOLLOWED = "followed"  # An address joined or left a thread's follower list.
    DECLARED = "declared"  # Declared counters must still count the rest of an earlier event.
    UNDONE = "undone"  # The undo of an import erased or deleted comments.
    MAIL = "mail"  # Part of the mail about an earlier event.


# The kinds of changes to comments; handlers receive these unless they list other kinds.
OF_COMMENTS = frozenset(
    {EventKind.POSTED, EventKind.EDITED, EventKind.RETRACTED, EventKind.JUDGED, EventKind.IMPORTED}
)
# The kinds of changes that affect counters: the changes to comments, and those added here.
COUNTED = OF_COMMENTS | {EventKind.VOTED, EventKind.FILED, EventKind.UNDONE}
OF_RESTS = frozenset({EventKind.DECLARED})


class Followed(NamedTuple):
    """The old and new state of a follower, each None if the follower does not exist."""

    old: Following | None
    new: Following | None


class Event(NamedTuple):
    """An event in the form that handlers receive."""

    id: str
    kind: EventKind
    changes: tuple[CountedChange, ...]
    attempts: int = 0
    detail: str = ""
    at: datetime = NEVER

    @property
    def comment(self) -> str:
        """Return the id of the comment, or of the first of several comments imported together."""
        return self.id.partition(".")[0]

    @property
    def comments(self) -> Sequence[str]:
        """Return the ids of the comments in the first `changes`; for an import, in all changes."""
        if self.kind is EventKind.IMPORTED and self.detail:
            ids: list[str] = decoders.json(list[str]).decode(self.detail)
            return ids
        return [self.comment]


def encode_imported(comments: Sequence[str]) -> str:
    """Encode the ids of imported comments, in the order of their changes, as an event's detail."""
    return msgspec.json.encode(comments).decode()


def event_id(comment_id: str, revision: int, run: str = "") -> str:
    """Return the id of the event for the change that gave a comment this revision.

    If an import is undone and run again, its comments get the same revisions again. `run`
    distinguishes the runs of an import.
    """
    return f"{comment_id}.{revision}.{run}" if run else f"{comment_id}.{revision}"


def filing_id(comment_id: str, times: int) -> str:
    """Return the id of the event for comments that moved to other categories.

    `comment_id` is the first of these comments.

    `times` is how often the thread's categories have changed. The id of an event with a revision
    never has this form.
    """
    return f"{comment_id}.c{times}"


def parts(changes: Sequence[CountedChange]) -> Iterator[slice]:
    """Divide the changes of one commit among several events.

    One commit can count any of the resulting events, no matter how many authors, days and
    categories the events involve.
    """
    return counting.parts(changes, MOST_ROWS)


def event_writes(
    kind: EventKind,
    event: str,
    changes: Iterable[CountedChange],
    *,
    now: datetime,
    detail: str = "",
) -> ownership.Writes:
    """Write an event in the transaction of its change."""
    row = _row(kind, event, changes, detail, at=now, due=now + SWEPT_AFTER)
    return ownership.Writes(_OWNER, put=(row,))


def _row(
    kind: EventKind,
    event: str,
    changes: Iterable[CountedChange],
    detail: str,
    *,
    at: datetime,
    due: datetime,
) -> event_rows.EventRow:
    encoded = msgspec.json.encode(tuple(changes)).decode()
    return event_rows.EventRow(
        key=event_rows.event_key(event), kind=kind.value, changes=encoded, detail=detail,
        at=at, due=due, since=at,
    )  # fmt: skip


def follow_writes(
    site: str, thread: str, token: str, change: Followed, *, now: datetime
) -> tuple[str, ownership.Writes]:
    """Write the event for a new or former follower of a thread; return the event's id and row.

    `thread` is a key name. `token` identifies the change and is the same no matter how often the
    change is written.
    """
    event = f"{_prefix(thread)}{token}"
    detail = msgspec.json.encode((site, thread, *change)).decode()
    row = follow(EventKind.FOLLOWED, event, detail, due=now + SWEPT_AFTER)
    return event, follow_up_writes([row])


def followings(thread: str) -> list[Event]:
    """List a thread's follower events that are not yet counted."""
    first = _prefix(thread)
    keys = (
        ("__key__", ">", event_rows.event_key(first)),
        ("__key__", "<", event_rows.event_key(f"{first}~")),
    )
    names = reads.names("Event", keys, order=("__key__",))
    return [record(row) for row in read(names)]


def following_of(event: Event) -> tuple[str, str, Followed]:
    """Decode a follower event into the site, the thread's key name, and the change."""
    site, thread, old, new = decoders.json(
        tuple[str, str, Following | None, Following | None]
    ).decode(event.detail)
    return site, thread, Followed(old, new)


def _prefix(thread: str) -> str:
    return f"{_FOLLOWED}{hashlib.sha256(thread.encode()).hexdigest()}/"


def is_event(name: str) -> bool:
    """Return whether an id has the form of an event id rather than a message id."""
    return "/" not in name or name.startswith((_FOLLOWED, _MAIL))


def mail_id(*parts: str) -> str:
    """Return the id of a mail event.

    The same parts always give the same id, and its prefix marks it as a mail event.
    """
    return _MAIL + ".".join(part for part in parts if part)


def is_of_mail(event: str) -> bool:
    """Return whether an id belongs to a mail event."""
    return event.startswith(_MAIL)


def follow(
    kind: EventKind, event: str, detail: str, *, due: datetime, attempts: int = 0
) -> event_rows.EventRow:
    """Make a follow-up event, to be passed to `follow_up_writes` or returned by a handler."""
    row = _row(kind, event, (), detail, at=due, due=due)
    row.attempts = attempts
    return row


def repeat(event: Event, name: str, detail: str) -> event_rows.EventRow:
    """For declared counters, make an event with the changes of an earlier event."""
    due = event.at + SWEPT_AFTER
    return _row(EventKind.DECLARED, name, event.changes, detail, at=event.at, due=due)


def follow_up_writes(rows: Iterable[event_rows.EventRow]) -> ownership.Writes:
    """Write follow-up events in the transaction of the original event."""
    return ownership.Writes(_OWNER, put=tuple(rows))


def overdue_ids(now: datetime, limit: int) -> list[str]:
    """List the ids of events that were not delivered in time, longest overdue first."""
    return reads.names("Event", (("due", "<=", now),), order=("due",), limit=limit)


def fresh(now: datetime, limit: int) -> list[str]:
    """List the ids of events that are due or untried.

    Use this function where no process delivers its own events.
    """
    query = reads.Query(
        "Event", where=(("due", "<=", now + SWEPT_AFTER),), order=("due",), limit=limit
    )
    # A failed event waits for the end of its pause, no matter how short the pause is.
    return [
        message.key.path[-1].name
        for message in reads.fetch(query)
        if not message.properties["attempts"].integer_value
        or message.properties["due"].timestamp_value.ToDatetime(UTC) <= now
    ]


def read(events: Sequence[str]) -> list[event_rows.EventRow]:
    """Read the rows of those events that are not yet done."""
    rows = reads.get_multi([event_rows.event_key(event) for event in events])
    return [row for row in rows if row is not None]


def record(row: event_rows.EventRow) -> Event:
    """Convert a stored event to the form that handlers receive."""
    at: datetime | None = row.at
    return Event(
        row.key.id(),
        EventKind(row.kind),
        decoders.json(tuple[CountedChange, ...]).decode(row.changes),
        row.attempts,
        row.detail or "",
        at or row.due,
    )


def waiting_ids() -> list[str]:
    """List the ids of all events that are not given up, including those that are not yet due."""
    return reads.names("Event", (("since", "<", NEVER),), order=("since",))


def pending_events(handler: str, kinds: frozenset[EventKind] = COUNTED) -> Iterator[Event]:
    """Yield every event of these kinds that a handler is not done with, including dead letters."""
    events = reads.names("Event")
    return (
        record(row)
        for row in read(events)
        if EventKind(row.kind) in kinds and handler not in row.done
    )


def mark_writes(
    rows: Iterable[event_rows.EventRow], handlers: set[str], every: Callable[[EventKind], set[str]]
) -> ownership.Writes:
    """Record that handlers are done with events; delete events that all handlers are done with.

    `every` returns the names of the handlers for a kind of event.
    """
    put: list[event_rows.EventRow] = []
    gone: list[schema.RowKey] = []
    for row in rows:
        names = every(EventKind(row.kind))
        row.done = sorted({*row.done, *(handlers & names)})
        if names <= set(row.done):
            gone.append(row.key)
        else:
            put.append(row)
    return ownership.Writes(_OWNER, put=tuple(put), delete=tuple(gone))


def is_claimed(row: event_rows.EventRow, now: datetime) -> bool:
    """Return whether a process is currently handling an event."""
    claimed: datetime | None = row.claimed
    return claimed is not None and claimed > now


def claim_writes(row: event_rows.EventRow, *, until: datetime) -> ownership.Writes:
    """Claim an event until a given time. No sweep finds the event before that time."""
    row.claimed = until
    row.due = max(row.due, until)
    return ownership.Writes(_OWNER, put=(row,))


def postpone_writes(row: event_rows.EventRow, reason: str, *, now: datetime) -> ownership.Writes:
    """Record a failed delivery; retry later, or give up after the last attempt."""
    row.attempts += 1
    row.reason = reason
    row.due = now + retry_pauses.pause(row.attempts)
    if row.attempts >= retry_pauses.MOST_ATTEMPTS:
        row.due = row.since = NEVER
    row.claimed = None
    return ownership.Writes(_OWNER, put=(row,))


def give_up_writes(row: event_rows.EventRow, reason: str) -> ownership.Writes:
    """Stop retrying an event, but keep it until an operator revives or drops it."""
    row.reason, row.claimed = reason, None
    row.due = row.since = NEVER
    return ownership.Writes(_OWNER, put=(row,))


def is_given_up(row: event_rows.EventRow) -> bool:
    """Return whether an event is no longer retried."""
    return bool(row.since == NEVER)


def revival_writes(row: event_rows.EventRow, *, now: datetime) -> ownership.Writes:
    """Retry a given-up event with the full number of attempts."""
    at: datetime | None = row.at
    row.attempts, row.due, row.since = 0, now, at or now
    return ownership.Writes(_OWNER, put=(row,))


def drop_writes(row: event_rows.EventRow) -> ownership.Writes:
    """Delete an event that was given up, so that its remaining handlers never receive it."""
    return ownership.Writes(_OWNER, delete=(row.key,))
