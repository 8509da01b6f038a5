"""The commands about OpenID Connect providers: `provider add|list|offer|withdraw|check|remove`.

Owns what an operator types and reads of them. A client's secret is typed and never an argument,
because arguments stand in lists of processes and in histories; no command shows it.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
from flask.cli import AppGroup

from comments.cli import console
from comments.sites import site_settings

if TYPE_CHECKING:
    from comments.accounts.oidc import oidc_client, providers

provider = AppGroup("provider", help="OpenID Connect providers by which people may sign in.")
_name = click.argument("name", metavar="NAME")
_site = click.option("--site", "sites", multiple=True, help="Readers of this site.")
_desk = click.option("--desk", "at_desk", is_flag=True, help="Owners and moderators.")


@provider.command("add")
@_name
@click.option("--issuer", required=True, help="As the provider calls itself.")
@click.option("--client", required=True, help="The id it knows this service by.")
@click.option("--title", help="What people read on buttons; else NAME.")
@_site
@_desk
@console.reported
def _add(
    name: str,
    issuer: str,
    client: str,
    title: str | None,
    sites: tuple[str, ...],
    *,
    at_desk: bool,
) -> None:
    """Know one more provider; the client's secret is asked for. It has to answer."""
    from comments.accounts.oidc import login_flow, providers

    settings = console.settings()
    for each in sites:
        site_settings.get(each)  # before anything is asked for or stored
    given = click.prompt("The client's secret", hide_input=True)
    registration = providers.Registration(name, title or name, issuer, client, given)
    made = providers.checked(registration, settings.secret, now=datetime.now(UTC))
    _peer(made).check()
    providers.add(made)
    _offered(providers.offer(name, sites, at_desk=at_desk))
    click.echo(f"It sends people back to {settings.public_url}/{login_flow.RETURN}")


@provider.command("list")
@console.reported
def _list() -> None:
    """Show every provider, one a line: name, issuer, client, who may use it."""
    from comments.accounts.oidc import providers

    for each in providers.every():
        click.echo(f"{each.name}\t{each.issuer}\t{each.client}\t{_users(each)}")


@provider.command("offer")
@_name
@_site
@_desk
@console.reported
def _offer(name: str, sites: tuple[str, ...], *, at_desk: bool) -> None:
    """Let people sign in by a provider."""
    from comments.accounts.oidc import providers

    _offered(providers.offer(name, sites, at_desk=at_desk))


@provider.command("withdraw")
@_name
@_site
@_desk
@console.reported
def _withdraw(name: str, sites: tuple[str, ...], *, at_desk: bool) -> None:
    """Let them sign in by it no more. Who is signed in stays so until that ends."""
    from comments.accounts.oidc import providers

    _offered(providers.withdraw(name, sites, at_desk=at_desk))


@provider.command("check")
@_name
@console.reported
def _check(name: str) -> None:
    """Ask a provider for what it says of itself; exit 1 if that is no good."""
    from comments.accounts.oidc import providers

    _peer(providers.chosen(name, providers.every())).check()
    click.echo(f"{name} answers.")


@provider.command("remove")
@_name
@console.reported
def _remove(name: str) -> None:
    """Forget a provider and the client's secret. Accounts that it led to stay."""
    from comments.accounts.oidc import providers

    providers.remove(name)
    click.echo(f"Removed provider {name}.")


def _peer(found: "providers.Provider") -> "oidc_client.OidcClient":
    from comments.accounts.oidc import login_flow
    from comments.events import message_sender

    return login_flow.client(found, console.settings(), message_sender.OUTBOUND.get())


def _offered(found: "providers.Provider") -> None:
    click.echo(f"{found.name} is for {_users(found)}.")


def _users(found: "providers.Provider") -> str:
    desk = ["owners and moderators"] if found.at_desk else []
    return ", ".join([*(f"readers of {site}" for site in found.sites), *desk]) or "nobody"
