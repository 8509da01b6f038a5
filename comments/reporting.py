"""Readers report comments; enough of them have one held for a moderator.

Owns how often a network may report, and when reports hold: where so many people reported what a
moderator has not approved since, as the site says (`rulebook`). An author counts once, and a
network does. The answer is the same whatever comes of it, so that nobody learns whether he was the
last one it took.

A report is anonymous unless it comes from a signed-in account: anybody can get a guest's token.

Invariants:

1. All anonymous reports of a comment from one area (`networks.area`) count once.
2. Anonymous reports never hold a comment that a moderator approved in its present text, or whose
   author is trusted (`_is_trusted`). Only reports of accounts count towards the limit there.
   Moderators see the others in the list of reported comments.
"""

from datetime import datetime, timedelta

from comments import (
    audit,
    authorids,
    config,
    counters,
    counts,
    datastore,
    errors,
    limits,
    models,
    networks,
    public,
    records,
    reports,
    rotation,
    rulebook,
    tasks,
    tree,
)
from comments.records import Ruling, Status

PER_NETWORK = limits.Limit("reports", 20, timedelta(hours=1))
BY = records.Actor("reports", "reports of readers")
TRUSTED = 5  # other approved comments on the site
_RULE = "reports"


def report(  # noqa: PLR0913 - who reports what, why and from where
    comment_id: str,
    site: str,
    reason: reports.Reason,
    *,
    author: str,
    network: str,
    settings: config.Settings,
    now: datetime,
) -> None:
    """Report a comment. `author` is empty for somebody without a token or proof.

    Raises:
        errors.NotFound: readers see no such comment on the site.
        errors.TooMany: the network reported too often.
        errors.Overloaded: the store did not answer in time; a repeat is safe.
    """
    secret, is_vouched = settings.secret, author.startswith(authorids.ACCOUNT)
    said = _said(author, network)
    people = [
        [reports.person(comment_id, each, under) for each in said]
        for under in rotation.accepted(secret)
    ]
    limit = rulebook.get(site).reports
    bucket = limits.Network(PER_NETWORK, network, secret)
    key = models.report_key(comment_id)
    act = audit.Act(BY, records.Verb.HOLD.value)

    def body() -> tree.Change | None:
        stored, row, *taken = datastore.get_multi(
            [models.comment_key(comment_id), key, *bucket.keys]
        )
        if stored is None or stored.site != site or not _is_seen(stored, author):
            if audit.is_done(act):
                return None  # it was held by an earlier run, whose answer was lost
            raise errors.NotFound("comment", comment_id)
        bucket.fill(taken, now=now)
        if bucket.is_empty:
            raise errors.TooMany("too many reports from here", retry_after=bucket.wait(now))
        if stored.status != Status.APPROVED:
            datastore.apply(bucket.take())
            return None  # its author's own report tells nobody anything
        fresh = reports.fresh(comment_id, site, now=now)
        added = reports.add(row, fresh, people, reason, is_vouched=is_vouched, now=now)
        if added is None:
            datastore.apply(bucket.take())
            return None
        datastore.apply(bucket.take(), reports.written(added))
        is_enough = _is_enough(added, stored, limit, now)
        return _held(reports.told(added), act, now) if is_enough else None

    change = datastore.transaction(body, line=comment_id)
    if change is not None and change.event:
        tasks.tell(change.event)
        tasks.erased(records.ThreadName(change.comment.site, change.comment.thread))


def _is_seen(comment: models.Comment, reader: str) -> bool:
    """Whether a comment is shown to a reader, as far as they can tell."""
    is_own = bool(reader) and comment.author_id == reader
    status = Status(comment.status)
    return (public.seeming(status) if is_own else status) is Status.APPROVED


def _said(author: str, network: str) -> list[str]:
    """Return what a reporter is recognised by."""
    said = [f"network {network}", *([f"author {author}"] if author else [])]
    if not author.startswith(authorids.ACCOUNT):
        said.append(f"area {networks.area(network)}")
    return said


def _is_enough(row: models.Report, comment: models.Comment, limit: int, now: datetime) -> bool:
    if not 0 < limit <= row.open:
        return False
    if row.vouched >= limit:
        return True
    return not (_is_vetted(row, comment) or _is_trusted(comment, now))


def _is_vetted(row: models.Report, comment: models.Comment) -> bool:
    """Whether a moderator approved the comment, and its text is still what they saw."""
    edited: datetime | None = comment.edited
    by_moderator = comment.judged if comment.rule == records.BY_MODERATOR else None
    last = records.newest([row.cleared, by_moderator])
    return last is not None and (edited is None or edited <= last)


def _is_trusted(comment: models.Comment, now: datetime) -> bool:
    """Whether the author has `TRUSTED` other approved comments on the site.

    A guest must also have come before today (UTC), so that a burst of comments earns no trust.
    """
    if not comment.author_id or authorids.age(comment.author_id, None, now) == 0:
        return False
    row = datastore.get(models.standing_key(comment.site, comment.author_id))
    return counts.numbers_of(row).get(counters.APPROVED, 0) > TRUSTED


def _held(told: reports.Told, act: audit.Act, now: datetime) -> tree.Change:
    """Hold a comment, in the transaction of the report that was one too many."""
    why = ", ".join(f"{name} {number}" for name, number in sorted(told.reasons.items()))
    ruling = Ruling(Status.PENDING, _RULE, why)
    change = tree.judge(told.comment, ruling, tree.Decision(act, now, lambda _: None))
    datastore.apply(*change.writes)
    return change
