"""The floors of the served benchmarks: what a minimal server costs.

gunicorn runs each application with the same number of workers and threads as the product:

    flask     a bare Flask application
    wsgi      a bare WSGI callable
    imports   a WSGI callable in a process that has imported the product's libraries, for starts

`flask` and `wsgi` answer a GET with the bytes of a file in the folder SERVED, so with the bytes of
the product's response. They answer a POST with the posted body, after one durable INSERT into a
SQLite file in that folder.
"""

import importlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterable
from http import HTTPStatus
from pathlib import Path
from typing import Any

_FOLDER = Path(os.environ["SERVED"])
_BODIES = {path.name: path.read_bytes() for path in _FOLDER.iterdir()}
_LIBRARIES = ("flask", "google.cloud.ndb", "google.cloud.datastore_v1.types")
_local = threading.local()


def flask() -> Any:
    """Return the Flask application."""
    import flask  # noqa: PLC0415 - the other floors start without it

    app = flask.Flask("floor")

    @app.get("/<name>")
    def answer(name: str) -> Any:
        return flask.Response(_BODIES[name], content_type="application/json")

    @app.post("/")
    def store() -> Any:
        body = flask.request.get_data()
        _insert(body)
        return flask.Response(body, 201, content_type="application/json")

    return app


def wsgi(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer a request."""
    status = HTTPStatus.OK
    if environ["REQUEST_METHOD"] == "POST":
        body = environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"]))
        _insert(body)
        status = HTTPStatus.CREATED
    else:
        body = _BODIES[environ["PATH_INFO"].removeprefix("/")]
    headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    start_response(f"{status.value} {status.phrase}", headers)
    return [body]


def imports() -> Callable[..., Iterable[bytes]]:
    """Import the product's libraries, and return the application."""
    for name in _LIBRARIES:
        importlib.import_module(name)
    return wsgi


def _insert(body: bytes) -> None:
    """Store a body in one row, and return when it is on disk."""
    if not hasattr(_local, "rows"):
        rows = sqlite3.connect(_FOLDER / "posts.db", timeout=60, isolation_level=None)
        rows.execute("PRAGMA journal_mode = WAL")
        rows.execute("PRAGMA synchronous = FULL")
        rows.execute("CREATE TABLE IF NOT EXISTS posts (id INTEGER PRIMARY KEY, body)")
        _local.rows = rows
    _local.rows.execute("INSERT INTO posts (body) VALUES (?)", (body,))
