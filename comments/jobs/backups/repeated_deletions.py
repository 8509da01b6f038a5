"""Repeat in a restored store what people deleted after the backup was made.

A backup still contains comments that were retracted or erased since, and subscriptions that were
ended since. If the store that the backup replaces can be read, it says which ones. They are deleted
again before the restored store serves anybody.

Invariants:

1. Only the replaced store decides: what is not deleted there is not deleted here.
2. Repeating the step changes nothing.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from comments.domain import records
from comments.domain.records import Status
from comments.notifications import subscriptions
from comments.sites import site_settings
from comments.store import connection, reads, transactions
from comments.store.models import comment_rows
from comments.tree import changes, votes

_AT_ONCE = 300  # Rows in one look-up.
_Subscription = tuple[str, str]  # The subscriber's id and the subscription's name.


class RepeatedDeletions(NamedTuple):
    """The numbers of comments and subscriptions that were deleted again."""

    comments: int = 0
    subscriptions: int = 0


def repeat(
    replaced: connection.Store, restored: connection.Store, *, now: datetime
) -> RepeatedDeletions:
    """Delete from `restored` the comments and subscriptions that are deleted in `replaced`."""
    with replaced.context():
        retracted = list(_retracted())
    with restored.context():
        comments = sum(_retract(each, now) for each in retracted)
        kept = list(_subscriptions())
    with replaced.context():
        ended = list(_missing(kept))
    with restored.context():
        for subscriber, name in ended:
            subscriptions.unsubscribe(subscriber, [name], now=now)
    return RepeatedDeletions(comments, len(ended))


def _retracted() -> Iterator[str]:
    for site in site_settings.every():
        where = (("site", "=", site.id), ("status", "=", Status.RETRACTED.value))
        query = reads.Query("Comment", where=where, order=("-created", "revision"), keys_only=True)
        for message in reads.walk(query):
            yield message.key.path[-1].name


def _retract(comment_id: str, now: datetime) -> bool:
    """Retract a comment, unless it is retracted or does not exist."""

    def body() -> bool:
        row = reads.get(comment_rows.comment_key(comment_id))
        if row is None or row.status == Status.RETRACTED:
            return False
        change = changes.retract(comment_id, now=now, check=lambda _: None)
        name = records.ThreadName(row.site, row.thread_id)
        transactions.apply(*change.writes, votes.ended(comment_id, name, now=now))
        return True

    return transactions.transaction(body)


def _subscriptions() -> Iterator[_Subscription]:
    for message in reads.walk(reads.Query("Subscription", keys_only=True)):
        subscriber, name = message.key.path
        yield subscriber.name, name.name


def _missing(kept: list[_Subscription]) -> Iterator[_Subscription]:
    for start in range(0, len(kept), _AT_ONCE):
        part = kept[start : start + _AT_ONCE]
        keys = [(("Subscriber", one), ("Subscription", name)) for one, name in part]
        found = reads.read(keys)
        yield from (each for each, row in zip(part, found, strict=True) if row is None)
