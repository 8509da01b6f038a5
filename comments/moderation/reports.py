"""Who reported a comment, and how often it was since somebody looked.

Owns the kind Report: one row for each reported comment. Who reported it stands there as keyed
digests that cover the comment too, so nobody can tell whether two comments were reported by one, or
who that was. An author counts once and so does a network, whatever tokens are taken there. When a
moderator approves the comment, what was reported until then is settled: the same people cannot have
it held again.

    Report  key: comment id; site, `people`, `reasons` (names to numbers, JSON), how many are
            `settled` and `open`, `last` time. `vouched`: how many of the open ones come from
            signed-in accounts; `cleared`: when a moderator last approved the comment. Rows of
            earlier releases lack these two, which then are 0 and None.
"""

import enum
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec
from google.cloud import ndb

from comments.domain.crypto import keyed_hashes
from comments.store import ownership, reads
from comments.store.models import moderation_rows

_OWNER = "reports"
MOST = 200  # reports of one comment; more say nothing new


class Reason(enum.StrEnum):
    """Why a comment is reported. Stored as text."""

    SPAM = "spam"
    ABUSE = "abuse"
    OFF_TOPIC = "off-topic"
    OTHER = "other"


class Told(NamedTuple):
    """What is known of the reports of a comment: how many are open, and all by reason."""

    comment: str
    open: int
    reasons: dict[str, int]


def person(comment_id: str, who: str, secret: str) -> str:
    """What stands for somebody in the reports of one comment."""
    return keyed_hashes.text(keyed_hashes.keyed(secret, "report", comment_id, who))


def add(
    row: moderation_rows.Report | None,
    fresh: moderation_rows.Report,
    people: Sequence[Sequence[str]],
    reason: Reason,
    *,
    is_vouched: bool,
    now: datetime,
) -> moderation_rows.Report | None:
    """The row with one more report, to be put; None where one of these people is in it already.

    `fresh` is the row of a comment that nobody reported yet. `is_vouched` says that the report
    comes from a signed-in account. `people` are the reporter's names in the row: under the current
    secret first, which are stored, then under the old one.
    """
    row = row or fresh
    numbers = _numbers(row)
    if (
        any(not known.isdisjoint(row.people) for known in map(set, people))
        or sum(numbers.values()) >= MOST
    ):
        return None
    numbers[reason.value] = numbers.get(reason.value, 0) + 1
    row.populate(people=[*row.people, *people[0]])
    row.reasons = msgspec.json.encode(numbers).decode()
    row.open = sum(numbers.values()) - row.settled
    row.vouched = (row.vouched or 0) + is_vouched
    row.last = now
    return row


def fresh(comment_id: str, site: str, *, now: datetime) -> moderation_rows.Report:
    """The row of a comment that nobody reported yet."""
    return moderation_rows.Report(key=moderation_rows.report_key(comment_id), site=site, last=now)


def told(row: moderation_rows.Report) -> Told:
    """What a row says."""
    return Told(row.key.id(), row.open, _numbers(row))


def written(row: moderation_rows.Report) -> ownership.Writes:
    """Store a row of reports."""
    return ownership.Writes(_OWNER, put=(row,))


def settled(comment_id: str, *, now: datetime) -> ownership.Writes:
    """Settle the reports of a comment, in the transaction in which a moderator approves it."""
    row = reads.get(moderation_rows.report_key(comment_id))
    if row is None:
        return ownership.Writes(_OWNER)
    row.settled, row.open = row.settled + row.open, 0
    row.vouched, row.cleared = 0, now
    return ownership.Writes(_OWNER, put=(row,))


def of(comment_ids: Sequence[str]) -> dict[str, Told]:
    """The reports of those comments that have some."""
    rows = reads.get_multi([moderation_rows.report_key(each) for each in comment_ids])
    return {row.key.id(): told(row) for row in rows if row is not None}


def most(site: str, limit: int) -> list[Told]:
    """The comments of a site with open reports, those with most of them first."""
    query = reads.Query(
        "Report",
        where=(("site", "=", site), ("open", ">", 0)),
        order=("-open",),
        limit=limit,
        keys_only=True,
    )
    found = of([message.key.path[-1].name for message in reads.fetch(query)])
    return sorted(found.values(), key=lambda each: -each.open)


def old(before: datetime, limit: int) -> list[ndb.Key]:
    """The rows that got their last report before a moment."""
    query = reads.Query(
        "Report", where=(("last", "<=", before),), order=("last",), limit=limit, keys_only=True
    )
    return [moderation_rows.report_key(message.key.path[-1].name) for message in reads.fetch(query)]


def gone(keys: Sequence[ndb.Key]) -> ownership.Writes:
    """Delete rows of reports."""
    return ownership.Writes(_OWNER, delete=tuple(keys))


def _numbers(row: moderation_rows.Report) -> dict[str, int]:
    return msgspec.json.decode(row.reasons, type=dict[str, int])
