"""What moderators decided, and what follows from it later: kinds and keys."""

from datetime import UTC

from google.cloud import ndb

from comments.domain import records
from comments.store.models.times import plain


class AuditEntry(ndb.Model):
    """Something that was decided. Written by `audit_log` only, and drawn there."""

    site = ndb.StringProperty(required=True)
    subject = ndb.StringProperty(required=True)
    verb = ndb.TextProperty(required=True)
    actor = ndb.TextProperty(required=True)
    actor_name = ndb.TextProperty(default="")
    at = ndb.DateTimeProperty(required=True, tzinfo=UTC)
    before = ndb.TextProperty(default="")
    after = ndb.TextProperty(default="")
    reason = ndb.TextProperty(default="")
    back = ndb.TextProperty(default="")


class Rulebook(ndb.Model):
    """How a site is moderated. Written by `rulebook` only, and drawn there."""

    content = ndb.TextProperty(required=True)


class ErasureDue(ndb.Model):
    """Says that a comment was refused, and since when. Written by `retention_marks` only."""

    since = ndb.DateTimeProperty(required=True, tzinfo=UTC)


def audit_key(entry: str) -> ndb.Key:
    """The key of an entry of the audit log."""
    return ndb.Key(AuditEntry, entry)


class Report(ndb.Model):
    """Who reported a comment. Written by `reports` only, and drawn there."""

    site = ndb.StringProperty(required=True)
    people = ndb.TextProperty(repeated=True)
    reasons = ndb.TextProperty(default="{}")
    settled = ndb.IntegerProperty(indexed=False, default=0)
    open = ndb.IntegerProperty(default=0)
    vouched = ndb.IntegerProperty(indexed=False, default=0)
    cleared = ndb.DateTimeProperty(indexed=False, tzinfo=UTC)
    last = ndb.DateTimeProperty(required=True, tzinfo=UTC)


class Advice(ndb.Model):
    """What advisers outside said of a comment. Written by `advice` only, and drawn there."""

    said = ndb.TextProperty(required=True)


def advice_key(comment_id: str) -> ndb.Key:
    """The key of what was said of a comment."""
    return ndb.Key(Advice, comment_id)


def report_key(comment_id: str) -> ndb.Key:
    """The key of the reports of a comment."""
    return ndb.Key(Report, comment_id)


def rulebook_key(site: str) -> ndb.Key:
    """The key of how a site is moderated."""
    return ndb.Key(Rulebook, site)


def erasure_key(comment_id: str) -> ndb.Key:
    """The key of what says that a refused comment is to be erased."""
    return ndb.Key(ErasureDue, comment_id)


def audit_record(row: AuditEntry) -> records.Audit:
    """A stored entry of the audit log as a record."""
    return records.Audit(
        id=row.key.id(),
        site=row.site,
        subject=row.subject,
        verb=row.verb,
        actor=records.Actor(row.actor, row.actor_name),
        at=plain(row.at),
        before=row.before,
        after=row.after,
        reason=row.reason,
        back=row.back or "",
    )
