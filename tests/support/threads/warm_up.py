"""A process's first reading, as tests have it: asked through Flask's client instead of a server."""

import flask

from comments import app as apps


def read_once(app: flask.Flask) -> None:
    """Do what a process does before it takes readers."""

    def ask(target: str, coding: str, _seconds: float) -> None:
        with app.test_client() as client:
            client.get(target, headers={"Accept-Encoding": coding})

    apps.warm_up(app, ask)
