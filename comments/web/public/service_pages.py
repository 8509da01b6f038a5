"""The service's own pages: its health, the demo, and the files that browsers load.

Pages embed the widget with `/widget/flatthread.js`. For that reason the files from all folders
below `static/` are served as `/widget/NAME`, and no two files may have the same name. The modules
with the widget's texts (such as `strings.js`) are generated from the catalogue.
"""

import functools
import json
from pathlib import Path

import flask

from comments.domain.languages import catalogue
from comments.store import connection, reads
from comments.store.models import comment_rows
from comments.web.http import responses
from comments.web.public import minify

blueprint = flask.Blueprint("pages", __name__)

_STATIC = Path(__file__).parents[1] / "static"
# Load balancers check the health every few seconds and wait less long than readers.
_HEALTH_SECONDS = 2.0
# The generated modules, and the surface whose texts each module contains.
_STRINGS = {
    "strings.js": "widget",
    "strings-writing.js": "widget-writing",
    "strings-errors.js": "errors",
}
# Defined here because the table of the operating system differs between machines.
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


@functools.cache
def _files() -> dict[str, responses.Fixed]:
    """Return all files by name. Read and compress them once per process."""
    files = (file for file in _STATIC.glob("*/*") if file.suffix in _TYPES)
    sent = {file.name: _sent(file) for file in files}
    sent |= {name: _strings(surface) for name, surface in _STRINGS.items()}
    return {name: responses.fixed(content) for name, content in sent.items()}


def _sent(file: Path) -> bytes:
    return minify.without_comments(file.read_text(encoding="utf-8")).encode()


def _strings(surface: str) -> bytes:
    """Return a module with the texts of one surface, in an object without a prototype."""
    texts = catalogue.ENGLISH
    entries = {"__proto__": None, **texts.entries[surface]}
    made = {"language": texts.language, "entries": entries}
    written = (f"export const {name} = {_script(value)};\n" for name, value in made.items())
    return "".join(written).encode()


def _script(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@blueprint.record_once
def _prepare(_state: object) -> None:
    """Read the files when the application is made, before a server forks or accepts requests."""
    _files()


@blueprint.get("/healthz")
def health() -> flask.Response:
    """Answer 200 if this process can read its store, else 503."""
    # No site can have this id, so no cache of this process can answer instead of the store.
    with connection.within(_HEALTH_SECONDS):
        reads.get(comment_rows.site_key("."))
    response = flask.jsonify(status="ok")
    response.headers["Cache-Control"] = "no-store"
    return response


@blueprint.get("/")
def demo() -> flask.Response:
    """Show a page that embeds a thread in the same way as a site.

    `?site=` and `?thread=` choose the thread. The page shows both values as text and passes them to
    the widget; the API checks them.
    """
    chosen = {name: flask.request.args.get(name) or "demo" for name in ("site", "thread")}
    return responses.cacheable(
        flask.render_template("public/demo.html", **chosen).encode(),
        content_type="text/html; charset=utf-8",
    )


@blueprint.get("/widget/<name>")
def widget(name: str) -> flask.Response:
    """Serve a file to browsers. Any site may load it, also as a module."""
    # The name is looked up among known names and never used as a path.
    file = _files().get(name)
    if file is None:
        flask.abort(404)
    response = responses.unchanging(file, content_type=_TYPES[Path(name).suffix])
    response.headers["Access-Control-Allow-Origin"] = "*"
    return response
