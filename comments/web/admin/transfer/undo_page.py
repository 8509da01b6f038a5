"""The undo of an import: what it removes, what stays, and a button that begins it."""

import flask

from comments import errors
from comments.events import audit_log
from comments.transfer.importing import import_journal, import_undo
from comments.web.admin import site_visit
from comments.web.admin.form_types import site_forms
from comments.web.rendering import labels
from comments.web.sign_in import signed_in

blueprint = site_visit.owner_blueprint("undo")

_STEPS = 10  # Transactions in the request itself; the background worker runs the rest.


@blueprint.page("/imports/undo", site_forms.ImportQuery)
def show(visit: site_visit.Visit, query: site_forms.ImportQuery) -> flask.Response:
    """Show what an undo will remove and what will stay."""
    site = visit.site.id
    try:
        stored = import_journal.get(site, query.id)
        import_undo.check(site, stored, visit.now)
    except errors.ImportRefused as error:
        return _refusal(visit, error)
    preview = import_undo.preview(site, stored.id)
    return site_visit.page("undo.html", visit, found=stored, preview=preview, problem="")


@blueprint.form("/imports/undo", site_forms.ImportQuery)
def begin(visit: site_visit.Visit, sent: site_forms.ImportQuery) -> flask.Response:
    """Begin an undo; the background worker continues it."""
    act = audit_log.Act(visit.account.actor, import_undo.VERB)
    try:
        import_undo.start(visit.site.id, sent.id, act, now=visit.now, steps=_STEPS)
    except errors.ImportRefused as error:
        return _refusal(visit, error)
    return signed_in.redirect_to(f"admin/sites/{visit.site.id}/imports")


def _refusal(visit: site_visit.Visit, error: errors.ImportRefused) -> flask.Response:
    response = site_visit.page("undo.html", visit, found=None, problem=labels.problem(error))
    response.status_code = 409
    return response
