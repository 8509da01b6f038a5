"""The command about the service's secret: `secret renew`.

Owns what an operator types and reads after a change of `SECRET`.
"""

from datetime import UTC, datetime

import click
from flask.cli import AppGroup

from comments.cli import console
from comments.domain import records
from comments.domain.crypto import secret_rotation

secret = AppGroup("secret", help="The secret that everything is signed and sealed with.")


@secret.command("renew")
@console.reported
def _renew() -> None:
    """Seal what is stored under SECRET_OLD under SECRET. Run it again if it was interrupted."""
    from comments.jobs import reencryption
    from comments.moderation.classifiers import registration

    settings = console.settings()
    if len(secret_rotation.accepted(settings.secret)) == 1:
        raise click.ClickException("set SECRET_OLD to the secret that was replaced")
    actor = records.Actor("cli", "command line")
    by = registration.By(actor, datetime.now(UTC), settings, "the secret was changed")
    done = reencryption.renew(by)
    click.echo(f"Sealed {done.rows} rows under SECRET.")
    if done.subscribers:
        click.echo(
            f"{done.subscribers} subscribers are still found by SECRET_OLD alone: keep it, or they "
            "may come to be stored twice."
        )
