"""Check a service as a whole, and say what to do: `doctor`."""

import os
import pwd
from collections.abc import Iterator

import click
import flask

from comments import config, errors
from comments.cli import console
from comments.store import message_loading
from comments.upkeep import service_checks


@click.command("doctor")
@flask.cli.with_appcontext
def doctor() -> None:
    """Check the service: settings, store, disk, mail, clock, address and more.

    Each line says ok, warning or wrong, and what to do. The exit status is 1 if anything is wrong.
    """
    message_loading.load()
    is_wrong = False
    for level, subject, text in _findings():
        click.echo(f"{level:<8} {subject:<11} {console.printable(text)}")
        is_wrong = is_wrong or level is service_checks.Level.WRONG
    if is_wrong:
        raise click.exceptions.Exit(1)


def _findings() -> "Iterator[service_checks.ServiceFinding]":
    try:
        settings = config.load(creates=False, makes_secret=False)
    except errors.Misconfigured as error:
        subject = "store" if isinstance(error, errors.NoStore) else "settings"
        yield service_checks.wrong(subject, error.message)
        return
    if settings.datastore == "embedded":
        owner = settings.data_dir.stat().st_uid
        if owner != os.geteuid():
            # Opening the store as another user may leave files that the service cannot open.
            yield service_checks.wrong(
                "disk",
                f"{settings.data_dir.absolute()} belongs to {_user(owner)}. Run commands as this "
                f"user, as in: sudo -u {_user(owner)} flatthread doctor",
            )
            return
    yield from service_checks.machine_findings(settings)
    try:
        if settings.datastore == "embedded":
            change = console.data_files().upgrade_of(settings.data_file)
            if change:  # Only a start of the service or `upgrade` may make this change
                text = f"Data file: {change}. Run: flatthread upgrade --check"
                yield service_checks.warning("store", text)
                return
        settings, store = console.open_store(creates=False)
        with store.context():
            yield from service_checks.store_findings(settings, console.now())
    except errors.FlatthreadError as error:
        yield service_checks.wrong("store", error.message)


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"#{number}"
