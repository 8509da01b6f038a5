"""Report a comment, and hold the comment for moderators after enough reports.

This module owns the rate limit for reports per network and the decision to hold a comment. A
comment is held when enough people have reported it since a moderator last approved it. The site's
settings (`rulebook`) define this number of people. Each author and each network counts once.

A report counts as anonymous unless it comes from a signed-in account, because anyone can get a
guest token.

The response does not depend on the effect of the report, so reporters cannot learn whether their
report caused the comment to be held. All anonymous reports on a comment from one area
(`client_networks.area`) count as one. They never cause a comment to be held if a moderator has
approved the comment's current text, or if the comment's author is trusted (`_is_trusted`). Such a
comment is held only after enough reports from accounts. Moderators still see the anonymous reports
in the list of reported comments.
"""

from datetime import datetime, timedelta

from comments import errors
from comments.domain import presentation, records
from comments.domain.counters import counting
from comments.domain.crypto import client_networks, secret_rotation
from comments.domain.ids import author_ids
from comments.domain.moderation.reasons import HoldReason
from comments.domain.records import Ruling, Status
from comments.events import audit_log, backlog
from comments.limits import proof_policy, rate_limits
from comments.limits.site_request import SiteRequest
from comments.moderation import reports
from comments.moderation.policy import rulebook
from comments.store import reads, transactions
from comments.store.models import comment_rows, counter_rows, moderation_rows
from comments.tree import status_changes, values

PER_NETWORK = rate_limits.Limit("reports", 20, timedelta(hours=1))
BY = records.Actor("reports", "reports of readers")
TRUSTED = 5  # Number of other approved comments on the site
_RULE = "reports"


def newcomer_id(proof: str, request: SiteRequest) -> str:
    """Derive an author id for a caller without a token from the caller's proof of work.

    Return "" if the site requires no proof.

    Raises:
        errors.Forbidden: the proof is missing or not valid; see `proof_policy.check`.
    """
    return proof_policy.person(proof, request, proof_policy.ChallengePurpose.REPORT) or ""


def report(comment_id: str, reason: reports.Reason, request: SiteRequest, *, author: str) -> None:
    """Report a comment. `author` is "" for a caller without a token or a proof.

    Raises:
        errors.NotFound: the site has no such published comment.
        errors.TooMany: the network has sent too many reports.
        errors.Overloaded: the store did not answer in time; retrying is safe.
    """
    site, network, now = request.site.id, request.sender.network, request.now
    secret, is_vouched = request.settings.secret, author.startswith(author_ids.ACCOUNT)
    identifiers = _identifiers(author, network)
    people = [
        [reports.person(comment_id, identifier, under) for identifier in identifiers]
        for under in secret_rotation.accepted_secrets(secret)
    ]
    limit = rulebook.current(site).reports
    bucket = rate_limits.Network(PER_NETWORK, network, secret)
    key = moderation_rows.report_key(comment_id)
    act = audit_log.Act(BY, records.Verb.HOLD.value)

    def body() -> values.ChangeResult | None:
        stored, row, *taken = reads.get_multi(
            [comment_rows.comment_key(comment_id), key, *bucket.keys]
        )
        if stored is None or stored.site != site or not _is_seen(stored, author):
            if audit_log.is_done(act):
                return None  # An earlier run held the comment, but its response was lost
            raise errors.NotFound("comment", comment_id)
        bucket.fill(taken, now=now)
        if bucket.is_empty:
            raise errors.TooMany(retry_after=bucket.wait(now))
        if stored.status != Status.APPROVED:
            transactions.apply(bucket.count_writes())
            return None  # Authors still see their shadowed comments as approved
        fresh = reports.fresh(comment_id, site, now=now)
        added = reports.add(row, fresh, people, reason, is_vouched=is_vouched, now=now)
        if added is None:
            transactions.apply(bucket.count_writes())
            return None
        transactions.apply(bucket.count_writes(), reports.report_writes(added))
        is_enough = _is_enough(added, stored, limit, now)
        return _hold(reports.summarize(added), act, now) if is_enough else None

    change = transactions.transaction(body, line=comment_id)
    if change is not None and change.event:
        backlog.tell(change.event)
        backlog.note_erasure(records.ThreadName(change.comment.site, change.comment.thread))


def _is_seen(comment: comment_rows.CommentRow, reader: str) -> bool:
    """Return whether a comment appears published to a reader.

    A shadowed comment appears published to its author.
    """
    is_own = bool(reader) and comment.author_id == reader
    status = Status(comment.status)
    return (presentation.status_for_author(status) if is_own else status) is Status.APPROVED


def _identifiers(author: str, network: str) -> list[str]:
    """Return the identifiers by which a reporter is recognized."""
    identifiers = [f"network {network}", *([f"author {author}"] if author else [])]
    if not author.startswith(author_ids.ACCOUNT):
        identifiers.append(f"area {client_networks.area(network)}")
    return identifiers


def _is_enough(
    row: moderation_rows.ReportRow, comment: comment_rows.CommentRow, limit: int, now: datetime
) -> bool:
    if not 0 < limit <= row.open:
        return False
    if row.vouched >= limit:
        return True
    return not (_is_vetted(row, comment) or _is_trusted(comment, now))


def _is_vetted(row: moderation_rows.ReportRow, comment: comment_rows.CommentRow) -> bool:
    """Return whether a moderator has approved the comment's current text."""
    edited: datetime | None = comment.edited
    by_moderator = comment.judged if comment.rule == records.BY_MODERATOR else None
    last = records.newest([row.cleared, by_moderator])
    return last is not None and (edited is None or edited <= last)


def _is_trusted(comment: comment_rows.CommentRow, now: datetime) -> bool:
    """Return whether the author has at least `TRUSTED` other approved comments on the site.

    A guest's id must also have been created before today (UTC), so that a burst of comments does
    not earn trust.
    """
    if not comment.author_id or author_ids.age(comment.author_id, None, now) == 0:
        return False
    row = reads.get(counter_rows.standing_key(comment.site, comment.author_id))
    return counter_rows.numbers_of(row).get(counting.APPROVED, 0) > TRUSTED


def _hold(told: reports.ReportSummary, act: audit_log.Act, now: datetime) -> values.ChangeResult:
    """Hold a comment in the transaction of the report that reaches the limit."""
    why = ", ".join(f"{name} {number}" for name, number in sorted(told.reasons.items()))
    hold_reasons = tuple(
        HoldReason(f"reported-{name}", {"count": number})
        for name, number in sorted(told.reasons.items())
    )
    ruling = Ruling(Status.PENDING, _RULE, why, hold_reasons)
    change = status_changes.judge(
        told.comment, ruling, status_changes.Decision(act, now, lambda _: None)
    )
    transactions.apply(*change.writes)
    return change
