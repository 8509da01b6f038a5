#!/usr/bin/env python3
"""How scripts/serve runs gunicorn: the names below are gunicorn's settings and hooks.

With the embedded engine, which survives a fork, the application is loaded once, before the workers
are: they share memory, and what is wrong with settings or data is said once. A connection to any
other store does not survive a fork, so then each worker loads the application for itself.
"""

import contextlib
import ctypes
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

import msgspec

# Whole names: "config" alone would be a setting of gunicorn's.
import comments.app
import comments.config
import comments.errors
import comments.jobs.background_worker
import comments.web.http.problems
import comments.web.http.response_shapes
import comments.web.http.security_headers
import server.limits
import server.refusals
import server.worker

if TYPE_CHECKING:
    from types import FrameType

    import flask
    from gunicorn.arbiter import Arbiter  # type: ignore[import-untyped]


def _settings() -> comments.config.Settings | None:
    """The application's settings, unless they are wrong: loading the application says what is."""
    try:
        return comments.config.load()
    except comments.errors.Misconfigured:
        return None


_host = os.environ.get("HOST") or "127.0.0.1"  # noqa: TID251 - scripts/serve's own setting
_port = os.environ.get("PORT") or "8080"  # noqa: TID251 - same
bind = f"[{_host}]:{_port}" if ":" in _host else f"{_host}:{_port}"
workers = 2
threads = 8
worker_class = "server.worker.Worker"
_chosen = _settings()
preload_app = _chosen is None or _chosen.datastore == "embedded"
# Seconds a request may still take after SIGTERM or SIGINT.
graceful_timeout = 10
loglevel = "warning"
control_socket_disable = True

# mallopt's names for them, from glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_KEPT_MEMORY = 256 * 1024 * 1024  # bytes at the end of the heap that are not given back
_MAPPED = 1024 * 1024  # bytes; larger pieces are given back one by one
_FIRST_MEMORY = 4 * 1024 * 1024  # bytes of each worker, about what its first hundred pages take
_PIECE = 64 * 1024

# Connections of one address to one process. A browser opens six at most; a whole office or mobile
# network may share an address. Behind a proxy all readers do, so then there is no such limit.
_PER_PEER = 64

_PAUSE = 0.05
_STOPS = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
_STOP_SECONDS = 2.0  # well within graceful_timeout, on a busy machine too
_workers: "list[comments.jobs.background_worker.Worker]" = []
# Held for ever by the worker that has said where the product answers.
_said = multiprocessing.Lock()


def _limits(settings: comments.config.Settings | None) -> server.limits.Limits:
    if settings is None:
        return server.limits.Limits()
    is_open = not settings.trusted_proxies and not settings.on_app_engine
    return server.limits.Limits(
        largest_body=settings.max_body, per_peer=_PER_PEER if is_open else 0
    )


def _refusal(status: int) -> tuple[dict[str, str], bytes]:
    """Answer what is no request as the application answers what is wrong."""
    reason = server.refusals.REASONS[status]
    problem = comments.web.http.response_shapes.Problem(
        reason, status, f"http-{status}", reason.lower()
    )
    headers = {
        "Content-Type": comments.web.http.problems.CONTENT_TYPE,
        **comments.web.http.security_headers.unasked(),
    }
    return headers, msgspec.json.encode(problem)


def on_starting(_server: "Arbiter") -> None:
    """Keep memory that was used once, all threads' in one place, where the C library can be told.

    Otherwise what a request leaves is given back, and asked for again page by page by the next one:
    each page is a fault, and the faults of a first page take a tenth of its time. Other libraries
    than glibc have no mallopt and are left as they are.
    """
    with contextlib.suppress(AttributeError, OSError, TypeError):
        tell = ctypes.CDLL(None).mallopt
        tell(_ARENA_MAX, 1)
        tell(_TRIM_THRESHOLD, _KEPT_MEMORY)
        tell(_MMAP_THRESHOLD, _MAPPED)


def pre_fork(_server: "Arbiter", _worker: "server.worker.Worker") -> None:
    """Leave what is loaded by now out of every search for garbage: it stays.

    A search would touch it all, which ends that the workers share it, and would take as long as a
    hundred requests, perhaps of the first one.
    """
    gc.freeze()


def post_fork(server: "Arbiter", worker: "server.worker.Worker") -> None:
    """See that a stop ends this process from its first moment on.

    Until it has handlers of its own, it runs its parent's, which only put a signal in a queue that
    nobody reads here: the worker would never hear that it must stop, and be killed in the end.
    """
    worker.limits, worker.refusal = _limits(_chosen), _refusal
    for number in _STOPS:
        signal.signal(number, _leave)
    with contextlib.suppress(queue.Empty):
        while True:
            if server.SIG_QUEUE.get_nowait() in _STOPS:
                _leave()
    # Where each worker loads the application, one of them says which store it is.
    if worker.age > 1:
        logging.getLogger("flatthread").setLevel(logging.WARNING)


def post_worker_init(worker: "server.worker.Worker") -> None:
    """Read once as readers do, start the upkeep, and print the URL once a worker answers.

    Its socket is open by now, its loop is not.
    """
    comments.app.warm_up(worker.wsgi)
    _touch_memory()
    gc.freeze()  # where each worker loads the application, and what the reading has made
    address = worker.sockets[0].getsockname()[:2]
    announcing = (worker.wsgi, *address)
    threading.Thread(target=_announce, args=announcing, daemon=True).start()
    _workers.append(comments.app.start_worker(worker.wsgi))


def worker_exit(_server: object, _worker: "server.worker.Worker") -> None:
    """Let the upkeep end its step. What it leaves, the next process finds."""
    for each in _workers:
        each.stop(_STOP_SECONDS)


def _touch_memory() -> None:
    """Use some memory once, so that it is there for the first requests."""
    pieces = [bytearray(_PIECE) for _ in range(_FIRST_MEMORY // _PIECE)]
    pieces.clear()


def _leave(_number: int = 0, _frame: "FrameType | None" = None) -> None:
    # Not sys.exit: there is nothing to clean up yet, and it may hold copies of its parent's locks.
    os._exit(0)


def _announce(app: "flask.Flask", host: str, port: int) -> None:
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    while not _answers(shown, port):
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
    # On one machine, access to the data folder is ownership. Elsewhere a command makes the owner.
    if preload_app:
        _offer(app, url)


def _offer(app: "flask.Flask", url: str) -> None:
    """Say how somebody becomes the owner, while there was none."""
    try:
        offer = comments.app.offer_ownership(app, url)
    except (comments.errors.FlatthreadError, OSError) as error:
        sys.stderr.write(f"No link for a first owner could be made: {error}\n")
        return
    if offer is None:
        return
    sys.stderr.write(f"Nobody owns it yet. The link to own it is in {offer.file}\n")
    sys.stderr.flush()
    # A log is kept, copied and read by others, so the link itself is for a person's eyes only.
    terminal = next((each for each in (sys.stderr, sys.stdout) if each.isatty()), None)
    if terminal is not None:
        terminal.write(f"To own it, open this link once: {offer.link}\n")
        terminal.flush()


def _answers(host: str, port: int) -> bool:
    connection = http.client.HTTPConnection(host, port, timeout=5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
