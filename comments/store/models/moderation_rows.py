"""What moderators decided, and what follows from it later: kinds and keys."""

from datetime import UTC

from google.cloud import ndb

from comments.domain import records
from comments.store.models import schema
from comments.store.models.conversion import plain


class AuditEntry(schema.Kind):
    """Something that was decided. Written by `audit_log` only, and drawn there."""

    site = schema.StringProperty(required=True)
    subject = schema.StringProperty(required=True)
    verb = schema.TextProperty(required=True)
    actor = schema.TextProperty(required=True)
    actor_name = schema.TextProperty(default="")
    at = schema.DateTimeProperty(required=True, tzinfo=UTC)
    before = schema.TextProperty(default="")
    after = schema.TextProperty(default="")
    reason = schema.TextProperty(default="")
    back = schema.TextProperty(default="")


class Rulebook(schema.Kind):
    """How a site is moderated. Written by `rulebook` only, and drawn there."""

    content = schema.TextProperty(required=True)


class ErasureDue(schema.Kind):
    """Says that a comment was refused, and since when. Written by `retention_marks` only."""

    since = schema.DateTimeProperty(required=True, tzinfo=UTC)


def audit_key(entry: str) -> ndb.Key:
    """The key of an entry of the audit log."""
    return ndb.Key(AuditEntry, entry)


class Report(schema.Kind):
    """Who reported a comment. Written by `reports` only, and drawn there."""

    site = schema.StringProperty(required=True)
    people = schema.TextProperty(repeated=True)
    reasons = schema.TextProperty(default="{}")
    settled = schema.IntegerProperty(indexed=False, default=0)
    open = schema.IntegerProperty(default=0)
    vouched = schema.IntegerProperty(indexed=False, default=0)
    cleared = schema.DateTimeProperty(indexed=False, tzinfo=UTC)
    last = schema.DateTimeProperty(required=True, tzinfo=UTC)


class Advice(schema.Kind):
    """What advisers outside said of a comment. Written by `advice` only, and drawn there."""

    said = schema.TextProperty(required=True)


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
