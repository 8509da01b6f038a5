"""Readers report comments; enough of them have one held for a moderator.

Owns how often a network may report, and when reports hold: where so many people reported what a
moderator has not approved since, as the site says (`rulebook`). An author counts once, and a
network does. The answer is the same whatever comes of it, so that nobody learns whether he was the
last one it took.
"""

from datetime import datetime, timedelta

from comments import (
    audit,
    config,
    datastore,
    errors,
    limits,
    models,
    records,
    reports,
    rulebook,
    tasks,
    tree,
)
from comments.records import Ruling, Status

PER_NETWORK = limits.Limit("reports", 20, timedelta(hours=1))
BY = records.Actor("reports", "reports of readers")
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
    """Report a comment. `author` is empty for somebody without a token.

    Raises:
        errors.NotFound: readers see no such comment on the site.
        errors.TooMany: the network reported too often.
        errors.Overloaded: the store did not answer in time; a repeat is safe.
    """
    secret = settings.secret
    said = [f"network {network}", *([f"author {author}"] if author else [])]
    people = [reports.person(comment_id, each, secret) for each in said]
    limit = rulebook.get(site).reports
    bucket = limits.Bucket(PER_NETWORK, network, secret)
    key = models.report_key(comment_id)
    act = audit.Act(BY, records.Verb.HOLD.value)

    def body() -> tree.Change | None:
        taken, stored, row = datastore.get_multi([bucket.key, models.comment_key(comment_id), key])
        if stored is None or stored.site != site or stored.status != Status.APPROVED:
            if audit.is_done(act):
                return None  # it was held by an earlier run, whose answer was lost
            raise errors.NotFound("comment", comment_id)
        bucket.fill(taken, now=now)
        if bucket.is_empty:
            raise errors.TooMany("too many reports from here", retry_after=bucket.wait(now))
        fresh = reports.fresh(comment_id, site, now=now)
        added = reports.add(row, fresh, people, reason, now=now)
        if added is None:
            datastore.apply(bucket.take())
            return None
        datastore.apply(bucket.take(), reports.written(added))
        return _held(reports.told(added), limit, act, now)

    change = datastore.transaction(body, line=comment_id)
    if change is not None and change.event:
        tasks.tell(change.event)
        tasks.erased(records.ThreadName(change.comment.site, change.comment.thread))


def _held(told: reports.Told, limit: int, act: audit.Act, now: datetime) -> tree.Change | None:
    """Hold a comment, in the transaction of the report that was one too many."""
    if not 0 < limit <= told.open:
        return None
    why = ", ".join(f"{name} {number}" for name, number in sorted(told.reasons.items()))
    ruling = Ruling(Status.PENDING, _RULE, why)
    change = tree.judge(told.comment, ruling, tree.Decision(act, now, lambda _: None))
    datastore.apply(*change.writes)
    return change
