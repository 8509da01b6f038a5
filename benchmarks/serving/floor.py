"""The floor of `served_pages`: a bare Flask handler that returns bytes it holds.

Owns `app`, run by gunicorn with the product's own numbers of workers and threads. The bytes are
those of the product's answers, in files of the folder that SERVED names, so both send the same.
"""

import os
from pathlib import Path

import flask

_BODIES = {path.name: path.read_bytes() for path in Path(os.environ["SERVED"]).iterdir()}

app = flask.Flask("plain")


@app.get("/")
def empty() -> flask.Response:
    """The least that any answer costs: a 304 that rests on nothing."""
    return flask.Response(status=304)


@app.get("/<name>")
def answer(name: str) -> flask.Response:
    """The bytes of a file."""
    return flask.Response(_BODIES[name], content_type="application/json")
