"""What commands share: they enter the store, and say in one line what was refused.

Owns how a command of `flask --app main ...` meets the application: its settings, its store, which
thread is meant, and exit code 1 for input that was refused. A command opens the store when it runs,
and names it on standard error. Only a `creating` command makes a new one.
"""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import ParamSpec, Protocol, TypeVar

import click
import flask
import flask.cli

from comments import config, errors
from comments.domain import records, thread_ids
from comments.sites import site_settings
from comments.store import connection, reads
from comments.store.models import comment_rows

_NAME = "flatthread"  # under which an application keeps what it runs with, see web/context.py
_OPENER = "flatthread-opener"
P = ParamSpec("P")
T = TypeVar("T")


class Opener(Protocol):
    """Opens the store that the settings name."""

    def __call__(self, *, creates: bool) -> tuple[config.Settings, connection.Store]:
        """Open it. Unless it `creates`, end the process where there is no store yet."""


@dataclasses.dataclass(frozen=True, slots=True)
class _Opened:
    settings: config.Settings
    store: connection.Store


def is_loading() -> bool:
    """Tell whether Flask's command line is loading the program to find one of our commands.

    `flask run`, which serves, loads it inside its own command. So do `flask shell` and `routes`.
    """
    context = click.get_current_context(silent=True)
    return context is not None and isinstance(context.command, flask.cli.FlaskGroup)


def open_later(app: flask.Flask, opener: Opener) -> None:
    """Have the command of this application that runs open the store."""
    app.extensions[_OPENER] = opener


def settings() -> config.Settings:
    """The settings of the application."""
    found: config.Settings = flask.current_app.extensions[_NAME].settings
    return found


@contextlib.contextmanager
def _store(*, creates: bool) -> Iterator[None]:
    kept = flask.current_app.extensions
    if _NAME not in kept:
        kept[_NAME] = _Opened(*kept[_OPENER](creates=creates))
        click.echo(f"Using {settings().where}.", err=True)
    store: connection.Store = kept[_NAME].store
    with store.context():
        yield


def thread(site_id: str, given: str) -> records.ThreadName:
    """A thread of a website, by its id or by the address of its page.

    Raises:
        errors.NotFound: there is no such site.
    """
    site = site_settings.get(site_id)
    name = records.ThreadName(site.id, given)
    if "://" not in given or reads.get(comment_rows.thread_key(name)) is not None:
        return name
    try:
        page = thread_ids.canonical_page(
            given, query_keys=site.query_keys, keep_trailing_slash=site.keep_trailing_slash
        )
    except errors.BadInput:
        return name
    return records.ThreadName(site.id, page)


def reported(command: Callable[P, T]) -> Callable[P, T]:
    """Enter the store, and turn refusals into one clear line and exit code 1."""
    return _inside(command, creates=False)


def creating(command: Callable[P, T]) -> Callable[P, T]:
    """Do the same for a command that may make the store."""
    return _inside(command, creates=True)


@contextlib.contextmanager
def refusing() -> Iterator[None]:
    """Turn refusals into one clear line and exit code 1."""
    try:
        yield
    except errors.FlatthreadError as error:
        raise click.ClickException(error.message) from error


def _inside(command: Callable[P, T], *, creates: bool) -> Callable[P, T]:
    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        with refusing(), _store(creates=creates):
            return command(*args, **kwargs)

    return run
