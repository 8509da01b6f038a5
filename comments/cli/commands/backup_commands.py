"""Back up and restore an embedded store: `backup` and `restore`."""

import logging
import os
from pathlib import Path

import click
import flask

from comments import config, errors
from comments.cli import console
from comments.domain.text.shown_values import quantity
from comments.upkeep.backups import nightly_backup, store_backup, store_restore

_NICE = 10  # Increase of a nightly backup's nice value; a higher value means a lower priority.
_log = logging.getLogger("flatthread")
_path = click.Path(path_type=Path)


@click.command("backup")
@click.argument("target", required=False, type=_path, metavar="[FOLDER|FILE]")
@click.option(
    "--nightly",
    is_flag=True,
    help="Make the nightly backup in BACKUP_DIR if it is due, and remove old ones.",
)
@flask.cli.with_appcontext
def backup(target: Path | None, *, nightly: bool) -> None:
    """Make a backup of the store while the service runs.

    Create the file FILE, whose name ends with .tar.gz, or a new file in FOLDER. Without an
    argument, create a new file in BACKUP_DIR. The file gets its name only after the backup has been
    checked.

    The secret is not in the backup. Keep a copy of the secret in another safe place.
    """
    if nightly and target is not None:
        raise click.UsageError("--nightly writes to BACKUP_DIR. Omit the folder or file.")
    with console.refusing():
        settings = console.settings_without_store(creates=False)
        if nightly:
            _nightly(settings)
            return
        _backup(target or settings.backup_dir, settings)


def _backup(target: Path | None, settings: "config.Settings") -> None:

    now = console.now()
    if target is None:
        raise click.UsageError("Name a folder or a file, or set BACKUP_DIR.")
    if target.is_dir():
        target /= store_backup.file_name(now)
    elif not target.name.endswith(store_backup.ENDING):
        # A misspelled folder or the name of a site would silently become a file.
        raise click.UsageError(
            f"There is no folder {target}. The name of a file must end with {store_backup.ENDING}."
        )
    click.echo(f"Using {settings.where}.", err=True)
    made = store_backup.make(settings, console.data_files(), target, now=now)
    click.echo(_backup_line(made))
    for name in made.doubtful:
        click.echo(f"The thread {name} has problems. Run `repair --fix` to repair it.")
    kept = settings.data_dir / "secret"
    place = kept if kept.exists() else "SECRET"
    click.echo(f"The secret is not in the backup. Keep a copy of {place} in another safe place.")


def _nightly(settings: "config.Settings") -> None:
    """Make the nightly backup, and write the result to the log of the service."""
    os.nice(_NICE)
    try:
        made = nightly_backup.make(settings, console.data_files(), now=console.now())
    except errors.BackupFailed as error:
        _log.error("The nightly backup failed: %s", error.message)
        raise
    if made is None:
        click.echo("No backup is due, or another process is making it.")
        return
    click.echo(_backup_line(made))
    _log.info("The nightly backup is complete. %s", _backup_line(made))
    if made.doubtful:
        _log.warning(
            "%d threads of the sample have problems, such as %s. Run `repair --fix`.",
            len(made.doubtful),
            made.doubtful[0],
        )


def _backup_line(made: "store_backup.Backup") -> str:
    return (
        f"Backed up {quantity(f'{made.entities:,}', 'row')} to {made.path} "
        f"({_size(made.size)}), and checked the file and "
        f"{quantity(made.threads, 'thread')}."
    )


def _size(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 100_000 else f"{size / 1e3:,.1f} kB"  # noqa: PLR2004


@click.command("restore")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--lost-secret",
    is_flag=True,
    help="Accept a backup whose secret is lost: encrypted addresses cannot be read.",
)
@flask.cli.with_appcontext
def restore(file: Path, *, lost_secret: bool) -> None:
    """Replace the store by a backup.

    Stop the service first. The command checks the whole backup before it changes anything, and
    keeps the replaced store under another name.
    """
    with console.refusing():
        settings = console.settings_without_store(creates=True)
        click.echo(f"Using {settings.where}.", err=True)
        if lost_secret and not settings.secret:
            settings = _with_new_secret()
        settings.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        restored = store_restore.restore(
            file,
            settings,
            console.data_files(),
            now=console.now(),
            accepts_other_secret=lost_secret,
        )
    for line in _restore_lines(restored):
        click.echo(line)


def _with_new_secret() -> "config.Settings":

    return config.load(is_restoring=True)


def _restore_lines(restored: "store_restore.Restored") -> list[str]:
    manifest, repeated = restored.manifest, restored.repeated
    rows = quantity(f"{sum(manifest.kinds.values()):,}", "row")
    lines = [f"Restored {rows} as of {manifest.created:%Y-%m-%d %H:%M:%S} UTC."]
    if restored.kept is not None:
        lines.append(
            f"The replaced store is now {restored.kept}. Remove it when you no longer need it."
        )
    if repeated is None:
        lines.append(
            "The replaced store is missing or cannot be read, so comments, accounts, subscriptions "
            "and sites that were deleted after the backup are back. Repeat the erasures that "
            "people have requested since."
        )
    else:
        lines.append(
            f"Deleted again, as in the replaced store: "
            f"{quantity(repeated.comments, 'comment')}, "
            f"{quantity(repeated.accounts, 'account')}, "
            f"{quantity(repeated.subscriptions, 'subscription')}, "
            f"{quantity(repeated.sites, 'site')}."
        )
    lines.append(
        "All sessions and one-time links have ended. Owners and moderators must sign in again."
    )
    if restored.held:
        lines.append(
            f"Turned {quantity(restored.held, 'pending message')} into dead letters, "
            "because the service has probably sent them since. `delivery dead` lists them."
        )
    return lines
