"""The audit log of a site: who decided what, when, and why."""

from datetime import UTC, datetime

import flask

from comments import audit, cursors, models, moderation
from comments.records import Verb
from comments.web import callers, forms, queries
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
        undoable=_UNDOABLE,
        cursor=cursors.seal([entries[-1].id], label, secret) if more else None,
    )


@blueprint.post("/log")
def undo(site_id: str) -> flask.Response:
    """Take back what an entry says, where that still stands."""
    visit = visits.enter(site_id)
    sent = forms.read(asked.Undo)
    done = moderation.undo(visit.site.id, sent.entry, visit.account.actor, now=datetime.now(UTC))
    return callers.go(f"admin/sites/{visit.site.id}/comments/{done.id}")
