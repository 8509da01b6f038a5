"""Define the kinds and keys for moderation: decisions, settings, reports, classifier answers."""

from datetime import UTC

from google.cloud import ndb

from comments.domain import records
from comments.store.models import schema
from comments.store.models.conversion import plain


class AuditEntryRow(schema.StoredRow):
    """A decision. Only `audit_log` writes this kind."""

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


class RulebookRow(schema.StoredRow):
    """A site's moderation settings. Only `rulebook` writes this kind."""

    content = schema.TextProperty(required=True)


class ErasureDueRow(schema.StoredRow):
    """A retention mark of a refused comment. Only `retention_marks` writes this kind."""

    since = schema.DateTimeProperty(required=True, tzinfo=UTC)


def audit_key(entry: str) -> ndb.Key:
    return schema.RowKey(AuditEntryRow, entry)


class ReportRow(schema.StoredRow):
    """The reports about a comment. Only `reports` writes this kind."""

    site = schema.StringProperty(required=True)
    people = schema.TextProperty(repeated=True)
    reasons = schema.TextProperty(default="{}")
    settled = schema.IntegerProperty(indexed=False, default=0)
    open = schema.IntegerProperty(default=0)
    vouched = schema.IntegerProperty(indexed=False, default=0)
    cleared = schema.DateTimeProperty(indexed=False, tzinfo=UTC)
    last = schema.DateTimeProperty(required=True, tzinfo=UTC)


class AdviceRow(schema.StoredRow):
    """The classifier answers about a comment. Only `classifier_answers` writes this kind."""

    said = schema.TextProperty(required=True)


def advice_key(comment_id: str) -> ndb.Key:
    return schema.RowKey(AdviceRow, comment_id)


def report_key(comment_id: str) -> ndb.Key:
    return schema.RowKey(ReportRow, comment_id)


def rulebook_key(site: str) -> ndb.Key:
    return schema.RowKey(RulebookRow, site)


def erasure_key(comment_id: str) -> ndb.Key:
    return schema.RowKey(ErasureDueRow, comment_id)


def audit_record(row: AuditEntryRow) -> records.Audit:
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
