"""Encrypt stored data again after a change of `SECRET`: `secret renew`."""

import click

from comments.cli import console
from comments.domain import records
from comments.domain.crypto import secret_rotation
from comments.domain.text.shown_values import quantity
from comments.moderation.classifiers import registration
from comments.upkeep.migrations import reencryption

secret = console.Group("secret")


@secret.command("renew")
def _renew() -> None:
    """Encrypt under SECRET all stored values that are still encrypted under SECRET_OLD.

    If the command is interrupted, run it again.
    """
    settings = console.settings()
    if len(secret_rotation.accepted_secrets(settings.secret)) == 1:
        raise click.ClickException("Set SECRET_OLD to the previous secret.")
    actor = records.Actor("cli", "command line")
    by = registration.By(actor, console.now(), settings, "the secret was changed")
    done = reencryption.renew(by)
    click.echo(f"Encrypted {quantity(done.rows, 'row')} under SECRET.")
    if done.subscribers:
        click.echo(
            f"{quantity(done.subscribers, 'subscriber')} can still be found only with "
            "SECRET_OLD. Keep it, or addresses may be stored twice."
        )
