"""The audit log of a site: who decided what, when, and why."""

from datetime import UTC, datetime

import flask

from comments import audit, cursors, models
from comments.web import queries
from comments.web.desk import asked, visits

blueprint = visits.blueprint("log")

_PAGE = 50


@blueprint.get("/log")
def show(site_id: str) -> flask.Response:
    """The newest entries, of one subject or of all."""
    visit = visits.enter(site_id)
    query, secret = queries.read(asked.Log), visits.settings().secret
    label = cursors.label("log", visit.site.id, query.subject)
    before = None
    if query.cursor:
        moment = cursors.unseal(query.cursor, label, secret)[0]
        before = datetime.fromisoformat(moment).astimezone(UTC)
    entries = audit.log(visit.site.id, subject=query.subject, before=before, limit=_PAGE)
    more = len(entries) == _PAGE
    return visits.page(
        "log.html",
        visit,
        query=query,
        entries=entries,
        is_comment=models.is_comment_id,
        cursor=cursors.seal([entries[-1].at.isoformat()], label, secret) if more else None,
    )
