"""The examples: pages that show each attribute, option, event, variable and part of the widget.

An example consists of a file NAME.html in `static/examples` and, optionally, NAME.css and NAME.js.
The page `/examples` shows the text of these files. Next to the text, a frame shows the page
`/examples/NAME`, which consists of the same files. Readers therefore see exactly the code that
runs.

In the files, the service's address is `https://comments.example`, as in the documents. The pages
replace it with this service's address, and the frames load everything from there. Nothing else is
replaced.
"""

import functools
from pathlib import Path

import flask
import markupsafe

from comments.web.http import context, responses, security_headers

blueprint = flask.Blueprint("examples", __name__, url_prefix="/examples")

# The examples by group, in the order of the page.
GROUPS = {
    "attributes": (
        "site", "thread", "page", "order", "theme", "lang", "load", "categories", "account",
    ),
    "functions": ("functions", "events"),
    "counts": ("counts",),
    "options": ("options",),
    "styles": ("colors", "shapes", "parts", "finder"),
}  # fmt: skip
# Examples whose code serves only for demonstration, and is therefore shown only on request.
_TOOLS = ("options", "finder")
# Examples that need little space.
_SHORT = ("page", "counts")

_FILES = Path(__file__).parents[1] / "static" / "examples"
_SERVICE = "https://comments.example"
_HTML = "text/html; charset=utf-8"
_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
_LANGUAGES = {"html": "HTML", "css": "CSS", "js": "JavaScript"}


@functools.cache
def _files() -> dict[str, str]:
    """Return the text of all files by name."""
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(_FILES.iterdir())}


@blueprint.get("")
def index() -> flask.Response:
    """Show all examples, each with its code and a frame in which the code runs."""
    service = context.service_url()
    shown = {name: _code_parts(name, service) for names in GROUPS.values() for name in names}
    text = flask.render_template(
        "public/examples.html", groups=GROUPS, code=shown, tools=_TOOLS, short=_SHORT
    )
    response = responses.cacheable(text.encode(), content_type=_HTML)
    response.headers["Content-Security-Policy"] = security_headers.FRAMING
    return response


@blueprint.get("/<example>")
def example(example: str) -> flask.Response:
    """Serve the page of an example, or its style sheet or script."""
    stem, _, extension = example.partition(".")
    if extension in _TYPES and example in _files():
        return responses.cacheable(_runnable_file(example).encode(), content_type=_TYPES[extension])
    if extension or f"{stem}.html" not in _files():
        flask.abort(404)
    text = flask.render_template(
        "public/example.html",
        name=stem,
        body=markupsafe.Markup(_runnable_file(f"{stem}.html")),  # noqa: S704 - our own file
        parts=[kind for kind in _TYPES if f"{stem}.{kind}" in _files()],
    )
    response = responses.cacheable(text.encode(), content_type=_HTML)
    response.headers["Content-Security-Policy"] = security_headers.FRAMED_BY_OURSELVES
    return response


def _code_parts(name: str, service: str) -> list[tuple[str, str]]:
    """Return the code of an example as pairs: the name of a language, and the text."""
    files = [(title, _files().get(f"{name}.{kind}")) for kind, title in _LANGUAGES.items()]
    return [(title, text.replace(_SERVICE, service)) for title, text in files if text is not None]


def _runnable_file(name: str) -> str:
    """Return a file in the form in which it runs under `/examples/`."""
    return _files()[name].replace(_SERVICE, "..")
