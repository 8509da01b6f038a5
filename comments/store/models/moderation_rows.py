"""Define the kinds and keys for moderation: decisions, settings, reports, classifier answers."""

from comments.domain import records
from comments.store.models import schema


class AuditEntryRow(schema.StoredRow):
    """A decision in the audit log. Only `audit_log` writes this kind."""

    site = schema.string(required=True)
    subject = schema.string(required=True)
    verb = schema.text(required=True)
    actor = schema.text(required=True)
    actor_name = schema.text(default="")
    at = schema.time(required=True)
    before = schema.text(default="")
    after = schema.text(default="")
    reason = schema.text(default="")
    back = schema.text(default="")


class RulebookRow(schema.StoredRow):
    """A site's moderation settings. Only `rulebook` writes this kind."""

    content = schema.text(required=True)


class ErasureDueRow(schema.StoredRow):
    """A retention mark of a refused comment. Only `retention_marks` writes this kind."""

    since = schema.time(required=True)


class AuthorLinkRow(schema.StoredRow):
    """Two author ids of one person on a site. Only `author_links` writes this kind.

    `claimant` is the author id of the reader who proved the address of an imported author; it is
    empty if a moderator linked the ids. A row with only one author refuses claims of this author.
    """

    site = schema.string(required=True)
    authors = schema.strings()
    claimant = schema.text(default="")
    since = schema.time(indexed=False, required=True)


def claim_key(site: str, imported: str) -> schema.RowKey:
    return schema.RowKey(AuthorLinkRow, f"{site}/{imported}")


def author_link_key(site: str, one: str, other: str) -> schema.RowKey:
    """Return the key of a moderator's link; the order of the author ids makes no difference."""
    return schema.RowKey(AuthorLinkRow, "/".join((site, *sorted((one, other)))))


def audit_key(entry: str) -> schema.RowKey:
    return schema.RowKey(AuditEntryRow, entry)


class ReportRow(schema.StoredRow):
    """The reports about a comment. Only `reports` writes this kind."""

    site = schema.string(required=True)
    people = schema.texts()
    reasons = schema.text(default="{}")
    settled = schema.integer(indexed=False, default=0)
    open = schema.integer(default=0)
    vouched = schema.integer(indexed=False, default=0)
    cleared = schema.time(indexed=False)
    last = schema.time(required=True)


class AdviceRow(schema.StoredRow):
    """The classifier answers about a comment. Only `classifier_answers` writes this kind."""

    said = schema.text(required=True)


def advice_key(comment_id: str) -> schema.RowKey:
    return schema.RowKey(AdviceRow, comment_id)


def report_key(comment_id: str) -> schema.RowKey:
    return schema.RowKey(ReportRow, comment_id)


def rulebook_key(site: str) -> schema.RowKey:
    return schema.RowKey(RulebookRow, site)


def erasure_key(comment_id: str) -> schema.RowKey:
    return schema.RowKey(ErasureDueRow, comment_id)


def audit_record(row: AuditEntryRow) -> records.Audit:
    return records.Audit(
        id=row.key.id(),
        site=row.site,
        subject=row.subject,
        verb=row.verb,
        actor=records.Actor(row.actor, row.actor_name),
        at=row.at,
        before=row.before,
        after=row.after,
        reason=row.reason,
        back=row.back or "",
    )
