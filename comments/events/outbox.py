"""The outbox: what happened to comments, for those who act on it afterwards.

Owns the kind Event. An event is written in the transaction of what it tells, so there is one for
every change that was committed and none for any other. Its id is the comment's id and the revision
the change brought it to: the same however often the transaction ran. A commit that changes many
comments writes an event for as many as one commit can count (`parts`). `dispatcher` hands it to
every handler and deletes it when the last one is done.

    Event     key: "{comment id}.{revision}"
              kind, `changes` (states before and after, JSON), `done` (names of handlers),
              `at`, `due`, `since`, `bucket_writer`, `reason` of the last failure,
              `claimed` (until when somebody is at it), `detail`

What follows from an event and takes longer than one delivery, such as mail to many, is an event
too (`follow`). Its handler makes its id of the first one's; `detail` says what else it needs.

`at` is when it happened. `since` is the same while the event waits, and `NEVER` when it was given
up, as `due` is then: both numbers of an operator, how many wait and how old the oldest is, and the
list of what was given up are reads of that one index.

What an event holds of a person is the author's id in `changes`, which no reader ever gets, for as
long as handlers need it: seconds, as a rule. It holds no text, no name, no website and no address,
but, sealed, that of who sent a text which Akismet is asked about (`classifier_verdicts`). What
messages are to say, they read from the comment when they are sent, and a comment taken back
meanwhile says nothing.

`due` is for the sweep that finds events of processes that died: the process that wrote an event
delivers it at once. Clocks that differ make a sweep late or early, and nothing wrong.
"""

import enum
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec
from google.cloud import ndb

from comments.domain import counting
from comments.domain.counting import Change, Following
from comments.store import ownership, reads
from comments.store.models import conversion, event_rows

_OWNER = "outbox"
SWEPT_AFTER = timedelta(seconds=30)  # time for the process that wrote it
FIRST_PAUSE = timedelta(seconds=10)  # after a failure; doubled with each
LONGEST_PAUSE = timedelta(hours=1)
MOST_ROWS = 280  # of counters, that one event changes
MOST_ATTEMPTS = 24  # most of a day; then somebody has to look
_MAIL = "mail/"  # what ids of its events begin with; comments' ids hold no "/"
_FOLLOWED = "followed/"
NEVER = datetime(9999, 1, 1, tzinfo=UTC)


class Kind(enum.StrEnum):
    """What happened. Stored as text: renaming one is a migration."""

    POSTED = "posted"
    EDITED = "edited"
    RETRACTED = "retracted"
    IMPORTED = "imported"
    VOTED = "voted"
    JUDGED = "judged"  # by a moderator, or by a rule
    FILED = "filed"  # under other categories of their thread: nothing that readers see
    FOLLOWED = "followed"  # somebody joined the list of a thread's followers, or left it
    MAIL = "mail"  # follows from another event: some of the mail about it


# What happens to comments. Handlers are told of these unless they say otherwise.
OF_COMMENTS = frozenset({Kind.POSTED, Kind.EDITED, Kind.RETRACTED, Kind.JUDGED, Kind.IMPORTED})
# ... and whatever changes what is counted of them.
COUNTED = OF_COMMENTS | {Kind.VOTED, Kind.FILED}


class Followed(NamedTuple):
    """A follower before and after; None where there was or is none."""

    old: Following | None
    new: Following | None


class Event(NamedTuple):
    """Something that happened, as handlers see it. `comment` is the id of the comment it is of."""

    id: str
    kind: Kind
    changes: tuple[Change, ...]
    attempts: int = 0
    detail: str = ""
    at: datetime = NEVER

    @property
    def comment(self) -> str:
        """The id of the comment; of many that were imported at once, the first."""
        return self.id.partition(".")[0]


def event_id(comment_id: str, revision: int) -> str:
    """The id of the event that tells of a comment's change to a revision."""
    return f"{comment_id}.{revision}"


def filing_id(comment_id: str, times: int) -> str:
    """The id of the event that tells of comments under other categories, of which this is first.

    `times` is how often the categories of their thread were changed. No revision looks like it.
    """
    return f"{comment_id}.c{times}"


def parts(changes: Sequence[Change]) -> Iterator[slice]:
    """Which changes of one commit an event tells of, and which the next ones.

    An event is counted by one commit, however many authors, days and categories it is of.
    """
    return counting.parts(changes, MOST_ROWS)


def tell(
    kind: Kind, event: str, changes: Iterable[Change], *, now: datetime, detail: str = ""
) -> ownership.Writes:
    """Write an event, in the transaction of what it tells."""
    row = event_rows.Event(
        key=event_rows.event_key(event),
        kind=kind.value,
        changes=msgspec.json.encode(tuple(changes)).decode(),
        detail=detail,
        at=now,
        due=now + SWEPT_AFTER,
        since=now,
    )
    return ownership.Writes(_OWNER, put=(row,))


def followed(
    site: str, thread: str, token: str, change: Followed, *, now: datetime
) -> tuple[str, ownership.Writes]:
    """Tell that somebody follows a thread, or does no more; the event's id, and its row.

    `thread` is a key name. `token` is the change's own, the same however often it is written.
    """
    event = f"{_prefix(thread)}{token}"
    detail = msgspec.json.encode((site, thread, *change)).decode()
    row = follow(Kind.FOLLOWED, event, detail, due=now + SWEPT_AFTER)
    return event, written([row])


def followings(thread: str) -> list[Event]:
    """The events of a thread's followers that are not counted yet."""
    first = _prefix(thread)
    keys = (
        ("__key__", ">", event_rows.event_key(first)),
        ("__key__", "<", event_rows.event_key(f"{first}~")),
    )
    query = reads.Query("Event", where=keys, order=("__key__",), keys_only=True)
    found = [message.key.path[-1].name for message in reads.fetch(query)]
    return [record(row) for row in read(found)]


