"""A website on its own origin, whose pages contain an article and a comment widget.

The pages in `hosts/` have `{article}` and `{widget}` in their place.
"""

import contextlib
import logging
import threading
from collections.abc import Iterator
from pathlib import Path

import flask
from werkzeug import serving

_HOSTS = Path(__file__).with_name("hosts")
HOSTS = ("bare", "bootstrap", "tailwind", "dark", "serif", "right-to-left")


class Website:
    """Pages by path."""

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
        if name == "favicon.ico":
            return flask.Response(status=204)
        if name not in self._pages:
            flask.abort(404)
        html = self._pages[name][flask.request.query_string.decode()]
        return flask.Response(html, content_type="text/html; charset=utf-8")


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
def opened() -> Iterator[Website]:
    """Serve an empty website."""
    made = Website()
    with served(made.app) as made.origin:
        yield made
