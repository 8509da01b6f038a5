"""What a request runs with: the application's settings and store, kept once per application.

Nothing of a request is ever kept here: threads share it.
"""

import dataclasses
from typing import cast

import flask

from comments import config
from comments.store import connection

_NAME = "flatthread"


@dataclasses.dataclass(frozen=True, slots=True)
class Context:
    """What `app.create_app` was given."""

    settings: config.Settings
    store: connection.Store


def keep(app: flask.Flask, context: Context) -> None:
    """Give an application its context."""
    app.extensions[_NAME] = context


def of(app: flask.Flask) -> Context:
    """The context of an application."""
    return cast(Context, app.extensions[_NAME])


def settings() -> config.Settings:
    """The settings of the current application."""
    return of(flask.current_app).settings
