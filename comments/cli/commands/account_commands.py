"""Manage accounts of owners and moderators: `account invite|add|list|role|...`.

An operator who can run commands can change anything in the store, so the commands check no
permissions. The commands create the first owner and restore access for people who have lost it. The
command that creates a link shows the link only once. A password is typed at a prompt and never
passed as an argument, because arguments are visible in process lists and shell histories.
"""

import click

from comments.accounts import accounts, identities, security_log
from comments.accounts.links import address_links, first_owner, invitations
from comments.accounts.passwords import credentials
from comments.cli import console
from comments.domain.moderation import roles
from comments.sites import mail_server
from comments.store.folder import server_address

_HERE = "http://127.0.0.1:8080/"  # The default address of `flatthread serve`.
_ROLES = click.Choice([role.value for role in roles.GRANTED])

account = console.Group("account")
_NAME = click.argument("login", metavar="NAME")


def _base_address(url: str) -> str:
    """Return the address with which links begin.

    Call this before creating a token, because the token's link is shown only once.

    Raises:
        click.ClickException: the public address is unknown.
    """
    settings = console.settings()
    if url or settings.public_url:
        return url or settings.public_url
    if settings.datastore != "embedded":
        raise click.ClickException("Set PUBLIC_URL, or give this service's address with --url.")
    noted = server_address.find(settings.data_dir)
    if not noted:
        click.echo(
            f"No server is running on this store. The link uses the default address {_HERE}. "
            "Set PUBLIC_URL or use --url if your service has a different address.",
            err=True,
        )
    return noted or _HERE


def _grant(role: str, site: str, *, service: bool) -> roles.Grant:
    """Return a role on one site or on the whole service.

    Raises:
        click.ClickException: neither a site nor the service is given, or both are.
    """
    if bool(site) == service:
        raise click.ClickException("Use either --site or --service (all sites).")
    return roles.Grant(roles.Role(role), roles.SERVICE if service else console.site(site).id)


@account.command("invite")
@click.option("--owner", "role", flag_value="owner", help="Invite an owner.")
@click.option("--moderator", "role", flag_value="moderator", help="Invite a moderator.")
@click.option("--site", default="", help="The role's site.")
@click.option("--service", is_flag=True, help="All sites. The default for owners.")
@click.option("--mail", default="", help="The only address that can accept the invitation.")
@click.option(
    "--url",
    default="",
    help="Address of this service. Default: PUBLIC_URL, or the running server.",
)
def _invite(role: str | None, site: str, mail: str, url: str, *, service: bool) -> None:
    """Create an invitation link. The link works once and expires after a week."""
    if role is None:
        raise click.ClickException("Use --owner or --moderator.")
    base = _base_address(url)
    is_service = service or (role == roles.Role.OWNER and not site)
    invitation = invitations.Invitation((_grant(role, site, service=is_service),), mail)
    token = invitations.invite(invitation, secret=console.settings().secret, now=console.now())
    click.echo(invitations.link(base, "admin/welcome", token))


@account.command("invitations")
def _invitations() -> None:
    """List pending invitations, one per line: id, expiry, roles, and the address, shortened."""
    now = console.now()
    for made in invitations.list_pending(secret=console.settings().secret, now=now):
        held = ", ".join(map(_grant_text, made.grants))
        click.echo(f"{made.id}\t{made.expires:%Y-%m-%dT%H:%M:%SZ}\t{held}\t{made.address or '-'}")


@account.command("withdraw")
@click.argument("invitation", metavar="ID")
def _withdraw(invitation: str) -> None:
    """Withdraw a pending invitation, whose ID is listed by `account invitations`."""
    invitations.withdraw(invitation)
    click.echo("Withdrew the invitation.")


@account.command("add", _NAME)
@click.option("--name", "shown", help="Display name. Default: NAME.")
@click.option("--role", type=_ROLES, required=True)
@click.option("--site", default="", help="The role's site.")
@click.option("--service", is_flag=True, help="All sites.")
def _add(login: str, shown: str | None, role: str, site: str, *, service: bool) -> None:
    """Create an account that signs in as NAME. Prompts for the password."""
    secret, grant = console.settings().secret, _grant(role, site, service=service)
    known = [identities.of_login(login)]
    if grant == invitations.OWNER and not accounts.is_owned():
        known.append(identities.FIRST_OWNER)
    password = click.prompt("Password", hide_input=True, confirmation_prompt=True)
    newcomer = accounts.NewAccount(
        id=accounts.new_id(),
        name=accounts.clean_name(shown or login),
        identities=tuple(known),
        login=known[0].subject,
        password=credentials.check_and_hash(password, known[0].subject),
        grants=(grant,),
    )
    accounts.add(newcomer, secret=secret, now=console.now())
    first_owner.remove(console.settings())
    click.echo(f"Added {newcomer.login}, {_grant_text(grant)}.")


