"""The moderators of a site, for the owners of the site.

Owners of a site invite moderators, make them owners of the site, and take their role. They see and
change nothing else: neither roles on other sites, nor how people sign in, nor people with a role on
the service. Owners of the site are listed, but only owners of the service change them
(`people_page`). Every change except the withdrawal of an invitation requires the owner's own
password.
"""

from datetime import UTC, datetime

import flask

from comments import errors
from comments.accounts import accounts
from comments.accounts.links import invitations
from comments.accounts.passwords import password_login
from comments.domain.moderation import roles
from comments.web.admin import site_visit
from comments.web.admin.form_types import form_fields, people_forms
from comments.web.admin.pages import people_page
from comments.web.http import context
from comments.web.http.decode import forms, query_strings
from comments.web.sign_in import account_pages, signed_in

blueprint = site_visit.blueprint("team")

_REFUSED = (errors.BadInput, errors.NotFound, password_login.Wrong)


@blueprint.get("/team")
def show(site_id: str) -> flask.Response:
    """List the owners and moderators of the site, and the pending invitations of moderators."""
    visit = _enter(site_id)
    query_strings.read(form_fields.EmptyQuery)
    return _page(visit)


@blueprint.post("/team/invite")
def invite(site_id: str) -> flask.Response:
    """Create an invitation for a moderator of the site."""
    visit, sent = _enter(site_id), forms.read(people_forms.ModeratorInvitationForm)
    try:
        account_pages.check_password(visit.account, sent.current)
        grant = roles.Grant(roles.Role.MODERATOR, visit.site.id)
        return people_page.create_invitation(grant, sent.email, f"sites/{visit.site.id}/team")
    except _REFUSED as error:
        return _page(visit, error)


@blueprint.post("/team/withdraw")
def withdraw(site_id: str) -> flask.Response:
    """Withdraw a pending invitation of a moderator of the site."""
    visit, sent = _enter(site_id), forms.read(people_forms.WithdrawalForm)
    if sent.id not in {made.id for made in _list_invitations(visit)}:
        raise errors.BadLink
    invitations.withdraw(sent.id)
    return _redirect(visit, "withdrawn")


@blueprint.post("/team/role")
def change_role(site_id: str) -> flask.Response:
    """Make a moderator an owner of the site, or take their role."""
    visit, sent = _enter(site_id), forms.read(people_forms.ModeratorForm)
    role = None if sent.role == "none" else roles.Role(sent.role)
    try:
        account_pages.check_password(visit.account, sent.current)
        cause = signed_in.cause(visit.account.id)
        accounts.change_moderator(sent.id, role, visit.site.id, cause)
    except _REFUSED as error:
        return _page(visit, error)
    return _redirect(visit, "saved")


def _enter(site_id: str) -> site_visit.Visit:
    return site_visit.enter(site_id, roles.Role.OWNER)


def _list_invitations(visit: site_visit.Visit) -> list[invitations.PendingInvitation]:
    grants = (roles.Grant(roles.Role.MODERATOR, visit.site.id),)
    pending = invitations.list_pending(secret=context.settings().secret, now=datetime.now(UTC))
    return [made for made in pending if made.grants == grants]


def _page(visit: site_visit.Visit, error: errors.FlatthreadError | None = None) -> flask.Response:
    status = 200 if error is None else signed_in.refuse_form(error)
    site, people = visit.site.id, accounts.staff()
    made = site_visit.page(
        "team.html",
        visit,
        owners=[
            person for person in people if roles.Grant(roles.Role.OWNER, site) in person.grants
        ],
        moderators=[person for person in people if roles.is_moderator_of(person.grants, site)],
        invitations=_list_invitations(visit),
    )
    made.status_code = status
    return made


def _redirect(visit: site_visit.Visit, said: str) -> flask.Response:
    return signed_in.redirect_to(f"admin/sites/{visit.site.id}/team#team-{said}")
