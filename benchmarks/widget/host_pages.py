"""A website on its own origin, whose pages contain an article and a comment widget.

The pages in `hosts/` have `{article}` and `{widget}` in their place. Names ending in `.svg` are
pictures of authors, for services that show some.
"""

import contextlib
import logging
import threading
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import flask
from werkzeug import serving

_HOSTS = Path(__file__).with_name("hosts")
HOSTS = ("bare", "bootstrap", "tailwind", "dark", "serif", "right-to-left")
NO_PROVIDERS = "providers.json"  # Waline asks for its list of providers with every request.
_PICTURE = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 40">
<rect width="40" height="40" fill="hsl({hue} 45% 45%)"/>
<text x="20" y="27" font-family="sans-serif" font-size="18" fill="#fff"
 text-anchor="middle">{letter}</text>
</svg>"""


class Website:
    """Pages by path, and files of any type."""

    def __init__(self) -> None:
        self.origin = ""
        self.app = flask.Flask("website", static_folder=None)
        self.app.add_url_rule("/<path:name>", view_func=self._page)
        self._pages: dict[str, dict[str, str]] = {}

    def put(self, name: str, html: str, *, bare: str = "") -> str:
        """Publish a page, and a different one for the query `bare`; return the page's URL."""
        self._pages[name] = {"": html, "bare": bare}
        return f"{self.origin}/{name}"

    def _page(self, name: str) -> flask.Response:
        if name.endswith(".svg"):
            return _picture(name.removesuffix(".svg"))
        if name == NO_PROVIDERS:
            return flask.jsonify(services=[])
        if name == "favicon.ico":
            return flask.Response(status=204)
        if name not in self._pages:
            flask.abort(404)
        html = self._pages[name][flask.request.query_string.decode()]
        return flask.Response(html, content_type="text/html; charset=utf-8")


def _picture(name: str) -> flask.Response:
    shown = urllib.parse.unquote(name)
    drawn = _PICTURE.format(hue=sum(map(ord, shown)) * 37 % 360, letter=shown[:1].upper())
    response = flask.Response(drawn, content_type="image/svg+xml")
    response.headers["Cache-Control"] = "public, max-age=86400"
    return response


def page(host: str, article: str, widget: str) -> str:
    """Return the HTML of a page."""
    template = (_HOSTS / f"{host}.html").read_text(encoding="utf-8")
    return template.replace("{article}", article).replace("{widget}", widget)


@contextlib.contextmanager
def served(app: flask.Flask) -> Iterator[str]:
    """Serve an application on a free port; yield its origin."""
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    server = serving.make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextlib.contextmanager
def website() -> Iterator[Website]:
    """Serve an empty website."""
    made = Website()
    with served(made.app) as made.origin:
        yield made
