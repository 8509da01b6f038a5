"""Wiring: settings and a store become a Flask application, and nothing else happens here.

Every request runs inside `store.context()`, entered around the whole application, so that error
handlers are inside too and no way out of a request can leave a thread in a context.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import flask

from comments import cli, cloudtasks, config, datastore, handlers, upkeep
from comments import tasks as backlog
from comments.web import (
    api,
    context,
    cors,
    embed,
    errors,
    feeds,
    headers,
    pages,
    paths,
    replays,
    subscriptions,
    tasks,
)

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


def create_app(settings: config.Settings, store: datastore.Store) -> flask.Flask:
    """Make the application that serves this store."""
    if settings.on_app_engine and settings.tasks_queue:
        queue = cloudtasks.Queue(settings.tasks_queue, settings.service)
        store.kept(backlog.HOLDINGS, lambda: queue)
    app = flask.Flask("comments", static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body
    # "//" and a missing slash are other paths, not redirects: ids must not be repaired.
    app.url_map.merge_slashes = False
    app.url_map.converters |= {"site": paths.SiteId, "comment": paths.CommentId}
    context.keep(app, context.Context(settings, store))
    app.register_blueprint(api.blueprint)
    app.register_blueprint(pages.blueprint)
    app.register_blueprint(embed.blueprint)
    app.register_blueprint(feeds.blueprint)
    app.register_blueprint(subscriptions.blueprint)
    app.register_blueprint(tasks.blueprint)
    app.register_error_handler(Exception, errors.answer)
    app.after_request(cors.add)
    app.after_request(headers.add)
    app.wsgi_app = _inside(store, replays.Replays(app.wsgi_app))  # type: ignore[assignment, method-assign]
    cli.register(app)
    return app


def start_worker(app: flask.Flask) -> upkeep.Worker:
    """Start what this process does beside answering. Call it after the last fork."""
    kept = context.of(app)
    worker = upkeep.Worker(kept.store, kept.settings.scheme, handlers.of(kept.settings))
    worker.start()
    return worker


def _inside(store: datastore.Store, wsgi: "WSGIApplication") -> "WSGIApplication":
    """Run a WSGI application in the store's context. Our answers are made whole before it ends."""

    def run(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        with store.context():
            return wsgi(environ, start_response)

    return run
