"""What commands share: they enter the store, and say in one line what was refused.

Owns how a command of `flask --app main ...` meets the application: its settings, its store, and
exit code 1 for input that was refused.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

import click
import flask

from comments import config, datastore, errors

P = ParamSpec("P")
T = TypeVar("T")


def settings() -> config.Settings:
    """The settings of the application."""
    found: config.Settings = flask.current_app.extensions["flatthread"].settings
    return found


@contextlib.contextmanager
def _store() -> Iterator[None]:
    store: datastore.Store = flask.current_app.extensions["flatthread"].store
    with store.context():
        yield


def reported(command: Callable[P, T]) -> Callable[P, T]:
    """Enter the store, and turn refusals into one clear line and exit code 1."""

    @functools.wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            with _store():
                return command(*args, **kwargs)
        except errors.FlatthreadError as error:
            raise click.ClickException(error.message) from error

    return run
