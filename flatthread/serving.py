"""The gunicorn configuration of `flatthread serve`: gunicorn's settings and hooks by name.

With the embedded engine, which survives a fork, the application is loaded once, before the workers
start. The workers then share memory, and an error in settings or data is reported only once. A
connection to any other store does not survive a fork, so with such a store, each worker loads the
application itself.
"""

import contextlib
import gc
import http.client
import logging
import multiprocessing
import os
import queue
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING

# `main.py` explains this. It turns collections on again when it has loaded the application.
gc.disable()

from comments.store import message_loading

message_loading.load()  # The modules imported below import message types.

import msgspec

# The imports must use full module names, because gunicorn would read a name such as "config" as its
# own setting.
import comments.app
import comments.config
import comments.errors
import comments.upkeep.background_worker
import comments.web.http.cors
import comments.web.http.problems
import comments.web.http.security_headers
import server.limits
import server.refusals
import server.worker

if TYPE_CHECKING:
    from types import FrameType

    import flask
    from gunicorn.arbiter import Arbiter  # type: ignore[import-untyped]


def _settings() -> comments.config.Settings | None:
    """Return the settings, or None if they are wrong: loading the application reports errors."""
    try:
        return comments.config.load()
    except comments.errors.Misconfigured:
        return None


_chosen = _settings()
# Cloud Run starts more instances if needed, and one process per instance has more cache hits.
workers = 1 if _chosen is not None and _chosen.on_cloud_run else 2
threads = 8
worker_class = "server.worker.Worker"
preload_app = _chosen is None or _chosen.datastore == "embedded"
# Workers touch unnamed files in this folder to show that they are running. If these files were on a
# disk that is full or hangs, gunicorn could start no worker, or would kill running workers.
_MEMORY = "/dev/shm"  # noqa: S108
worker_tmp_dir = _MEMORY if os.access(_MEMORY, os.W_OK) else None
# Seconds that running requests have to finish after SIGTERM or SIGINT.
graceful_timeout = 10
loglevel = "warning"
control_socket_disable = True

# The maximum number of connections from one address to one process. A browser opens at most six,
# but an office or a mobile network can share an address. Behind a proxy, all readers share one
# address, so this limit is off.
_PER_PEER = 64

_PAUSE = 0.05
_STOPS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
_STOP_SECONDS = 2.0  # Well below graceful_timeout, even on a busy machine.
_workers: "list[comments.upkeep.background_worker.BackgroundWorker]" = []
# The worker that has printed the URL holds this lock forever.
_said = multiprocessing.Lock()


def _limits(settings: comments.config.Settings | None) -> server.limits.Limits:
    if settings is None:
        return server.limits.Limits()
    is_open = not settings.trusted_proxies and not settings.on_app_engine
    return server.limits.Limits(
        largest_body=settings.max_body, per_peer=_PER_PEER if is_open else 0
    )


def _refusal(status: int) -> tuple[dict[str, str], bytes]:
    """Answer a malformed request in the same form as the application's errors."""
    reason = server.refusals.REASONS[status]
    problem = comments.web.http.problems.Problem(reason, status, f"http-{status}", reason.lower())
    headers = {
        "Content-Type": comments.web.http.problems.CONTENT_TYPE,
        **comments.web.http.security_headers.server_headers(),
        **comments.web.http.cors.REFUSED,
    }
    return headers, msgspec.json.encode(problem)


def when_ready(server: "Arbiter") -> None:
    """Warm up once for all workers if they share the application.

    The socket is already open, but no worker runs yet.
    """
    if preload_app:
        comments.app.warm_up(server.app.wsgi())
        gc.freeze()  # `main.py` explains this.


def post_fork(server: "Arbiter", worker: "server.worker.Worker") -> None:
    """Make sure that a stop signal ends this process even immediately after its start.

    Until gunicorn installs its handlers, the process uses its parent's handlers, which only add the
    signal to a queue that no thread reads here. The worker would miss the signal and be killed at
    the timeout.
    """
    worker.limits, worker.refusal = _limits(_chosen), _refusal
    for number in _STOPS:
        signal.signal(number, _leave)
    with contextlib.suppress(queue.Empty):
        while True:
            if server.SIG_QUEUE.get_nowait() in _STOPS:
                _leave()
    # If each worker loads the application, only the first worker logs which store it uses.
    if worker.age > 1:
        logging.getLogger("flatthread").setLevel(logging.WARNING)


def post_worker_init(worker: "server.worker.Worker") -> None:
    """Warm up, start the background worker, and print the URL once a worker answers.

    At this point the worker's socket is open, but its loop is not running yet. Workers that share
    the application are warm already.
    """
    if not preload_app:
        comments.app.warm_up(worker.wsgi)
    address = worker.sockets[0].getsockname()[:2]
    announcing = (worker.wsgi, *address)
    threading.Thread(target=_announce, args=announcing, daemon=True).start()
    # On Cloud Run, threads are suspended between requests, even in the middle of a transaction.
    if _chosen is None or _chosen.works_between_requests:
        _workers.append(comments.app.start_worker(worker.wsgi))


def worker_exit(_server: object, _worker: "server.worker.Worker") -> None:
    """Let the background worker finish its step. The next process does the remaining work."""
    for worker in _workers:
        worker.stop(_STOP_SECONDS)


def _leave(_number: int = 0, _frame: "FrameType | None" = None) -> None:
    # Do not use sys.exit: there is nothing to clean up yet, and the process may hold copies of its
    # parent's locks.
    os._exit(0)


def _announce(app: "flask.Flask", host: str, port: int) -> None:
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    while not _is_answering(shown, port):
        time.sleep(_PAUSE)
    if not _said.acquire(block=False):
        return
    name = f"[{shown}]" if ":" in shown else shown
    url = f"http://{name}:{port}/"
    comments.app.note_address(app, url)
    public = comments.app.public_url(app)
    known = f", for readers at {public}" if public else ""
    sys.stdout.write(f"Flatthread answers at {url}{known}\n")
    sys.stdout.flush()
    _offer(app, url)


def _offer(app: "flask.Flask", url: str) -> None:
    """Print how to become the first owner, if there is no owner yet."""
    try:
        offer = comments.app.offer_ownership(app, url)
    except (comments.errors.FlatthreadError, OSError) as error:
        sys.stderr.write(f"Cannot create the link for the first owner: {error}\n")
        return
    if offer is None:
        return
    if offer.file is None:
        sys.stderr.write(
            "There is no owner yet. To become the owner, run `flatthread account invite --owner` "
            "and open the link that it prints\n"
        )
        sys.stderr.flush()
        return
    sys.stderr.write(
        f"There is no owner yet. The link to become the owner is in {offer.file.absolute()}\n"
    )
    sys.stderr.flush()
    # Logs are kept, and other people read them, so print the link itself only on a terminal.
    terminal = next((stream for stream in (sys.stderr, sys.stdout) if stream.isatty()), None)
    if terminal is not None:
        terminal.write(f"To become the owner, open this link once: {offer.link}\n")
        terminal.flush()


def _is_answering(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
