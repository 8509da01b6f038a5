"""The commands about people who sign in: `account invite|add|list|role|reset|remove`.

Owns what an operator types and reads of accounts. Whoever may run commands may do anything to the
store, so commands ask nobody; they are how the first owner comes, and how one who lost everything
comes back. A link is shown once, by the command that made it; a password is typed and never an
argument, because arguments stand in lists of processes and in histories.
"""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click
from flask.cli import AppGroup

from comments.accounts import first_owner
from comments.cli import console
from comments.domain import roles
from comments.sites import site_settings
from comments.store import server_address

if TYPE_CHECKING:
    from comments.accounts import accounts

_FIRST = timedelta(days=1)  # how long the first owner's link is good; each start shows a new one
_HERE = "http://127.0.0.1:8080/"  # scripts/serve's default
_ROLES = click.Choice([role.value for role in roles.GRANTED])

account = AppGroup("account", help="Who signs in: owners and moderators.")


def link(base: str, page: str, token: str) -> str:
    """What leads to a page with a ticket. What follows a "#" is sent to nobody."""
    return f"{base.rstrip('/')}/{page}#{token}"


def first_owner_link(url: str, secret: str) -> str:
    """A one-time link that makes the first owner of the service at `url`; "" if it had one."""
    from comments.accounts import accounts, invitations

    if accounts.is_owned():
        return ""
    invitation = invitations.Invitation((invitations.OWNER,), first=True)
    token = invitations.invite(invitation, secret=secret, now=datetime.now(UTC), term=_FIRST)
    return link(url, "admin/welcome", token)


def _base(url: str) -> str:
    """The address that links begin with. Asked before a ticket is made: the link is shown once.

    Raises:
        click.ClickException: nobody knows where people reach this service.
    """
    settings = console.settings()
    if url or settings.public_url:
        return url or settings.public_url
    if settings.datastore != "embedded":
        raise click.ClickException("set PUBLIC_URL or give --url: where people reach this service")
    noted = server_address.find(settings.data_dir)
    if not noted:
        click.echo(
            f"No server answers on this store now; the link assumes that one will at {_HERE}. "
            "Set PUBLIC_URL or give --url if people reach it elsewhere.",
            err=True,
        )
    return noted or _HERE


def _where(role: str, site: str, *, service: bool) -> roles.Grant:
    """What a role is of: one site, or the service.

    Raises:
        click.ClickException: not exactly one of them is named.
    """
    if bool(site) == service:
        raise click.ClickException("give --site, or --service for every site")
    return roles.Grant(roles.Role(role), roles.SERVICE if service else site_settings.get(site).id)


@account.command("invite")
@click.option("--owner", "role", flag_value="owner", help="Invite an owner.")
@click.option("--moderator", "role", flag_value="moderator", help="Invite a moderator.")
@click.option("--site", default="", help="Of this site.")
@click.option("--service", is_flag=True, help="Of the service: every site. An owner's default.")
@click.option("--mail", default="", help="The only address that may accept it.")
@click.option(
    "--url",
    default="",
    help="Where people reach this service; else PUBLIC_URL, else the running server.",
)
@console.reported
def _invite(role: str | None, site: str, mail: str, url: str, *, service: bool) -> None:
    """Show a link with which somebody comes to a role, once, within a week."""
    from comments.accounts import invitations

    if role is None:
        raise click.ClickException("give --owner or --moderator")
    base = _base(url)
    is_service = service or (role == roles.Role.OWNER and not site)
    invitation = invitations.Invitation((_where(role, site, service=is_service),), mail)
    token = invitations.invite(invitation, secret=console.settings().secret, now=datetime.now(UTC))
    click.echo(link(base, "admin/welcome", token))


