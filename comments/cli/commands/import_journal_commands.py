"""List, show and undo imports: `imports`."""

import time
from datetime import datetime

import click

from comments import errors
from comments.cli import console, import_progress
from comments.cli.commands import compaction_commands, moderation_commands
from comments.domain.text.shown_values import quantity
from comments.events import audit_log
from comments.reading.compaction import due_threads
from comments.transfer.importing import import_journal, import_undo
from comments.upkeep import scheduler, wiring

imports = console.Group("imports")

_TRIES = 20  # Attempts of a waiting command before it leaves the rest to a running server
_PAUSE = 5.0  # Seconds between two attempts
_SITE = click.option("--site", "site_id", required=True, help="The site of the imports.")


@imports.command("list", _SITE)
def list_(site_id: str) -> None:
    """List a site's imports, newest first: id, start, format, file, added comments, state."""
    now = console.now()
    entries = list(import_journal.recent_imports(console.site(site_id).id))
    if entries:
        click.echo("id\tbegan\tformat\tfile\tadded\tstate")
    for entry in entries:
        added = "" if entry.added is None else str(entry.added)
        state = (
            entry.id or "-",
            _time(entry.began),
            entry.system,
            entry.file,
            added,
            _state(entry, now),
        )
        click.echo("\t".join(state))


@imports.command("show")
@click.argument("import_id", metavar="ID")
@_SITE
def show(import_id: str, site_id: str) -> None:
    """Show an import: its file, its progress, and whether and until when it can be undone."""
    now, site = console.now(), console.site(site_id).id
    stored = import_journal.get(site, import_id)
    lines = {
        "id": stored.id,
        "file": stored.file,
        "format": stored.system,
        "SHA-256": stored.digest,
        "page mappings": " ".join(stored.mapping),
        "began": _time(stored.began),
        "last progress": _time(stored.at),
        "processed": f"{stored.seen} of {quantity(stored.comments, 'comment')}",
        "added": "" if stored.added is None else quantity(stored.added, "comment"),
        "state": _state(stored, now),
    }
    if stored.undoing is not None:
        lines["undo began"] = _time(stored.undoing)
        imported = stored.comments if stored.added is None else stored.added
        removed = stored.removed + (stored.waiting if stored.is_being_undone else 0)
        lines["removed"] = f"{removed} of {quantity(imported, 'comment')}"
        if stored.is_being_undone and stored.waiting:
            waiting = quantity(stored.waiting, "comment")
            lines["waiting"] = f"{waiting} without content, until the pages are compacted"
    for name, value in lines.items():
        if value:
            click.echo(f"{name}: {value}")
    if stored.undoing is None and stored.can_be_undone(now):
        click.echo(_preview(site, stored))


@imports.command("undo")
@click.argument("import_id", metavar="ID")
@_SITE
@click.option("--reason", default="", help="Reason, for the audit log.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--wait/--no-wait", default=False, help="Wait until the undo is complete.")
def undo(import_id: str, site_id: str, *, reason: str, yes: bool, wait: bool) -> None:
    """Remove the comments and threads that an import added.

    Comments that people wrote here stay. An imported comment with such an answer stays as a
    tombstone, without its text and author. When this command ends, readers no longer see the
    imported comments. If the command is interrupted, a running server finishes the undo. You can
    also run it again. An import can be undone until 30 days after it began. Settings from an export
    of Flatthread stay.
    """
    site, now = console.site(site_id).id, console.now()
    act = audit_log.Act(moderation_commands.ACTOR, import_undo.VERB, reason)
    stored = import_journal.get(site, import_id)
    import_undo.check(site, stored, now)
    if not stored.is_being_undone:
        click.echo(_preview(site, stored))
        if not yes:
            click.confirm(f"Undo the import of {stored.file} into {site}?", abort=True)
    import_undo.begin(site, import_id, act, now=now)
    done = _finish(site, import_id, wait=wait)
    _report(site, done)


