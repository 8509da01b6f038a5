"""Store reports of comments.

This module owns the kind Report, with one row for each reported comment. The row stores its
reporters as keyed digests that include the comment id, so the row reveals neither the reporters nor
whether one person reported two comments. Each author and each network counts once, no matter how
many tokens they have. When a moderator approves the comment, its reports are settled, and the same
people cannot report it again.

    Report  key: comment id; site, `people`, `reasons` (report counts by reason, JSON), the numbers
            of `settled` and `open` reports, and the time of the `last` report. `vouched`: the
            number of open reports from signed-in accounts. `cleared`: when a moderator last
            approved the comment. Rows of earlier releases lack `vouched` and `cleared`, which then
            read as 0 and None.
"""

import enum
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from comments.domain import decoders
from comments.domain.crypto import keyed_hashes
from comments.store import ownership, reads
from comments.store.models import moderation_rows, schema

_OWNER = "reports"
MOST = 200  # Maximum number of reports per comment; further reports add no information.


class Reason(enum.StrEnum):
    """The reasons for reporting a comment, stored as text."""

    SPAM = "spam"
    ABUSE = "abuse"
    OFF_TOPIC = "off-topic"
    OTHER = "other"


class ReportSummary(NamedTuple):
    """A summary of a comment's reports: the number of open reports, and all reports by reason."""

    comment: str
    open: int
    reasons: dict[str, int]


def person(comment_id: str, who: str, secret: str) -> str:
    """Return the digest that identifies a person in the reports of one comment."""
    return keyed_hashes.text(keyed_hashes.keyed_digest(secret, "report", comment_id, who))


def add(
    row: moderation_rows.ReportRow | None,
    fresh: moderation_rows.ReportRow,
    people: Sequence[Sequence[str]],
    reason: Reason,
    *,
    is_vouched: bool,
    now: datetime,
) -> moderation_rows.ReportRow | None:
    """Add a report to a row, or to `fresh` if there is no row yet; return the row to store.

    The result is None if the reporter has already reported the comment, or if the row already has
    `MOST` reports. `is_vouched` is True for a report from a signed-in account. `people` contains
    groups of the reporter's digests. The first group is made with the current secret and is stored;
    the other groups are made with older secrets.
    """
    row = row or fresh
    numbers = _numbers(row)
    if (
        any(not known.isdisjoint(row.people) for known in map(set, people))
        or sum(numbers.values()) >= MOST
    ):
        return None
    numbers[reason.value] = numbers.get(reason.value, 0) + 1
    row.people = [*row.people, *people[0]]
    row.reasons = msgspec.json.encode(numbers).decode()
    row.open = sum(numbers.values()) - row.settled
    row.vouched = (row.vouched or 0) + is_vouched
    row.last = now
    return row


def fresh(comment_id: str, site: str, *, now: datetime) -> moderation_rows.ReportRow:
    """Make the row for a comment without reports."""
    return moderation_rows.ReportRow(
        key=moderation_rows.report_key(comment_id), site=site, last=now
    )


def summarize(row: moderation_rows.ReportRow) -> ReportSummary:
    """Summarize a row."""
    return ReportSummary(row.key.id(), row.open, _numbers(row))


def report_writes(row: moderation_rows.ReportRow) -> ownership.Writes:
    """Return the writes that store a row."""
    return ownership.Writes(_OWNER, put=(row,))


def settlement_writes(comment_id: str, *, now: datetime) -> ownership.Writes:
    """Settle a comment's reports in the transaction in which a moderator approves the comment."""
    row = reads.get(moderation_rows.report_key(comment_id))
    if row is None:
        return ownership.Writes(_OWNER)
    row.settled, row.open = row.settled + row.open, 0
    row.vouched, row.cleared = 0, now
    return ownership.Writes(_OWNER, put=(row,))


def of(comment_ids: Sequence[str]) -> dict[str, ReportSummary]:
    """Summarize the reports of comments, keyed by comment id.

    Comments without a row are omitted.
    """
    rows = reads.get_multi([moderation_rows.report_key(comment_id) for comment_id in comment_ids])
    return {row.key.id(): summarize(row) for row in rows if row is not None}


def most(site: str, limit: int) -> list[ReportSummary]:
    """Summarize the reports of a site's comments with open reports, most reports first."""
    summaries = of(
        reads.names(
            "Report", (("site", "=", site), ("open", ">", 0)), order=("-open",), limit=limit
        )
    )
    return sorted(summaries.values(), key=lambda each: -each.open)


def count_open(site: str, most: int) -> int:
    """Count a site's comments with open reports, up to `most`."""
    where = (("site", "=", site), ("open", ">", 0))
    return reads.count(reads.Query("Report", where=where, order=("-open",), limit=most))


def old_keys(before: datetime, limit: int) -> list[schema.RowKey]:
    """Return the keys of rows whose last report is not newer than `before`, oldest first."""
    query = reads.Query(
        "Report", where=(("last", "<=", before),), order=("last",), limit=limit, keys_only=True
    )
    return [moderation_rows.report_key(message.key.path[-1].name) for message in reads.fetch(query)]


def row_deletion_writes(keys: Sequence[schema.RowKey]) -> ownership.Writes:
    """Return the writes that delete rows."""
    return ownership.Writes(_OWNER, delete=tuple(keys))


def deletion_writes(comment_ids: Sequence[str]) -> ownership.Writes:
    """Delete the reports of deleted or erased comments."""
    rows = reads.get_multi([moderation_rows.report_key(comment_id) for comment_id in comment_ids])
    return row_deletion_writes([row.key for row in rows if row is not None])


def _numbers(row: moderation_rows.ReportRow) -> dict[str, int]:
    return decoders.json(dict[str, int]).decode(row.reasons)
