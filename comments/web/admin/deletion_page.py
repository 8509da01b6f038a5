"""Delete a site, and take it back: for the site's owners."""

from datetime import UTC, datetime

import flask

from comments import errors
from comments.accounts.passwords import password_login
from comments.domain.moderation import roles
from comments.sites import site_deletion
from comments.web.admin import site_visit
from comments.web.admin.form_types import form_fields, site_forms
from comments.web.http.decode import forms, parameters, query_strings
from comments.web.sign_in import account_pages, signed_in

blueprint = site_visit.blueprint("deletion")


@blueprint.get("/settings/delete")
def show(site_id: str) -> flask.Response:
    """Show what a deletion does, and the form."""
    visit = site_visit.enter(site_id, roles.Role.OWNER)
    query_strings.read(form_fields.EmptyQuery)
    return _page(visit)


@blueprint.post("/settings/delete")
def delete(site_id: str) -> flask.Response:
    """Delete the site after the owner has typed its id and their password.

    An account that signs in only through a provider has no password.
    """
    visit = site_visit.enter(site_id, roles.Role.OWNER)
    sent = forms.read(site_forms.DeletionForm)
    try:
        _check(visit, sent)
    except (errors.BadInput, errors.TooMany, password_login.Wrong) as error:
        return _page(visit, error)
    site_deletion.delete(visit.site.id, visit.account.actor, now=datetime.now(UTC))
    return signed_in.redirect_to("admin#deleted")


@blueprint.post("/undelete")
def restore(site_id: str) -> flask.Response:
    """Take a deleted site back."""
    account = signed_in.require_account()
    if not roles.has(account.grants, roles.Role.MODERATOR, site_id):
        raise errors.NotFound("site", site_id)
    signed_in.require(roles.Role.OWNER, site_id)
    forms.read(parameters.NoForm)
    site_deletion.restore(site_id, account.actor, now=datetime.now(UTC))
    return signed_in.redirect_to("admin#restored")


def _check(visit: site_visit.Visit, sent: site_forms.DeletionForm) -> None:
    if sent.site.strip() != visit.site.id:
        raise errors.BadInput("site", "not-confirmed", value=visit.site.id)
    account_pages.confirm(visit.account, sent.current)


def _page(visit: site_visit.Visit, error: errors.FlatthreadError | None = None) -> flask.Response:
    status = 200 if error is None else signed_in.refuse_form(error)
    made = site_visit.page(
        "delete.html",
        visit,
        days=site_deletion.TERM.days,
    )
    made.status_code = status
    return made
