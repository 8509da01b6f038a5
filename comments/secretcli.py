"""The command about the service's secret: `secret renew`.

Owns what an operator types and reads after a change of `SECRET`.
"""

from datetime import UTC, datetime

import click
from flask.cli import AppGroup

from comments import console, records, rotation

secret = AppGroup("secret", help="The secret that everything is signed and sealed with.")


@secret.command("renew")
@console.reported
def _renew() -> None:
    """Seal what is stored under SECRET_OLD under SECRET. Run it again if it was interrupted."""
    from comments import advisers, renewal

    settings = console.settings()
    if len(rotation.accepted(settings.secret)) == 1:
        raise click.ClickException("set SECRET_OLD to the secret that was replaced")
    actor = records.Actor("cli", "command line")
    by = advisers.By(actor, datetime.now(UTC), settings, "the secret was changed")
    done = renewal.renew(by)
    click.echo(f"Sealed {done.rows} rows under SECRET.")
    if done.subscribers:
        click.echo(
            f"{done.subscribers} subscribers are still found by SECRET_OLD alone: keep it, or they "
            "may come to be stored twice."
        )
