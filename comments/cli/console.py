"""Open the store for commands and report their errors in one line.

This module gives commands of `flatthread ...` their settings and store, resolves thread arguments,
and exits with 1 if input is refused. A command opens the store when it runs and names it on
standard error. Only a command that is declared with `creates` makes a new store.

This module imports the store and all rooms above it inside the functions that need them, because a
serving process also imports this module.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Protocol

import click
import flask
import flask.cli

from comments import errors

if TYPE_CHECKING:
    from comments import config
    from comments.domain import records
    from comments.store import connection
    from comments.upkeep.backups import engine_files

_NAME = "flatthread"  # The key of the application's settings and store.
_OPENER = "flatthread-opener"
_FILES = "flatthread-files"
_MOST_SITES = 20  # Maximum number of sites that an error names.
Argument = Callable[[Callable[..., object]], Callable[..., object]]
SITE: Argument = click.argument("site_id", metavar="SITE")


class Opener(Protocol):
    """Opens the store that the settings name."""

    def __call__(
        self, *, creates: bool, backs_up: bool = True
    ) -> "tuple[config.Settings, connection.Store]":
        """Open the store. Raise a `FlatthreadError` if that is not possible.

        Without `creates`, the store must exist. A data file whose format changes is backed up
        first, unless `backs_up` is False.
        """


@dataclasses.dataclass(frozen=True, slots=True)
class _Opened:
    settings: "config.Settings"
    store: "connection.Store"


def open_later(
    app: flask.Flask, opener: Opener, data_files: "Callable[[], engine_files.EngineFiles]"
) -> None:
    """Set how commands of this application open the store, or use its files, when they run."""
    app.extensions[_OPENER] = opener
    app.extensions[_FILES] = data_files


def now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def settings() -> "config.Settings":
    """Return the application's settings."""
    loaded: config.Settings = flask.current_app.extensions[_NAME].settings
    return loaded


def data_files() -> "engine_files.EngineFiles":
    """Return the operations on the data file of an embedded store."""
    files: engine_files.EngineFiles = flask.current_app.extensions[_FILES]()
    return files


def read_settings(*, creates: bool) -> "config.Settings":
    """Read the settings for a command that uses the store's files before it opens the store.

    With `creates`, the store may be missing; the secret is "" if there is no secret yet. If the
    settings are wrong, exit with status 3.
    """
    from comments import config
    from comments.store import message_loading

    message_loading.load()
    with _starting():
        return config.load(creates=creates, makes_secret=not creates)


def settings_without_store(*, creates: bool) -> "config.Settings":
    """Read the settings for a command that uses only the files of an embedded store.

    Raises:
        errors.BackupFailed: the settings name a store that is not embedded.
    """
    from comments.store.folder import data_folder

    loaded = read_settings(creates=creates)
    if loaded.datastore != "embedded":
        raise errors.BackupFailed(
            f"The comments are stored in {loaded.where}, not in a file of this machine. Use the "
            "backups of that store (docs/backups.md)."
        )
    data_folder.begin(loaded.data_group)
    return loaded


def open_store(
    *, creates: bool, backs_up: bool = True
) -> "tuple[config.Settings, connection.Store]":
    """Return the store. If it is not open, open it and name it on standard error.

    Raises:
        errors.FlatthreadError: the settings or the data cannot be used.
    """
    kept = flask.current_app.extensions
    if _NAME not in kept:
        kept[_NAME] = _Opened(*kept[_OPENER](creates=creates, backs_up=backs_up))
        click.echo(f"Using {settings().where}.", err=True)
    return kept[_NAME].settings, kept[_NAME].store


@contextlib.contextmanager
def enter_store(*, creates: bool = False, backs_up: bool = True) -> Iterator[None]:
    """Enter the store. The first use opens the store and names it on standard error."""
    with _starting():
        _, store = open_store(creates=creates, backs_up=backs_up)
    with store.context():
        yield


@contextlib.contextmanager
def _starting() -> Iterator[None]:
    """Report unusable settings or data in one line, and exit with code 3."""
    try:
        yield
    except errors.FlatthreadError as error:
        click.echo(f"flatthread: {error.message}", err=True)
        raise click.exceptions.Exit(3) from error


def applies() -> str:
    """Say how soon a change applies to new comments and to pages."""
    from comments.domain.languages import catalogue
    from comments.store.memory import row_copies

    if seconds := row_copies.delay():
        return catalogue.ENGLISH.text("admin.applies-within-seconds", seconds=round(seconds))
    return catalogue.ENGLISH.text("admin.applies-at-once")


