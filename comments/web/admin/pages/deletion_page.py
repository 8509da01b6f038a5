"""Delete a site, and take it back: for the site's owners."""

import flask

from comments import errors
from comments.accounts.passwords import password_login
from comments.domain.moderation import roles
from comments.sites import site_deletion
from comments.web.admin import site_visit
from comments.web.admin.form_types import site_forms
from comments.web.http import context
from comments.web.http.decode import forms, parameters
from comments.web.sign_in import account_pages, signed_in

blueprint = site_visit.owner_blueprint("deletion")


@blueprint.page("/settings/delete")
def show(visit: site_visit.Visit, _query: object) -> flask.Response:
    """Show what a deletion does, and the form."""
    return site_visit.page("delete.html", visit, days=site_deletion.TERM.days)


@blueprint.form("/settings/delete", site_forms.DeletionForm)
def delete(visit: site_visit.Visit, sent: site_forms.DeletionForm) -> flask.Response:
    """Delete the site after the owner has typed its id and their password.

    An account that signs in only through a provider has no password.
    """
    if sent.site.strip() != visit.site.id:
        raise errors.BadInput("site", "not-confirmed", value=visit.site.id)
    account_pages.confirm(visit.account, sent.current)
    site_deletion.delete(visit.site.id, visit.account.actor, now=visit.now)
    return signed_in.redirect_to("admin#deleted")


@blueprint.post("/undelete")
def restore(site_id: str) -> flask.Response:
    """Take a deleted site back."""
    account = signed_in.require_account()
    if not roles.has(account.grants, roles.Role.MODERATOR, site_id):
        raise errors.NotFound("site", site_id)
    signed_in.require(roles.Role.OWNER, site_id)
    forms.read(parameters.NoForm)
    site_deletion.restore(site_id, account.actor, now=context.now())
    return signed_in.redirect_to("admin#restored")


blueprint.show_again(show, errors.TooMany, password_login.Wrong)
