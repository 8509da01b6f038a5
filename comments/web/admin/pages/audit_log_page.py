"""The audit log of a site, with a button to undo entries."""

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
from comments.web.rendering import labels
from comments.web.sign_in import signed_in

blueprint = site_visit.blueprint("log")

_PAGE = 50
_UNDOABLE = frozenset(verb.value for verb in Verb if verb is not Verb.RESTORE)


@blueprint.page("/log", site_forms.AuditLogQuery)
def show(visit: site_visit.Visit, query: site_forms.AuditLogQuery) -> flask.Response:
    """Show the newest entries about one subject, or about all subjects."""
    secret = site_visit.settings().secret
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


@blueprint.form("/log", site_forms.UndoForm)
def undo(visit: site_visit.Visit, sent: site_forms.UndoForm) -> flask.Response:
    """Undo the change in an entry, unless a later decision has replaced the change."""
    site, actor = visit.site.id, visit.account.actor
    entry = audit_log.entry(site, sent.entry)
    if comment_rows.is_comment_id(entry.subject):
        decisions.undo(site, entry.id, actor, now=visit.now)
        return site_visit.redirect_with_notice(visit, f"comments/{entry.subject}", "undone")
    # Only owners may change the policy of a site, so only owners may restore an earlier policy.
    if entry.subject == "site":
        signed_in.require(roles.Role.OWNER, visit.site.id)
    policy_changes.undo(site, entry.id, actor, now=visit.now)
    return site_visit.redirect_with_notice(visit, "log", "undone")


def _is_undoable(entry: records.Audit, visit: site_visit.Visit) -> bool:
    """Return whether the page shows an undo button for an entry.

    `undo` itself checks whether the change can still be undone.
    """
    if comment_rows.is_comment_id(entry.subject):
        return entry.verb in _UNDOABLE
    return bool(entry.back) and (entry.subject != "site" or visit.is_owner)
