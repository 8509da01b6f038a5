"""Upgrade a store to this release: `upgrade`."""

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click
import flask

import flatthread
from comments.cli import console
from comments.domain.text.shown_values import quantity
from comments.upkeep import store_upgrade
from comments.upkeep.backups import working_files
from comments.upkeep.migrations import store_format, upgrades

if TYPE_CHECKING:
    from comments import config
    from comments.upkeep.backups import engine_files


@click.command("upgrade")
@click.option(
    "--check", is_flag=True, help="Only show what is pending; exit with 1 if anything is."
)
@click.option("--no-backup", is_flag=True, help="Make no backup of an embedded store.")
@flask.cli.with_appcontext
def upgrade(*, check: bool, no_backup: bool) -> None:
    """Upgrade the store to this release, after a backup.

    A service does the same when it starts, and upgrades rows while it runs. This command returns
    only when all rows are upgraded. If it is interrupted, run it again, or start the service. No
    service with an older release may run meanwhile.
    """
    with console.refusing():
        settings = console.read_settings(creates=False)
        files = console.data_files() if settings.datastore == "embedded" else None
        change = "" if files is None else files.upgrade_of(settings.data_file)
        if check:
            _show(settings, files, change)
            return
        if files is not None:
            files.check_is_unused(settings.data_file)
        _run_upgrade(files, change, backs_up=not no_backup)


def _show(
    settings: "config.Settings", files: "engine_files.EngineFiles | None", change: str
) -> None:
    with _enter_unchanged(settings, files, change):
        old_format, pending = store_format.read(), upgrades.pending_scans()
    stored = (
        "no format"
        if old_format is None
        else f"format {old_format.number}, of Flatthread {old_format.release}"
    )
    wanted = f"{store_format.FORMAT}, of Flatthread {flatthread.__version__}"
    click.echo(f"The store has {stored}. This release writes format {wanted}.")
    if change:
        click.echo(f"the data file: {change}")
    for scan in pending:
        state = "begun" if scan.has_begun else "not begun"
        click.echo(f"{scan.purpose}: {quantity(scan.rows, 'row')} left, {state}")
    if not (change or pending):
        click.echo("Nothing is pending.")
        return
    if files is None:
        click.echo(
            "Make a backup before you deploy: `gcloud firestore export gs://BUCKET` "
            "(docs/backups.md). The service then upgrades the rows while it runs."
        )
    else:
        click.echo("`flatthread serve` and `flatthread upgrade` make a backup first.")
    raise click.exceptions.Exit(1)


@contextlib.contextmanager
def _enter_unchanged(
    settings: "config.Settings", files: "engine_files.EngineFiles | None", change: str
) -> Iterator[None]:
    """Enter the store. If opening would change the store's file, enter a copy instead."""
    if files is None or not change:
        with console.enter_store():
            yield
        return
    click.echo(f"Using a copy of {settings.where}.", err=True)
    with working_files.working_file(settings.data_file, working_files.COPY) as copy:
        files.copy(settings.data_file, copy)
        with files.open_store(copy, settings) as store, store.context():
            yield


def _run_upgrade(files: "engine_files.EngineFiles | None", change: str, *, backs_up: bool) -> None:
    with console.enter_store(backs_up=backs_up):
        saves = backs_up and not change  # If `change` is set, opening the file made a backup
        store_upgrade.begin(console.settings(), files if saves else None, now=console.now())
        rows = upgrades.go_on(steps=None)
    click.echo(f"The store is up to date. Read {quantity(f'{rows:,}', 'row')}.")
