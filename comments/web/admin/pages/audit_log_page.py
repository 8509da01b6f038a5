"""The audit log of a site, with a button to undo entries."""

from datetime import UTC, datetime

import flask

from comments.domain import records
from comments.domain.crypto import cursors
from comments.domain.moderation import roles
from comments.domain.records import Verb
from comments.events import audit_log
from comments.moderation import decisions
from comments.moderation.policy import policy_changes
from comments.store.models import comment_rows
from comments.web.admin import site_visit
from comments.web.admin.form_types import site_forms
from comments.web.http.decode import forms, query_strings
from comments.web.rendering import labels

blueprint = site_visit.blueprint("log")

_PAGE = 50
_UNDOABLE = frozenset(verb.value for verb in Verb if verb is not Verb.RESTORE)


@blueprint.get("/log")
def show(site_id: str) -> flask.Response:
    """Show the newest entries about one subject, or about all subjects."""
    visit = site_visit.enter(site_id)
    query, secret = query_strings.read(site_forms.AuditLogQuery), site_visit.settings().secret
    label = cursors.label("log", visit.site.id, query.subject)
    after = None
    if query.cursor:
        after = audit_log.entry(visit.site.id, cursors.unseal(query.cursor, label, secret)[0])
    entries = audit_log.log(visit.site.id, subject=query.subject, after=after, limit=_PAGE)
    more = len(entries) == _PAGE
    return site_visit.page(
        "log.html",
        visit,
        query=query,
        entries=entries,
        is_comment=comment_rows.is_comment_id,
        is_undoable=_is_undoable,
        subject=labels.subject,
        change=labels.change,
        cursor=cursors.seal([entries[-1].id], label, secret) if more else None,
    )


@blueprint.post("/log")
def undo(site_id: str) -> flask.Response:
    """Undo the change in an entry, unless a later decision has replaced the change."""
    visit = site_visit.enter(site_id)
    sent, now = forms.read(site_forms.UndoForm), datetime.now(UTC)
    site, actor = visit.site.id, visit.account.actor
    entry = audit_log.entry(site, sent.entry)
    if comment_rows.is_comment_id(entry.subject):
        decisions.undo(site, entry.id, actor, now=now)
        return site_visit.redirect_with_notice(visit, f"comments/{entry.subject}", "undone")
    # Only owners may change the policy of a site, so only owners may restore an earlier policy.
    if entry.subject == "site":
        site_visit.enter(site_id, roles.Role.OWNER)
    policy_changes.undo(site, entry.id, actor, now=now)
    return site_visit.redirect_with_notice(visit, "log", "undone")


def _is_undoable(entry: records.Audit, visit: site_visit.Visit) -> bool:
    """Return whether the page shows an undo button for an entry.

    `undo` itself checks whether the change can still be undone.
    """
    if comment_rows.is_comment_id(entry.subject):
        return entry.verb in _UNDOABLE
    return policy_changes.is_undoable(entry) and (entry.subject != "site" or visit.is_owner)