@account.command("list")
def _list() -> None:
    """List accounts with a role, one per line: id, sign-in name, display name, roles."""
    for person in accounts.staff():
        held = ", ".join(map(_grant_text, person.grants))
        click.echo(f"{person.id}\t{person.login or '-'}\t{person.name}\t{held}")


@account.command("role", _NAME)
@click.argument("role", type=click.Choice([*(role.value for role in roles.GRANTED), "none"]))
@click.option("--site", default="", help="The role's site.")
@click.option("--service", is_flag=True, help="All sites.")
def _role(login: str, role: str, site: str, *, service: bool) -> None:
    """Change or remove an account's role on a site or the service.

    Ends the account's sessions. NAME is a sign-in name, a mail address or an account id.
    """
    person = _named_account(login)
    if role == "none":
        grant = _grant(roles.Role.OWNER, site, service=service)
        changed = accounts.grant(person.id, None, grant.site, _cause())
    else:
        grant = _grant(role, site, service=service)
        changed = accounts.grant(person.id, grant.role, grant.site, _cause())
    held = ", ".join(map(_grant_text, changed.grants)) or "none"
    click.echo(f"Roles of {login}: {held}.")


@account.command("address", _NAME)
@click.argument("address")
def _address(login: str, address: str) -> None:
    """Set an account's mail address, or remove it with "none", and end the account's sessions.

    The address counts as confirmed. The old address gets a notice. NAME is a sign-in name, a mail
    address or an account id.
    """
    person = _named_account(login)
    address_links.set_address(person.id, "" if address == "none" else address, _cause())
    click.echo(f"Changed the mail address of {login}.")


@account.command("reset", _NAME)
@click.option(
    "--url",
    default="",
    help="Address of this service. Default: PUBLIC_URL, or the running server.",
)
@click.option(
    "--remove-second-factor",
    "removes",
    is_flag=True,
    help="The link also removes the authenticator and passkeys, for people who have lost them.",
)
def _reset(login: str, url: str, *, removes: bool) -> None:
    """Create a password reset link. The link works once and expires after a day.

    Using the link ends all sessions of the account. If the account has an authenticator, the linked
    page asks for its code. Only the latest link is valid.
    """
    person, base = _named_account(login), _base_address(url)
    if not person.grants:
        raise click.ClickException(f"{login} has no role and therefore no password.")
    token = invitations.issue_reset(
        person,
        _cause(),
        removes_second_factor=removes,
    )
    click.echo(invitations.link(base, "admin/reset", token))


@account.command("sign-out", _NAME)
def _sign_out(login: str) -> None:
    """End all sessions of an account. NAME is a sign-in name, a mail address or an account id."""
    accounts.end_sessions(_named_account(login).id, _cause())
    click.echo(f"Ended all sessions of {login}.")


@account.command("remove", _NAME)
def _remove(login: str) -> None:
    """Delete an account and end its sessions. The account's comments stay.

    The last owner of the service cannot be removed.
    """
    accounts.dismiss(_named_account(login).id)
    click.echo(f"Removed account {login}.")


@account.command("log", _NAME)
def _log(login: str) -> None:
    """Show an account's security log, newest first, one entry per line.

    Each line contains the time, the event, who acted (- for the account's owner), and a letter for
    the network (- if unknown). Equal letters mean the same network.
    """
    entries = security_log.list_entries(_named_account(login).id, now=console.now())
    for entry, letter in security_log.with_network_names(entries):
        at = f"{entry.time:%Y-%m-%dT%H:%M:%SZ}"
        click.echo(f"{at}\t{entry.event}\t{entry.by or '-'}\t{letter or '-'}")


def _cause() -> "security_log.Cause":
    settings = console.settings()
    return security_log.Cause(
        security_log.OPERATOR,
        "",
        settings.secret,
        console.now(),
        sends_mail=mail_server.sends_mail(settings),
    )


def _named_account(login: str) -> "accounts.Account":

    return accounts.by_text(login, console.settings().secret)


def _grant_text(grant: roles.Grant) -> str:
    of = "the service" if grant.site == roles.SERVICE else grant.site
    return f"{grant.role} of {of}"
