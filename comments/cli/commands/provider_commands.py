"""Manage OpenID Connect providers: `provider add|list|offer|withdraw|check|remove`.

A client secret is typed at a prompt and never passed as an argument, because arguments are visible
in process lists and shell histories. No command shows a client secret.
"""

import click

from comments.accounts.oidc import login_flow, oidc_client, providers
from comments.cli import console
from comments.events import audit_log, message_sender

provider = console.Group("provider")
_name = click.argument("name", metavar="NAME")
_site = click.option("--site", "sites", multiple=True, help="For readers of this site.")
_at_console = click.option("--desk", "at_desk", is_flag=True, help="For owners and moderators.")


@provider.command("add", _name)
@click.option("--issuer", required=True, help="The provider's issuer address.")
@click.option("--client", required=True, help="This service's client id at the provider.")
@click.option("--title", help="Name on sign-in buttons. Default: NAME.")
@_site
@_at_console
def _add(
    name: str,
    issuer: str,
    client: str,
    title: str | None,
    sites: tuple[str, ...],
    *,
    at_desk: bool,
) -> None:
    """Add a provider.

    The command prompts for the client secret and checks that the provider answers.
    """
    settings = console.settings()
    for site in sites:
        console.site(site)  # Raises an error before anything is prompted for or stored.
    given = click.prompt("Client secret", hide_input=True)
    registration = providers.Registration(name, title or name, issuer, client, given)
    made = providers.make(registration, settings.secret, now=console.now())
    _client_of(made).check()
    providers.add(made, noted=_audit_entry())
    _report_offer(providers.offer(name, sites, at_desk=at_desk, noted=_audit_entry()))
    click.echo(f"Redirect URI to register: {settings.public_url}/{login_flow.RETURN}")


@provider.command("list")
def _list() -> None:
    """List the providers, one per line: name, issuer, client id, who can use it."""
    for entry in providers.every():
        click.echo(f"{entry.name}\t{entry.issuer}\t{entry.client}\t{_users(entry)}")


@provider.command("offer", _name, _site, _at_console)
def _offer(name: str, sites: tuple[str, ...], *, at_desk: bool) -> None:
    """Let people sign in with a provider."""
    _report_offer(providers.offer(name, sites, at_desk=at_desk, noted=_audit_entry()))


@provider.command("withdraw", _name, _site, _at_console)
def _withdraw(name: str, sites: tuple[str, ...], *, at_desk: bool) -> None:
    """Stop people from signing in with a provider. Existing sessions continue until they expire."""
    _report_offer(providers.withdraw(name, sites, at_desk=at_desk, noted=_audit_entry()))


@provider.command("check", _name)
def _check(name: str) -> None:
    """Check a provider's configuration document; exit with 1 if it is not valid."""
    _client_of(providers.by_name(name, providers.every())).check()
    click.echo(f"{name} answers.")


@provider.command("remove", _name)
def _remove(name: str) -> None:
    """Remove a provider and its client secret. Accounts linked to the provider are kept."""
    providers.remove(name, noted=_audit_entry())
    click.echo(f"Removed provider {name}.")


def _audit_entry() -> "audit_log.Noted":
    from comments.cli.commands import bulk_commands

    return audit_log.Noted(audit_log.Act(bulk_commands.ACTOR, "set-provider"), console.now())


def _client_of(found: "providers.Provider") -> "oidc_client.OidcClient":

    return login_flow.client(found, console.settings(), message_sender.OUTBOUND.get())


def _report_offer(found: "providers.Provider") -> None:
    click.echo(f"{found.name} is available to {_users(found)}.")


def _users(found: "providers.Provider") -> str:
    console_users = ["owners and moderators"] if found.at_desk else []
    return ", ".join([*(f"readers of {site}" for site in found.sites), *console_users]) or "nobody"
