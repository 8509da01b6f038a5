"""The audit log of a site: who decided what, when, and why."""

from datetime import UTC, datetime

import flask

from comments import audit, cursors, models, moderation, policies, records, roles
from comments.records import Verb
from comments.web import forms, queries
from comments.web.desk import asked, visits

blueprint = visits.blueprint("log")

_PAGE = 50
_UNDOABLE = frozenset(verb.value for verb in Verb if verb is not Verb.RESTORE)


@blueprint.get("/log")
def show(site_id: str) -> flask.Response:
    """The newest entries, of one subject or of all."""
    visit = visits.enter(site_id)
    query, secret = queries.read(asked.Log), visits.settings().secret
    label = cursors.label("log", visit.site.id, query.subject)
    after = None
    if query.cursor:
        after = audit.entry(visit.site.id, cursors.unseal(query.cursor, label, secret)[0])
    entries = audit.log(visit.site.id, subject=query.subject, after=after, limit=_PAGE)
    more = len(entries) == _PAGE
    return visits.page(
        "log.html",
        visit,
        query=query,
        entries=entries,
        is_comment=models.is_comment_id,
        is_undoable=_is_undoable,
        cursor=cursors.seal([entries[-1].id], label, secret) if more else None,
    )


@blueprint.post("/log")
def undo(site_id: str) -> flask.Response:
    """Take back what an entry says, where that still stands."""
    visit = visits.enter(site_id)
    sent, now = forms.read(asked.Undo), datetime.now(UTC)
    site, actor = visit.site.id, visit.account.actor
    entry = audit.entry(site, sent.entry)
    if models.is_comment_id(entry.subject):
        moderation.undo(site, entry.id, actor, now=now)
        return visits.done(visit, f"comments/{entry.subject}", "undone")
    # The policy of a site is its owners' to settle, and so is what it was.
    if entry.subject == "site":
        visits.enter(site_id, roles.Role.OWNER)
    policies.undo(site, entry.id, actor, now=now)
    return visits.done(visit, "log", "undone")


def _is_undoable(entry: records.Audit, visit: visits.Visit) -> bool:
    """Whether somebody is offered to take it back; what stands by now is asked when he does."""
    if models.is_comment_id(entry.subject):
        return entry.verb in _UNDOABLE
    return policies.is_undoable(entry) and (entry.subject != "site" or visit.is_owner)
