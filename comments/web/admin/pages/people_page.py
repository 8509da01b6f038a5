"""The owners and moderators of the service, for owners of the service: invitations and accounts.

The pages do the same as the command `account`. An owner confirms every change, except the
withdrawal of an invitation, with their own password: an abandoned session must not be enough to
make somebody an owner. A link is shown once, in the response to the form that created it.
"""

from collections.abc import Callable, Iterable

import flask

from comments import errors
from comments.accounts import accounts, passkeys, security_log
from comments.accounts.links import invitations
from comments.accounts.passwords import password_login
from comments.domain.moderation import roles
from comments.sites import mail_server, site_settings
from comments.web.admin import site_visit
from comments.web.admin.form_types import form_fields, people_forms
from comments.web.http import context
from comments.web.rendering import labels
from comments.web.sign_in import account_pages, security_entries, signed_in

blueprint = site_visit.service_blueprint("people", "people")

_REFUSED = (errors.BadInput, errors.Conflict, errors.NotFound, password_login.Wrong)


@blueprint.page("")
def show(_owner: object, _query: object) -> flask.Response:
    """List the accounts with a role, and the pending invitations."""
    return _list_page()


@blueprint.form("/invite", people_forms.InvitationForm)
def invite(owner: accounts.Account, sent: people_forms.InvitationForm) -> flask.Response:
    """Create an invitation, show its link, and mail the link if it is bound to an address."""
    try:
        account_pages.check_password(owner, sent.current)
        site = _known_site(form_fields.require("site", sent.site or None))
        grant = roles.Grant(roles.Role(sent.role), site)
        return create_invitation(grant, sent.email)
    except _REFUSED as error:
        return _list_page(error)


def create_invitation(grant: roles.Grant, email: str, back: str = "people") -> flask.Response:
    """Create an invitation, mail it if it has an address, and return the page with its link.

    `back` is the page, below `/admin/`, to which that page links.

    Raises:
        errors.BadInput: the address is not one plain address.
    """
    invitation, now = invitations.Invitation((grant,), email.strip()), context.now()
    token = invitations.invite(invitation, secret=_secret(), now=now)
    is_mailed = bool(invitation.address) and mail_server.sends_mail(context.settings())
    if is_mailed:
        invitations.send(token, invitation.address, secret=_secret(), now=now)
    return _link_page("admin/welcome", token, "mailed" if is_mailed else "invited", back=back)


@blueprint.form("/withdraw", people_forms.WithdrawalForm)
def withdraw(_owner: object, sent: people_forms.WithdrawalForm) -> flask.Response:
    """Withdraw a pending invitation."""
    invitations.withdraw(sent.id)
    return signed_in.redirect_to("admin/people#withdrawn")


@blueprint.page("/account", people_forms.PersonQuery)
def show_person(_owner: object, query: people_forms.PersonQuery) -> flask.Response:
    """Show one account, with forms to change its role and its access."""
    return _person_page(_member(query.id))


@blueprint.form("/account", people_forms.PersonForm)
def change_person(owner: accounts.Account, sent: people_forms.PersonForm) -> flask.Response:
    """Change an account's role, end its sessions, create a reset link, or remove the account."""
    person = _member(sent.id)
    try:
        account_pages.check_password(owner, sent.current)
        return _ACTS[sent.act](person, sent)
    except _REFUSED as error:
        return _person_page(person, error)


def _change_role(person: accounts.Account, sent: people_forms.PersonForm) -> flask.Response:
    role = None if sent.role == "none" else roles.Role(sent.role)
    # A role on a site that no longer exists can be removed.
    held = {grant.site for grant in person.grants}
    site = sent.site if sent.site in held else _known_site(sent.site)
    changed = accounts.grant(person.id, role, site, _cause())
    return (
        _redirect_to(person, "saved") if changed.grants else signed_in.redirect_to("admin/people")
    )


def _end_sessions(person: accounts.Account, _sent: people_forms.PersonForm) -> flask.Response:
    accounts.end_sessions(person.id, _cause())
    return _redirect_to(person, "ended")


def _reset(person: accounts.Account, sent: people_forms.PersonForm) -> flask.Response:
    token = invitations.issue_reset(
        person,
        _cause(),
        removes_second_factor=sent.act == "reset-all",
    )
    return _link_page("admin/reset", token, sent.act, person.name)


def _remove(person: accounts.Account, _sent: people_forms.PersonForm) -> flask.Response:
    accounts.dismiss(person.id)
    return signed_in.redirect_to("admin/people#removed")


_ACTS: dict[str, Callable[[accounts.Account, people_forms.PersonForm], flask.Response]] = {
    "role": _change_role,
    "sign-out": _end_sessions,
    "reset": _reset,
    "reset-all": _reset,
    "remove": _remove,
}


def _member(account_id: str) -> accounts.Account:
    """Return the account with this id, which has a role.

    Raises:
        errors.NotFound: there is no such account, or it has no role.
    """
    person = accounts.get(account_id)
    if person is None or not person.grants:
        raise errors.NotFound("account", account_id)
    return person


def _known_site(site: str) -> str:
    """Return a site's id or `roles.SERVICE`.

    Raises:
        errors.NotFound: the site does not exist.
    """
    return site if site == roles.SERVICE else site_settings.get(site).id


def _list_page(error: errors.FlatthreadError | None = None) -> flask.Response:
    return signed_in.page(
        "admin/people.html",
        status=200 if error is None else signed_in.refuse_form(error),
        people=accounts.staff(),
        pending=invitations.list_pending(secret=_secret(), now=context.now()),
        sites=_site_choices(site_settings.names()),
        roles=[roles.Role.MODERATOR, roles.Role.OWNER],
        grant_text=_grant_text,
    )


def _person_page(
    person: accounts.Account, error: errors.FlatthreadError | None = None
) -> flask.Response:
    return signed_in.page(
        "admin/person.html",
        status=200 if error is None else signed_in.refuse_form(error),
        person=person,
        sites=_site_choices({*site_settings.names(), *(grant.site for grant in person.grants)}),
        roles=[roles.Role.MODERATOR, roles.Role.OWNER],
        grant_text=_grant_text,
        has_passkeys=bool(passkeys.list_passkeys(person.id)),
        log=security_entries.of(person.id),
    )


def _site_choices(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the sites and, at the end, the whole service, each with its text."""
    sites = [(name, name) for name in sorted(names) if name != roles.SERVICE]
    return [*sites, (roles.SERVICE, labels.text("admin.people-service"))]


def _link_page(
    path: str, token: str, kind: str, name: str = "", back: str = "people"
) -> flask.Response:
    link = invitations.link(context.service_url(), path, token)
    return signed_in.page("admin/person_link.html", link=link, kind=kind, name=name, back=back)


def _redirect_to(person: accounts.Account, said: str) -> flask.Response:
    return signed_in.redirect_to(f"admin/people/account?id={person.id}#{said}")


def _grant_text(grant: roles.Grant) -> str:
    role = labels.label("admin.role", grant.role)
    if grant.site == roles.SERVICE:
        return labels.text("admin.people-role-on-service", role=role)
    return labels.text("admin.people-role-on-site", role=role, site=grant.site)


def _cause() -> security_log.Cause:
    return signed_in.cause(signed_in.require_account().id)


def _secret() -> str:
    return context.settings().secret
