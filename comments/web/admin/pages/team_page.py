"""The moderators of a site, for the owners of the site.

Owners of a site invite moderators, make them owners of the site, and take their role. They see and
change nothing else: neither roles on other sites, nor how people sign in, nor people with a role on
the service. Owners of the site are listed, but only owners of the service change them
(`people_page`). Every change except the withdrawal of an invitation requires the owner's own
password.
"""

import flask

from comments import errors
from comments.accounts import accounts
from comments.accounts.links import invitations
from comments.accounts.passwords import password_login
from comments.domain.moderation import roles
from comments.web.admin import site_visit
from comments.web.admin.form_types import people_forms
from comments.web.admin.pages import people_page
from comments.web.http import context
from comments.web.sign_in import account_pages, signed_in

blueprint = site_visit.owner_blueprint("team")


@blueprint.page("/team")
def show(visit: site_visit.Visit, _query: object) -> flask.Response:
    """List the owners and moderators of the site, and the pending invitations of moderators."""
    site, people = visit.site.id, accounts.staff()
    return site_visit.page(
        "team.html",
        visit,
        owners=[
            person for person in people if roles.Grant(roles.Role.OWNER, site) in person.grants
        ],
        moderators=[person for person in people if roles.is_moderator_of(person.grants, site)],
        invitations=_list_invitations(visit),
    )


@blueprint.form("/team/invite", people_forms.ModeratorInvitationForm)
def invite(visit: site_visit.Visit, sent: people_forms.ModeratorInvitationForm) -> flask.Response:
    """Create an invitation for a moderator of the site."""
    account_pages.check_password(visit.account, sent.current)
    grant = roles.Grant(roles.Role.MODERATOR, visit.site.id)
    return people_page.create_invitation(grant, sent.email, f"sites/{visit.site.id}/team")


@blueprint.form("/team/withdraw", people_forms.WithdrawalForm)
def withdraw(visit: site_visit.Visit, sent: people_forms.WithdrawalForm) -> flask.Response:
    """Withdraw a pending invitation of a moderator of the site."""
    if sent.id not in {made.id for made in _list_invitations(visit)}:
        raise errors.BadLink
    invitations.withdraw(sent.id)
    return _redirect(visit, "withdrawn")


@blueprint.form("/team/role", people_forms.ModeratorForm)
def change_role(visit: site_visit.Visit, sent: people_forms.ModeratorForm) -> flask.Response:
    """Make a moderator an owner of the site, or take their role."""
    role = None if sent.role == "none" else roles.Role(sent.role)
    account_pages.check_password(visit.account, sent.current)
    accounts.change_moderator(sent.id, role, visit.site.id, signed_in.cause(visit.account.id))
    return _redirect(visit, "saved")


def _list_invitations(visit: site_visit.Visit) -> list[invitations.PendingInvitation]:
    grants = (roles.Grant(roles.Role.MODERATOR, visit.site.id),)
    pending = invitations.list_pending(secret=context.settings().secret, now=visit.now)
    return [made for made in pending if made.grants == grants]


def _redirect(visit: site_visit.Visit, said: str) -> flask.Response:
    return signed_in.redirect_to(f"admin/sites/{visit.site.id}/team#team-{said}")


blueprint.show_again(show, errors.NotFound, password_login.Wrong)