def following_of(event: Event) -> tuple[str, str, Followed]:
    """What an event of followers says: the site, the thread's key name, and the change."""
    site, thread, old, new = msgspec.json.decode(
        event.detail, type=tuple[str, str, Following | None, Following | None]
    )
    return site, thread, Followed(old, new)


def _prefix(thread: str) -> str:
    return f"{_FOLLOWED}{hashlib.sha256(thread.encode()).hexdigest()}/"


def is_event(name: str) -> bool:
    """Whether an id is that of an event, by its form, and not that of a message."""
    return "/" not in name or name.startswith((_FOLLOWED, _MAIL))


def mail_id(*parts: str) -> str:
    """The id of an event of mail: the same for the same parts, and known as such by its form."""
    return _MAIL + ".".join(part for part in parts if part)


def is_of_mail(event: str) -> bool:
    """Whether an id is that of an event of mail."""
    return event.startswith(_MAIL)


def follow(
    kind: Kind, event: str, detail: str, *, due: datetime, attempts: int = 0
) -> event_rows.Event:
    """An event that follows from another one: for `written`, or for a handler to give back."""
    return event_rows.Event(
        key=event_rows.event_key(event),
        kind=kind.value,
        changes="[]",
        detail=detail,
        at=due,
        due=due,
        since=due,
        attempts=attempts,
    )


def written(rows: Iterable[event_rows.Event]) -> ownership.Writes:
    """Write events that follow, in the transaction of what they follow from."""
    return ownership.Writes(_OWNER, put=tuple(rows))


def due(now: datetime, limit: int) -> list[str]:
    """The ids of events that nobody delivered in time, those that wait longest first."""
    query = reads.Query(
        "Event", where=(("due", "<=", now),), order=("due",), limit=limit, keys_only=True
    )
    return [message.key.path[-1].name for message in reads.fetch(query)]


def fresh(now: datetime, limit: int) -> list[str]:
    """The ids of events that are due, or that nobody tried yet, where no process has its own."""
    query = reads.Query(
        "Event", where=(("due", "<=", now + SWEPT_AFTER),), order=("due",), limit=limit
    )
    # What failed keeps its pause, however short that is.
    return [
        message.key.path[-1].name
        for message in reads.fetch(query)
        if not message.properties["attempts"].integer_value
        or message.properties["due"].timestamp_value.ToDatetime(UTC) <= now
    ]


def read(events: Sequence[str]) -> list[event_rows.Event]:
    """The rows of those events that are not done yet."""
    rows = reads.get_multi([event_rows.event_key(event) for event in events])
    return [row for row in rows if row is not None]


def record(row: event_rows.Event) -> Event:
    """A stored event as handlers see it."""
    return Event(
        row.key.id(),
        Kind(row.kind),
        msgspec.json.decode(row.changes, type=tuple[Change, ...]),
        row.attempts,
        row.detail or "",
        conversion.plain_or_none(row.at) or conversion.plain(row.due),
    )


def pending(handler: str) -> Iterator[Event]:
    """Every event that a handler has not done yet, given up or not."""
    query = reads.Query("Event", keys_only=True)
    events = [message.key.path[-1].name for message in reads.fetch(query)]
    return (record(row) for row in read(events) if handler not in row.done)


def mark(
    rows: Iterable[event_rows.Event], handlers: set[str], every: Callable[[Kind], set[str]]
) -> ownership.Writes:
    """Note that handlers are done with events; delete those that every handler is done with.

    `every` names the handlers of events of a kind.
    """
    put: list[event_rows.Event] = []
    gone: list[ndb.Key] = []
    for row in rows:
        names = every(Kind(row.kind))
        row.populate(done=sorted({*row.done, *(handlers & names)}))
        if names <= set(row.done):
            gone.append(row.key)
        else:
            put.append(row)
    return ownership.Writes(_OWNER, put=tuple(put), delete=tuple(gone))


def is_claimed(row: event_rows.Event, now: datetime) -> bool:
    """Whether somebody is at an event."""
    claimed: datetime | None = row.claimed
    return claimed is not None and claimed > now


def claim(row: event_rows.Event, *, until: datetime) -> ownership.Writes:
    """Note that somebody is at an event, until a moment. Before it no sweep finds the event."""
    row.claimed = until
    row.due = max(row.due, until)
    return ownership.Writes(_OWNER, put=(row,))


def pause(attempts: int) -> timedelta:
    """How long to wait after so many attempts that failed."""
    doubled = min(max(0, attempts - 1), 20)
    return min(LONGEST_PAUSE, FIRST_PAUSE * (1 << doubled))


def postpone(row: event_rows.Event, reason: str, *, now: datetime) -> ownership.Writes:
    """Note that an event could not be delivered: later again, or never."""
    row.attempts += 1
    row.reason = reason
    row.due = now + pause(row.attempts)
    if row.attempts >= MOST_ATTEMPTS:
        row.due = row.since = NEVER
    row.claimed = None
    return ownership.Writes(_OWNER, put=(row,))


def is_given_up(row: event_rows.Event) -> bool:
    """Whether an event is not tried any more."""
    return bool(row.since == NEVER)


def revive(row: event_rows.Event, *, now: datetime) -> ownership.Writes:
    """Try an event that was given up once more, from the start."""
    row.attempts, row.due, row.since = 0, now, conversion.plain_or_none(row.at) or now
    return ownership.Writes(_OWNER, put=(row,))


def drop(row: event_rows.Event) -> ownership.Writes:
    """Forget an event that was given up: whoever has not handled it never will."""
    return ownership.Writes(_OWNER, delete=(row.key,))
