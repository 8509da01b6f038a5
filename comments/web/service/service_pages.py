"""The service's own pages: the demo, and the files that browsers load.

Pages embed the widget with `/widget/flatthread.js`. `scripts/build-widget` builds all files from
`widget/`. A file whose name contains a digest of its content never changes, so caches keep it for a
year. The files that pages embed change with each release, and caches keep them for five minutes.
All other files belong to the service's own pages. The console asks for them with a digest of their
content (`asset`), so caches keep them for a year too; without it, browsers check each time whether
they have changed.
"""

import functools
import re
from pathlib import Path

import flask

from comments.web import recipes
from comments.web.http import context, responses
from comments.web.sign_in import first_owner_hint

blueprint = flask.Blueprint("pages", __name__)

_FILES = Path(__file__).parents[1] / "static" / "widget"
_HASHED = re.compile(r"^.+-\w{12}\.\w+")
_IMMUTABLE = "public, max-age=31536000, immutable"
_EMBEDDED = {"flatthread.js", "count.js"}
_MINUTES = "public, max-age=300"
# Content types are defined here because the operating system's table differs between machines.
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}


@functools.cache
def _files() -> dict[str, responses.Fixed]:
    """Return all files by name. The files are read and compressed once per process."""
    return {file.name: responses.encode_fixed(file.read_bytes()) for file in _FILES.iterdir()}


@blueprint.record_once
def _prepare(_state: object) -> None:
    """Read the files when the application is created, before a server forks or accepts requests."""
    _files()


@blueprint.get("/")
def demo() -> flask.Response:
    """Show a page that embeds a thread as a website would.

    `?site=` and `?thread=` choose the thread. The page shows both values as text and passes them to
    the widget; the API checks them.
    """
    chosen = {name: flask.request.args.get(name) or "demo" for name in ("site", "thread")}
    return responses.cacheable(
        flask.render_template(
            "public/demo.html",
            **chosen,
            first_owner=first_owner_hint.hint(),
            lines=recipes.of("html", service=context.service_url(), site="my-blog")[0].lines,
        ).encode(),
        content_type="text/html; charset=utf-8",
    )


@blueprint.app_template_global()
def asset(name: str) -> str:
    """Return the path of a file, below the service's address, that changes with its content."""
    return f"widget/{name}?v={_files()[name].tag[:12]}"


@blueprint.get("/widget/<name>")
def widget(name: str) -> flask.Response:
    """Serve a file to browsers. Any site may load the file, including as a module."""
    # The name is looked up among known names, and is never used as a path.
    file = _files().get(name)
    if file is None:
        flask.abort(404)
    response = responses.fixed_answer(file, content_type=_TYPES[Path(name).suffix])
    response.headers["Access-Control-Allow-Origin"] = "*"
    if _HASHED.fullmatch(name) or flask.request.args.get("v") == file.tag[:12]:
        response.headers["Cache-Control"] = _IMMUTABLE
    elif name in _EMBEDDED:
        response.headers["Cache-Control"] = _MINUTES
    return response
