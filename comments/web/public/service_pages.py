"""The service's own pages: its health, the demo, and the files that browsers load.

The files lie in three folders under `static/`, and all are served under `/widget/` by their names
alone: pages that embed the widget name it so. Hence no two files may share a name.
"""

import functools
from pathlib import Path

import flask

from comments.store import connection, reads
from comments.store.models import comment_rows
from comments.web.http import responses
from comments.web.public import minify

blueprint = flask.Blueprint("pages", __name__)

_STATIC = Path(__file__).parents[1] / "static"
# A load balancer asks every few seconds and gives up sooner than a reader would.
_HEALTH_SECONDS = 2.0
# Named here because the machine's own table differs from machine to machine.
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


@functools.cache
def _files() -> dict[str, responses.Fixed]:
    """The files of all folders, read and compressed once in a process."""
    files = (file for file in _STATIC.glob("*/*") if file.suffix in _TYPES)
    return {file.name: responses.fixed(_sent(file)) for file in files}


def _sent(file: Path) -> bytes:
    return minify.without_comments(file.read_text(encoding="utf-8")).encode()


@blueprint.record_once
def _prepare(_state: object) -> None:
    """Read them when the application is made: before a server forks and before anyone waits."""
    _files()


@blueprint.get("/healthz")
def health() -> flask.Response:
    """Whether this process can read its store; 503 when it cannot."""
    # Of a site that cannot be: one lookup, and no copy kept in this process answers for it.
    with connection.within(_HEALTH_SECONDS):
        reads.get(comment_rows.site_key("."))
    response = flask.jsonify(status="ok")
    response.headers["Cache-Control"] = "no-store"
    return response


@blueprint.get("/")
def demo() -> flask.Response:
    """A page with a thread on it, as a site would embed one; `?site=` and `?thread=` choose it.

    They are shown as text and passed to the widget, whose calls check them.
    """
    chosen = {name: flask.request.args.get(name) or "demo" for name in ("site", "thread")}
    return responses.cacheable(
        flask.render_template("public/demo.html", **chosen).encode(),
        content_type="text/html; charset=utf-8",
    )


@blueprint.get("/widget/<name>")
def widget(name: str) -> flask.Response:
    """A file for browsers. Any site may load it, also as a module."""
    # Looked up among the files there are, so that no name is ever taken for a path.
    file = _files().get(name)
    if file is None:
        flask.abort(404)
    response = responses.unchanging(file, content_type=_TYPES[Path(name).suffix])
    response.headers["Access-Control-Allow-Origin"] = "*"
    return response