def _finish(site: str, import_id: str, *, wait: bool) -> "import_undo.UndoProgress":
    """Run an undo as far as possible now or, with `wait`, until its end."""
    done = _go_on(site, import_id)
    for _ in range(_TRIES if wait else 0):
        if done.found.undone is not None:
            break
        if not _compact(site):
            time.sleep(_PAUSE)  # A running server has compacted the threads, and clears the flags.
        done = _go_on(site, import_id)
    return done


def _go_on(site: str, import_id: str) -> "import_undo.UndoProgress":

    events: list[str] = []
    handlers = wiring.handlers(console.settings())
    with import_progress.showing("Removing", None, "step") as advance:
        done = import_undo.go_on(
            site,
            import_id,
            now=console.now(),
            told=events.extend,
            progress=lambda _: advance(1),
        )
    # Deliver the events here, because there may be no running server.
    scheduler.deliver(events, now=console.now(), handlers=handlers)
    return done


def _compact(site: str) -> bool:
    """Compact the changed threads of a site; return False if there are none."""
    names = [name for name in due_threads.find(console.now()) if name.site == site]
    try:
        done = scheduler.compact_whole(names, wait=compaction_commands.sleep)
    except errors.Overloaded:
        return False  # A running server is compacting the same threads.
    return bool(done.cleared)


def _report(site: str, done: "import_undo.UndoProgress") -> None:
    stored = done.found
    # Add the comments that still exist without content, because a preview counts them too.
    removed = quantity(stored.removed + len(done.waiting), "comment")
    if stored.undone is not None:
        kept = quantity(stored.kept, "tombstone")
        click.echo(
            f"The undo is complete. Removed {removed}; {kept} left above other comments."
            f"{_settings(stored)}"
        )
        return
    click.echo(
        f"Removed {removed}. Readers no longer see the imported comments. "
        f"The undo can delete {quantity(len(done.waiting), 'comment')} without content "
        "only after a compaction. A running server does this within "
        f"{compaction_commands.minutes_until_cleared()} minutes. To finish now, run "
        f"`imports undo {stored.id} --site {site} --wait`."
    )


def _preview(site: str, found: "import_journal.Import") -> str:

    made = import_undo.preview(site, found.id)
    removed = quantity(made.comments - made.answered, "comment")
    kept = (
        f" It leaves {quantity(made.answered, 'tombstone')}, without text and author, "
        "because of replies that this import did not add."
        if made.answered
        else ""
    )
    return (
        f"An undo of {found.id} removes {removed} and {quantity(made.threads, 'thread')}, "
        f"with their votes, reports and pins.{_parts(made)}{kept} All comments that "
        f"people wrote here stay.{_settings(found)}"
    )


def _parts(made: "import_undo.UndoPreview") -> str:
    """Describe what undoing the import of a Flatthread export removes besides comments."""
    parts = []
    if made.entries:
        entries = "entry" if made.entries == 1 else "entries"
        parts.append(f"{made.entries} {entries} of the audit log")
    if made.counters:
        counters = "counter" if len(made.counters) == 1 else "counters"
        parts.append(f"the {counters} {', '.join(made.counters)}")
    return f" It also removes {' and '.join(parts)}." if parts else ""


def _settings(found: "import_journal.Import") -> str:
    return " The settings from the file stay." if found.has_settings else ""


def _state(found: "import_journal.Import", now: datetime) -> str:
    if found.undone is not None:
        return f"undone at {_time(found.undone)}, {quantity(found.kept, 'tombstone')} left"
    if found.is_being_undone:
        return "being undone"
    if found.may_still_run(now):
        return "running"
    state = "interrupted: run the same command again" if found.added is None else "finished"
    if not found.can_be_undone(now):
        return f"{state}, can no longer be undone"
    return f"{state}, can be undone until {_time(found.ends)}"


def _time(moment: datetime) -> str:
    return moment.isoformat(sep=" ", timespec="minutes")
