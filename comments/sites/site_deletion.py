"""Delete websites, and take them back.

A deleted site keeps all its rows for `TERM`. Until then, an owner can take it back with one change
of its row. Afterwards, or when an operator asks for it, `site_erasure` erases its rows.

From the deletion on, `site_settings.get` and `current` treat the site as one that does not exist,
so every public call answers 404, and nobody sees it in the console except its owners.

A site whose erasure has begun cannot be taken back.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from comments import errors
from comments.domain import records
from comments.events import audit_log
from comments.sites import site_settings
from comments.store import ownership, reads, transactions
from comments.store.models import comment_rows, conversion

TERM = timedelta(days=30)
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
DELETE, RESTORE = "delete-site", "undelete-site"  # Verbs in the audit log


def delete(site_id: str, actor: records.Actor, *, now: datetime) -> records.Site:
    """Delete a site. Repeating the call changes nothing.

    Raises:
        errors.NotFound: the site does not exist.
    """
    act = audit_log.Act(actor, DELETE)

    def change(site: records.Site, row: comment_rows.SiteRow) -> None:
        if site.deleted is None:
            row.deleted = now
            _note(act, site_id, now)

    return _change(site_id, change)


def restore(site_id: str, actor: records.Actor, *, now: datetime) -> records.Site:
    """Take a deleted site back. Repeating the call changes nothing.

    Raises:
        errors.NotFound: the site does not exist.
        errors.Conflict: the erasure of the site has begun.
    """
    act = audit_log.Act(actor, RESTORE)

    def change(site: records.Site, row: comment_rows.SiteRow) -> None:
        if site.erasing is not None:
            raise errors.Conflict("site-erased", value=site_id)
        if site.deleted is not None:
            row.deleted = None
            _note(act, site_id, now)

    return _change(site_id, change)


def begin_erasure(site_id: str, *, now: datetime) -> records.Site:
    """Mark a deleted site for erasure, from which it cannot be taken back.

    Raises:
        errors.NotFound: the site does not exist.
        errors.Conflict: the site is not deleted.
    """

    def change(site: records.Site, row: comment_rows.SiteRow) -> None:
        if site.deleted is None:
            raise errors.Conflict("site-not-deleted", value=site_id)
        row.erasing = site.erasing or now

    return _change(site_id, change)


def remove(site_id: str) -> None:
    """Delete the row of a site whose other rows are erased; the id becomes free."""

    def body() -> None:
        row = reads.get(comment_rows.site_key(site_id))
        if row is not None and row.erasing is not None:
            transactions.apply(ownership.Writes("site_settings", delete=(row.key,)))

    transactions.transaction(body)
    site_settings.COPIES.get().drop(site_id)


def deleted_sites() -> list[records.Site]:
    """List the deleted sites whose rows are not erased completely, sorted by id."""
    # The lower bound excludes null, which sorts before all times.
    names = reads.names("Site", [("deleted", ">", _NEVER)])
    rows = reads.get_multi([comment_rows.site_key(name) for name in sorted(names)])
    sites = (conversion.site_record(row) for row in rows if row is not None)
    return [site for site in sites if site.deleted is not None]


def ends(site: records.Site) -> datetime:
    """Return the time until which a deleted site can be taken back."""
    assert site.deleted is not None, "only deleted sites end"  # noqa: S101 - finds bugs
    return site.deleted + TERM


def _note(act: audit_log.Act, site_id: str, now: datetime) -> None:
    transactions.apply(audit_log.entry_writes(act, site_id, "site", before="", after="", now=now))


def _change(
    site_id: str, change: Callable[[records.Site, comment_rows.SiteRow], None]
) -> records.Site:
    def body() -> records.Site:
        row = reads.get(comment_rows.site_key(site_id)) if site_id else None
        if row is None:
            raise errors.NotFound("site", site_id)
        before = conversion.site_record(row)
        change(before, row)
        after = conversion.site_record(row)
        if after != before:
            transactions.apply(ownership.Writes("site_settings", put=(row,)))
        return after

    changed = transactions.transaction(body)
    site_settings.COPIES.get().drop(site_id)
    return changed
