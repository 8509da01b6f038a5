"""Manage the keys with which a site signs its readers' tokens: `site-key add|list|remove`.

A secret is shown once, by the command that creates it.
"""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from comments.accounts import site_keys
from comments.cli import console

if TYPE_CHECKING:
    from comments.events import audit_log

site_key = console.Group("site-key")


@site_key.command("add", console.SITE)
@click.option(
    "--public",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="PEM file of a public Ed25519 key. Default: generate a secret (HS256).",
)
def _add(site_id: str, public: Path | None) -> None:
    """Add a key. A generated secret is shown once."""
    now = console.now()
    if public is not None:
        made = site_keys.make_public(public.read_text(encoding="utf-8", errors="replace"), now=now)
        site_keys.add(site_id, made, noted=_audit_entry(now))
        click.echo(f"Added key {made.id} to {site_id} (EdDSA).")
        return
    made, secret = site_keys.make_shared(console.settings().secret, now=now)
    site_keys.add(site_id, made, noted=_audit_entry(now))
    click.echo(f"Added key {made.id} to {site_id} (HS256).")
    click.echo(f"Secret (shown only once): {secret}")


@site_key.command("list", console.SITE)
def _list(site_id: str) -> None:
    """List a site's keys, one per line: id, algorithm, date created."""
    for key in site_keys.every(console.site(site_id).id):
        click.echo(f"{key.id}\t{key.algorithm}\t{key.created:%Y-%m-%d}")


@site_key.command("remove", console.SITE)
@click.argument("name", metavar="KEY")
def _remove(site_id: str, name: str) -> None:
    """Revoke a key."""
    site_keys.remove(console.site(site_id).id, name, noted=_audit_entry(console.now()))
    click.echo(f"Removed key {name} of {site_id}.")


def _audit_entry(now: datetime) -> "audit_log.Noted":
    from comments.cli.commands import bulk_commands
    from comments.events import audit_log

    return audit_log.Noted(audit_log.Act(bulk_commands.ACTOR, "set-key"), now)
