"""The service's own pages: its health, the demo, and the widget's files."""

from pathlib import Path

import flask

from comments import datastore, models
from comments.web import answers

blueprint = flask.Blueprint("pages", __name__, template_folder="templates")

_STATIC = Path(__file__).parent / "static"
# A load balancer asks every few seconds and gives up sooner than a reader would.
_HEALTH_SECONDS = 2.0
# Named here because the machine's own table differs from machine to machine.
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


@blueprint.get("/healthz")
def health() -> flask.Response:
    """Whether this process can read its store; 503 when it cannot."""
    # Of a site that cannot be: one lookup, and no copy kept in this process answers for it.
    with datastore.within(_HEALTH_SECONDS):
        datastore.get(models.site_key("."))
    response = flask.jsonify(status="ok")
    response.headers["Cache-Control"] = "no-store"
    return response


@blueprint.get("/")
def demo() -> flask.Response:
    """A page with a thread on it, as a site would embed one; `?site=` and `?thread=` choose it.

    They are shown as text and passed to the widget, whose calls check them.
    """
    chosen = {name: flask.request.args.get(name) or "demo" for name in ("site", "thread")}
    return answers.cacheable(
        flask.render_template("demo.html", **chosen).encode(),
        content_type="text/html; charset=utf-8",
    )


@blueprint.get("/widget/<name>")
def widget(name: str) -> flask.Response:
    """A file of the widget. Any site may load it, also as a module."""
    # Found among the files there are, so that no name is ever taken for a path.
    file = next((file for file in _STATIC.iterdir() if file.name == name), None)
    content_type = _TYPES.get(file.suffix) if file else None
    if file is None or content_type is None:
        flask.abort(404)
    response = answers.cacheable(file.read_bytes(), content_type=content_type)
    response.headers["Access-Control-Allow-Origin"] = "*"
    return response
