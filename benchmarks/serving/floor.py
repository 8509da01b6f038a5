"""The floor of `served_pages` and `served_posts`: what the least that could be done costs.

Owns `app`, a bare Flask application that gunicorn runs with the product's own numbers of workers
and threads. It answers a GET with bytes that it holds, those of the product's answers, in files of
the folder that SERVED names; a POST with what was sent, when that is a row of a SQLite file there.
"""

import os
import sqlite3
import threading
from pathlib import Path

import flask

_FOLDER = Path(os.environ["SERVED"])
_BODIES = {path.name: path.read_bytes() for path in _FOLDER.iterdir()}
_local = threading.local()

app = flask.Flask("floor")


@app.get("/<name>")
def answer(name: str) -> flask.Response:
    """The bytes of a file."""
    return flask.Response(_BODIES[name], content_type="application/json")


@app.post("/")
def store() -> tuple[flask.Response, int]:
    """A post in one row, acknowledged when it is on disk."""
    sent = flask.request.get_json()
    _rows().execute("INSERT INTO posts (name, body) VALUES (?, ?)", (sent["name"], sent["body"]))
    return flask.jsonify(sent), 201


def _rows() -> sqlite3.Connection:
    """The connection of this thread."""
    if not hasattr(_local, "rows"):
        rows = sqlite3.connect(_FOLDER / "posts.db", timeout=60, isolation_level=None)
        rows.execute("PRAGMA journal_mode = WAL")
        rows.execute("PRAGMA synchronous = FULL")
        rows.execute("CREATE TABLE IF NOT EXISTS posts (id INTEGER PRIMARY KEY, name, body)")
        _local.rows = rows
    rows_: sqlite3.Connection = _local.rows
    return rows_