@account.command("add")
@click.argument("login", metavar="NAME")
@click.option("--name", "shown", help="What others see; else NAME.")
@click.option("--role", type=_ROLES, required=True)
@click.option("--site", default="", help="Of this site.")
@click.option("--service", is_flag=True, help="Of the service: every site.")
@console.reported
def _add(login: str, shown: str | None, role: str, site: str, *, service: bool) -> None:
    """Make an account that signs in with NAME and a password, which is asked for."""
    from comments.accounts import accounts, identities, invitations
    from comments.accounts.passwords import credentials

    secret, grant = console.settings().secret, _where(role, site, service=service)
    known = [identities.of_login(login)]
    if grant == invitations.OWNER and not accounts.is_owned():
        known.append(identities.FIRST_OWNER)
    password = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    newcomer = accounts.NewAccount(
        id=accounts.new_id(),
        name=accounts.checked_name(shown or login),
        identities=tuple(known),
        login=known[0].subject,
        password=credentials.checked_password(password, known[0].subject),
        grants=(grant,),
    )
    accounts.add(newcomer, secret=secret, now=datetime.now(UTC))
    first_owner.remove(console.settings())
    click.echo(f"Added {newcomer.login}, {_text(grant)}.")


@account.command("list")
@console.reported
def _list() -> None:
    """Show who has a role, one a line: id, name to sign in with, name that is shown, roles."""
    from comments.accounts import accounts

    for each in accounts.staff():
        held = ", ".join(map(_text, each.grants))
        click.echo(f"{each.id}\t{each.login or '-'}\t{each.name}\t{held}")


@account.command("role")
@click.argument("login", metavar="NAME")
@click.argument("role", type=click.Choice([*(role.value for role in roles.GRANTED), "none"]))
@click.option("--site", default="", help="On this site.")
@click.option("--service", is_flag=True, help="On the service: every site.")
@console.reported
def _role(login: str, role: str, site: str, *, service: bool) -> None:
    """Give somebody a role instead of the one there, or none; he signs in anew.

    NAME is a name to sign in with, a mail address, or an id.
    """
    from comments.accounts import accounts

    found = _named(login)
    if role == "none":
        grant = _where(roles.Role.OWNER, site, service=service)
        changed = accounts.grant(found.id, None, grant.site)
    else:
        grant = _where(role, site, service=service)
        changed = accounts.grant(found.id, grant.role, grant.site)
    held = ", ".join(map(_text, changed.grants)) or "nothing"
    click.echo(f"{login} is {held}.")


@account.command("reset")
@click.argument("login", metavar="NAME")
@click.option(
    "--url",
    default="",
    help="Where people reach this service; else PUBLIC_URL, else the running server.",
)
@click.option(
    "--remove-second-factor",
    "removes",
    is_flag=True,
    help="Let the link remove the authenticator, too: for somebody who lost both.",
)
@console.reported
def _reset(login: str, url: str, *, removes: bool) -> None:
    """Show a link with which somebody chooses a new password, once, within a day.

    Using it ends all their sessions. Their authenticator stays, and its code is asked for. Only the
    latest link works.
    """
    from comments.accounts import invitations

    found, base = _named(login), _base(url)
    if not found.grants:
        raise click.ClickException(f"{login} has no role, and no password to lose")
    token = invitations.reset(
        found,
        secret=console.settings().secret,
        now=datetime.now(UTC),
        removes_second_factor=removes,
    )
    click.echo(link(base, "admin/reset", token))


@account.command("remove")
@click.argument("login", metavar="NAME")
@console.reported
def _remove(login: str) -> None:
    """Erase an account and end its sessions. What it wrote stays, as nobody's."""
    from comments.accounts import accounts

    accounts.remove(_named(login).id)
    click.echo(f"{login} is removed.")


def _named(login: str) -> "accounts.Account":
    from comments.accounts import accounts

    return accounts.by_text(login, console.settings().secret)


def _text(grant: roles.Grant) -> str:
    of = "the service" if grant.site == roles.SERVICE else grant.site
    return f"{grant.role} of {of}"
