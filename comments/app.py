"""Wiring: make a Flask application from settings and a store.

Every request, including its error handlers, runs inside `store.context()`. The context surrounds
the whole application, so it is always exited, even if a request fails.
"""

import contextlib
import functools
import itertools
import logging
import re
import sys
import time
import urllib.parse
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import flask
import werkzeug.test

import flatthread
from comments import config, errors
from comments.accounts.links import first_owner, invitations
from comments.cli import command_table
from comments.domain import records
from comments.events import backlog
from comments.limits import usage
from comments.reading.materialized import directories
from comments.sites import site_aliases, site_settings
from comments.store import connection
from comments.store.folder import server_address
from comments.upkeep import background_worker, cloud_tasks, wiring
from comments.upkeep.backups import backup_process
from comments.web import cron
from comments.web.admin import blueprints, home_page
from comments.web.api import (
    comment_calls,
    follow_calls,
    inbox_calls,
    moderator_calls,
    own_data,
)
from comments.web.api.description import openapi
from comments.web.api.site_statistics import statistics_calls
from comments.web.embedding import embed, feed_views, plain_posting
from comments.web.http import (
    context,
    cors,
    gate,
    problems,
    response_cache,
    security_headers,
    url_rules,
)
from comments.web.http.decode import paths
from comments.web.mailed import moderation_link_page, staff_notice_page, subscription_page
from comments.web.rendering import page_text
from comments.web.service import example_pages, monitoring, service_pages
from comments.web.sign_in import (
    account_pages,
    login_code_page,
    login_window_page,
    moderation_window_page,
    passkey_pages,
    provider_login,
)

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment


WARMING = 0.5  # Warming up may delay the start of a process by this many seconds.
WARMED = 8  # Maximum number of threads; Python runs code faster after eight runs.
_CUT = 4  # For this many of these threads, a page with one comment is also requested.
_QUIET = 2.0  # Seconds before a new process looks for unfinished work.
_SITE = re.compile(
    r"/(?:api/v1/sites|embed|feeds|admin/sites|sign-in/sites|moderate/sites)/([a-z0-9-]{1,63})(?:/|$)"
)
# Blueprints for the API, then for pages for readers, sign-in and owners, then for jobs.
_BLUEPRINTS = (
    comment_calls.blueprint,
    own_data.blueprint,
    follow_calls.blueprint,
    inbox_calls.blueprint,
    moderator_calls.blueprint,
    statistics_calls.blueprint,
    openapi.blueprint,
    service_pages.blueprint,
    monitoring.blueprint,
    example_pages.blueprint,
    embed.blueprint,
    plain_posting.blueprint,
    feed_views.blueprint,
    subscription_page.blueprint,
    moderation_link_page.blueprint,
    staff_notice_page.blueprint,
    home_page.blueprint,
    account_pages.blueprint,
    passkey_pages.blueprint,
    provider_login.blueprint,
    login_code_page.blueprint,
    login_window_page.blueprint,
    moderation_window_page.blueprint,
    *blueprints.BLUEPRINTS,
    cron.blueprint,
)
_log = logging.getLogger("flatthread")


def create_app(settings: config.Settings, store: connection.Store) -> flask.Flask:
    """Make the application that serves this store."""
    if settings.on_app_engine and settings.tasks_queue:
        queue = cloud_tasks.TaskQueue(settings.tasks_queue, settings.service)
        backlog.ELSEWHERE.of(store, lambda: queue)
    app = flask.Flask("comments", static_folder=None, template_folder="web/templates")
    app.jinja_env.globals |= page_text.GLOBALS
    app.ensure_sync = lambda func: func  # type: ignore[method-assign] # No view is a coroutine.
    app.config["MAX_CONTENT_LENGTH"] = settings.max_body
    app.url_rule_class = url_rules.LazyRule
    # Do not redirect "//" or a missing slash: ids must match exactly and are never repaired.
    app.url_map.merge_slashes = False
    app.url_map.converters |= {"site": paths.SiteId, "comment": paths.CommentId}
    context.keep(app, context.Context(settings, store))
    for blueprint in _BLUEPRINTS:
        app.register_blueprint(blueprint)
    app.register_error_handler(Exception, problems.answer)
    app.after_request(_answer_from_one_state)  # Runs last, with the headers of the other hooks.
    app.after_request(security_headers.add)
    app.url_value_preprocessor(_resolve_alias)
    served = _inside(store, response_cache.Replays(app.wsgi_app))
    app.wsgi_app = gate.Gate(served, settings)  # type: ignore[method-assign]
    command_table.register(app)
    return app


def _resolve_alias(_endpoint: str | None, values: dict[str, Any] | None) -> None:
    """Replace an alias in a request's path, so that all views get stored ids."""
    if values and "site_id" in values:
        values["site_id"] = site_aliases.canonical_id(values["site_id"])


def _answer_from_one_state(response: flask.Response) -> flask.Response:
    """Answer again if threads of the site have moved since the request's id was translated.

    Otherwise, a reader could see another thread at the address of a merge that was undone in
    between. The check reads nothing if the store tells versions; other stores check old ids only.
    """
    site: records.Site | None = flask.g.pop("translated_for", None)
    was_led = flask.g.pop("led_to", None) is not None
    if site is not None and (was_led or connection.current().tells_versions):
        with contextlib.suppress(errors.FlatthreadError):
            if site_settings.current(site.id).moves != site.moves:
                return flask.current_app.full_dispatch_request()
    return response