def site(site_id: str) -> "records.Site":
    """Return the website with this id or alias.

    Raises:
        errors.NotFound: there is no such site.
    """
    from comments.sites import site_aliases, site_settings

    return site_settings.get(site_aliases.canonical_id(site_id))


def sites(site_id: str | None = None) -> "list[records.Site]":
    """Return one website, or all websites.

    Raises:
        errors.NotFound: there is no such site.
    """
    from comments.sites import site_settings

    return [site_settings.get(site_id)] if site_id else list(site_settings.every())


def thread(site_id: str, given: str) -> "records.ThreadName":
    """Return the stored name of a thread, given any of its ids or the address of a page of it.

    Raises:
        errors.NotFound: there is no such site.
    """
    from comments.domain import records
    from comments.domain.ids import thread_ids
    from comments.store import reads
    from comments.store.models import comment_rows
    from comments.threads import thread_aliases

    website = site(site_id)
    name = records.ThreadName(website.id, thread_aliases.stored_id(website, given))
    if "://" not in given or reads.get(comment_rows.thread_key(name)) is not None:
        return name
    try:
        page = thread_ids.page_id(given, website)
    except errors.BadInput:
        return name
    return records.ThreadName(website.id, thread_aliases.stored_id(website, page))


def command(
    name: str, *arguments: Argument, creates: bool = False, summary: str | None = None
) -> Callable[[Callable[..., object]], click.Command]:
    """Declare a command that runs in the store, and reports refused input with exit code 1.

    `arguments` come before the arguments that other decorators add. With `creates`, the command may
    create the store. Without a `summary`, the function's docstring is the help text.
    """

    def declare(function: Callable[..., object]) -> click.Command:
        run = _in_store(function, creates=creates)
        for argument in reversed(arguments):
            run = argument(run)
        made: click.Command = click.command(name, help=summary)(flask.cli.with_appcontext(run))
        return made

    return declare


class Group(flask.cli.AppGroup):
    """A group of commands that run in the store."""

    def command(  # type: ignore[override]  # flask's takes any arguments
        self, name: str, *arguments: Argument, creates: bool = False, summary: str | None = None
    ) -> Callable[[Callable[..., object]], click.Command]:
        """Declare a command of the group (see `command`)."""

        def declare(function: Callable[..., object]) -> click.Command:
            made = command(name, *arguments, creates=creates, summary=summary)(function)
            self.add_command(made)
            return made

        return declare


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Report an error of this service or of a file in one line, and exit with code 1."""
    try:
        yield
    except errors.FlatthreadError as error:
        from comments.domain.languages import error_texts

        text = error_texts.sentence(error)
        if isinstance(error, errors.Overloaded):
            text = f"{text} Reason: {error.reason}."
        raise click.ClickException(printable(text)) from error
    except BrokenPipeError:  # Click ends the command without a message
        raise
    except OSError as error:
        place = "" if error.filename is None else f" {error.filename}"
        text = f"Cannot read or write{place or ' a file'}: {error.strerror or error}."
        raise click.ClickException(printable(text)) from error


def printable(text: str) -> str:
    """Replace control characters in an error for a terminal, because the error may quote a file."""
    return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)


def _in_store(function: Callable[..., object], *, creates: bool) -> Callable[..., object]:
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> object:
        for name, value in kwargs.items():
            _check_text(name, value)
        with refusing(), enter_store(creates=creates), _naming_sites():
            return function(*args, **kwargs)

    return run


@contextlib.contextmanager
def _naming_sites() -> Iterator[None]:
    """Add the names of all sites to the error for a site that does not exist."""
    try:
        yield
    except errors.NotFound as error:
        if error.code != "site-not-found":
            raise
        from comments.domain.languages import error_texts

        names = [website.id for website in sites()]
        more = f" and {len(names) - _MOST_SITES} more" if len(names) > _MOST_SITES else ""
        known = f"The sites are: {', '.join(names[:_MOST_SITES])}{more}."
        none = "There are no sites yet. `site add` adds one."
        text = f"{error_texts.sentence(error)} {known if names else none}"
        raise click.ClickException(printable(text)) from error


def _check_text(name: str, value: object) -> None:
    """Refuse a value that the shell did not pass as UTF-8; Python marks its bytes as surrogates."""
    for text in value if isinstance(value, tuple) else (value,):
        if isinstance(text, str) and any("\ud800" <= one <= "\udfff" for one in text):
            raise click.ClickException(f"{name} contains bytes that are not valid UTF-8.")
