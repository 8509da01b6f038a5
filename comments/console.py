"""What commands share: they enter the store, and say in one line what was refused.

Owns how a command of `flask --app main ...` meets the application: its settings, its store, which
thread is meant, and exit code 1 for input that was refused.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import ParamSpec, TypeVar

import click
import flask

from comments import config, datastore, errors, models, records, sites, threadids

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


def thread(site_id: str, given: str) -> records.ThreadName:
    """A thread of a website, by its id or by the address of its page.

    Raises:
        errors.NotFound: there is no such site.
    """
    site = sites.get(site_id)
    name = records.ThreadName(site.id, given)
    if "://" not in given or datastore.get(models.thread_key(name)) is not None:
        return name
    try:
        page = threadids.canonical_page(
            given, query_keys=site.query_keys, keep_trailing_slash=site.keep_trailing_slash
        )
    except errors.BadInput:
        return name
    return records.ThreadName(site.id, page)


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