def public_url(app: flask.Flask) -> str:
    """Return the public URL of this service from its settings; "" if it is not set."""
    return context.of(app).settings.public_url


def note_address(app: flask.Flask, url: str) -> None:
    """Save the service's address `url` in the data folder, for links that commands print.

    Only the embedded store needs this. With other stores, commands may run on a different machine,
    so nothing is saved.
    """
    settings = context.of(app).settings
    if settings.datastore != "embedded":
        return
    try:
        server_address.note(settings.data_dir, url, settings.public_url)
    except OSError as error:
        _log.warning("The address could not be saved in the data folder: %s", error.strerror)


def start_worker(app: flask.Flask) -> background_worker.BackgroundWorker:
    """Start the background work of this process. Call this after the last fork."""
    kept = context.of(app)
    settings = kept.settings
    worker = background_worker.BackgroundWorker(
        kept.store,
        functools.partial(wiring.handlers, settings),
        first=_QUIET,
        reach=wiring.channels(settings),
        secret=settings.secret,
        audit_reads=settings.audit_reads,
        backups=_nightly_backups(settings),
    )
    worker.start()
    return worker


def _nightly_backups(settings: config.Settings) -> backup_process.BackupProcess | None:
    """Return the runner of nightly backups, or None. Only the embedded store has backups."""
    if settings.backup_dir is None or settings.datastore != "embedded":
        return None
    command = [sys.executable, str(Path(flatthread.__file__).parent), "backup", "--nightly"]
    return backup_process.BackupProcess(settings, command, lambda: datetime.now(UTC))  # noqa: TID251


class Offer(NamedTuple):
    """A one-time link for the first owner of the service, and the file that contains it.

    Without a data folder, there is no link yet, because only a command can make it.
    """

    link: str
    file: Path | None


def offer_ownership(app: flask.Flask, url: str) -> Offer | None:
    """Make a link for the first owner of the service, and save it in a file.

    On one machine, access to the data folder proves ownership. Elsewhere, only a command makes the
    link. The link begins with PUBLIC_URL if that is set, because the service answers other host
    names with 421; otherwise it begins with `url`. If the service has ever had an owner, return
    None and remove the file.

    Raises:
        errors.Overloaded: the store did not answer, so it is unknown whether there was an owner.
        OSError: the file cannot be written or removed.
    """
    kept = context.of(app)
    with kept.store.context():
        if kept.settings.datastore != "embedded":
            return Offer("", None) if first_owner.is_missing() else None
        begins = kept.settings.public_url or url
        now = datetime.now(UTC)  # noqa: TID251
        link = invitations.first_owner_link(begins, secret=kept.settings.secret, now=now)
        if not link:
            first_owner.remove(kept.settings)
            return None
        first_owner.keep(link, kept.settings)
        return Offer(link, first_owner.path(kept.settings))


def warm_up(app: flask.Flask) -> None:
    """Request typical pages, so that the first reader does not wait for lazy loading.

    Call this before the process accepts requests. Call it before the first fork if the engine is
    the embedded one, which survives a fork: the processes then share what the engine has loaded.
    The warm-up reads a few compacted threads, if there are any, and writes nothing. Errors are
    logged and ignored: a process must start even if the store is unreachable.
    """
    end = time.monotonic() + WARMING
    host = urllib.parse.urlsplit(context.of(app).settings.public_url).hostname or "localhost"
    client = werkzeug.test.Client(app)
    try:
        with context.of(app).store.context(), connection.within(WARMING):
            asked = [_first_page(name) for name in directories.some(WARMED)]
        # These pages also exercise paging: most threads are too short for a second page at the
        # usual limit.
        asked += [f"{target}&limit=1" for target in asked[:_CUT]]
        # Flask answers the first request for each content coding; the response cache answers the
        # others.
        codings = itertools.cycle(("identity", "gzip"))
        for target in asked + asked[:1] or ["/healthz"]:
            left = end - time.monotonic()
            if left <= 0:
                break
            with connection.within(left):
                headers = {"Accept-Encoding": next(codings)}
                client.get(target, base_url=f"http://{host}", headers=headers)
    except Exception:  # noqa: BLE001 - a process must start; requests report what is wrong
        _log.info("Warming up failed.", exc_info=True)


def _first_page(name: records.ThreadName) -> str:
    query = urllib.parse.urlencode({"thread": name.id})
    return f"/api/v1/sites/{name.site}/comments?{query}"


def _inside(store: connection.Store, wsgi: "WSGIApplication") -> "WSGIApplication":
    """Wrap a WSGI application: run each request in the store's context, and charge its usage."""

    def run(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        with store.context():
            connection.take_costs()  # Reset the usage that earlier work on this thread left behind.
            try:
                return wsgi(environ, start_response)
            finally:
                cors.note_page(environ)
                site = environ.get(context.SITE) or _site_in(environ)
                # Read the clock here, because some requests never reach a view.
                usage.take(site, now=datetime.now(UTC))  # noqa: TID251

    return run


def _site_in(environ: "WSGIEnvironment") -> str:
    """Return the site in a request's path if this process knows it, else `usage.SERVICE`."""
    match = _SITE.match(environ.get("PATH_INFO", ""))
    return (site_aliases.known_id(match[1]) if match else "") or usage.SERVICE
