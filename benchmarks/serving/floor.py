"""The floor for `served_pages` and `served_posts`: the cost of a minimal server.

`app` is a bare Flask application, which gunicorn runs with the same number of workers and threads
as the product. The application answers a GET with the bytes of the product's response, which it
reads from a file in the folder SERVED. The application answers a POST with the posted body after it
has stored the body as a row in a SQLite file in that folder.
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
    """Return the bytes of a file."""
    return flask.Response(_BODIES[name], content_type="application/json")


@app.post("/")
def store() -> tuple[flask.Response, int]:
    """Store a post in one row and acknowledge it when it is on disk."""
    sent = flask.request.get_json()
    _rows().execute("INSERT INTO posts (name, body) VALUES (?, ?)", (sent["name"], sent["body"]))
    return flask.jsonify(sent), 201


def _rows() -> sqlite3.Connection:
    """Return the connection of this thread."""
    if not hasattr(_local, "rows"):
        rows = sqlite3.connect(_FOLDER / "posts.db", timeout=60, isolation_level=None)
        rows.execute("PRAGMA journal_mode = WAL")
        rows.execute("PRAGMA synchronous = FULL")
        rows.execute("CREATE TABLE IF NOT EXISTS posts (id INTEGER PRIMARY KEY, name, body)")
        _local.rows = rows
    rows_: sqlite3.Connection = _local.rows
    return rows_
