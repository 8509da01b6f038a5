"""Retention: what was refused is erased when its term is over.

Owns the term. A comment that was made spam or rejected, or put in the shadow, keeps its text for
`TERM` after that, so that a moderator can undo it; then it is erased as if its author had taken it
back, with its votes. What an import brought as spam or rejected stays: nobody here refused it.
Who reported a comment is forgotten as long after its last report.
"""

import functools
from datetime import datetime, timedelta

from google.cloud import ndb

from comments import datastore, erasures, models, records, reports, tasks, tree, votes

TERM = timedelta(days=30)
_AT_ONCE = 100


def expire(now: datetime) -> int:
    """Erase what was refused long enough ago; how many comments.

    Raises:
        errors.Overloaded: the store is busy; the rest is done the next time.
    """
    erased = 0
    while found := erasures.due(now - TERM, _AT_ONCE):
        for comment_id in found:
            erased += _expire(comment_id, now)
    while old := reports.old(now - TERM, _AT_ONCE):
        datastore.transaction(functools.partial(_forget_reports, old))
    return erased


def _forget_reports(keys: list[ndb.Key]) -> None:
    datastore.apply(reports.gone(keys))


def _expire(comment_id: str, now: datetime) -> bool:
    change = datastore.transaction(functools.partial(_step, comment_id, now), line=comment_id)
    if change is None:
        return False
    tasks.tell(change.event)
    tasks.erased(records.ThreadName(change.comment.site, change.comment.thread))
    tasks.voted(records.VotedComment(comment_id))
    return True


def _step(comment_id: str, now: datetime) -> tree.Change | None:
    row = datastore.get(models.comment_key(comment_id))
    judged = None if row is None else models.case_record(row).judged
    if row is None or judged is None or row.status not in erasures.REFUSED:
        datastore.apply(erasures.ended(comment_id))
        return None
    if judged > now - TERM:
        datastore.apply(erasures.later(comment_id, judged))
        return None
    change = tree.retract(comment_id, now=now, check=lambda _: None)
    name = records.ThreadName(row.site, row.thread_id)
    datastore.apply(*change.writes, votes.ended(comment_id, name, now=now))
    return change
