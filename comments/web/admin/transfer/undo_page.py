"""The undo of an import: what it removes, what stays, and a button that begins it."""

from datetime import UTC, datetime

import flask

from comments import errors
from comments.domain.moderation import roles
from comments.events import audit_log
from comments.transfer.importing import import_journal, import_undo
from comments.web.admin import site_visit
from comments.web.admin.form_types import site_forms
from comments.web.http.decode import forms, query_strings
from comments.web.rendering import labels
from comments.web.sign_in import signed_in

blueprint = site_visit.blueprint("undo")

_STEPS = 10  # Transactions in the request itself; the background worker runs the rest.


@blueprint.get("/imports/undo")
def show(site_id: str) -> flask.Response:
    """Show what an undo will remove and what will stay."""
    visit = site_visit.enter(site_id, roles.Role.OWNER)
    query = query_strings.read(site_forms.ImportQuery)
    site, now = visit.site.id, datetime.now(UTC)
    try:
        stored = import_journal.get(site, query.id)
        import_undo.check(site, stored, now)
    except errors.ImportRefused as error:
        return _refusal(visit, error)
    preview = import_undo.preview(site, stored.id)
    return site_visit.page("undo.html", visit, found=stored, preview=preview, problem="")


@blueprint.post("/imports/undo")
def begin(site_id: str) -> flask.Response:
    """Begin an undo; the background worker continues it."""
    visit = site_visit.enter(site_id, roles.Role.OWNER)
    sent = forms.read(site_forms.ImportQuery)
    act = audit_log.Act(visit.account.actor, import_undo.VERB)
    try:
        import_undo.start(visit.site.id, sent.id, act, now=datetime.now(UTC), steps=_STEPS)
    except errors.ImportRefused as error:
        return _refusal(visit, error)
    return signed_in.redirect_to(f"admin/sites/{visit.site.id}/imports")


def _refusal(visit: site_visit.Visit, error: errors.ImportRefused) -> flask.Response:
    response = site_visit.page("undo.html", visit, found=None, problem=labels.problem(error))
    response.status_code = 409
    return response
