"""The gunicorn worker: a loop that reads and writes, and threads that answer.

A thread of gunicorn's own threaded worker waits for its client: for the rest of a body, and until
the client has accepted the answer. A few slow clients, one per thread, therefore block the whole
worker. Here, the loop reads a complete request, a thread runs the application and passes to the
kernel as much as it accepts at once, and the loop sends the rest. docs/server.md compares the
servers that were measured.

Invariants:

1. A thread never waits for a client: it gets only complete requests, and its sockets do not block.
2. The worker finishes its current requests, no matter how it is told to stop.

gunicorn's settings for HTTP/2, access logs, `pre_request`, `post_request` and `worker_connections`
have no effect; those for TLS are refused.
"""

import faulthandler
import http
import os
import queue
import resource
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

from gunicorn.errors import ConfigError  # type: ignore[import-untyped]
from gunicorn.workers import base  # type: ignore[import-untyped]

from server import answers, connection_counts, environs, heads, limits, loop, refusals
from server.connections import Connection, Phase

if TYPE_CHECKING:
    from types import FrameType

_OTHER_FILES = 128  # files that a process may have open besides its connections
# gunicorn imports this module before it forks the workers, so all of them share the counts.
_COUNTS = connection_counts.ConnectionCounts()
_FINISHING = 0.8  # the share of the graceful time-out for clients; the rest is for gunicorn's hooks
_INVALID = "Invalid request from ip=%s: %s"


class Worker(base.Worker):  # type: ignore[misc]
    """One process: its main thread runs the loop, and `cfg.threads` other threads answer.

    Attributes:
        limits: how long to wait for clients. Set them before `load_wsgi`.
        refusal: returns headers and body of the answer to a malformed request.
    """

    limits = limits.Limits()
    refusal = staticmethod(refusals.problem)

    @classmethod
    def check_config(cls, cfg: Any, _log: Any) -> None:
        """Refuse a setting that would be ignored.

        Raises:
            ConfigError: TLS is configured.
        """
        if cfg.is_ssl:
            raise ConfigError("This server does not support TLS: use a proxy that terminates TLS.")

    def init_signals(self) -> None:
        """Dump the threads' stacks if a fault or gunicorn's hang detection kills the process.

        gunicorn resets all handlers before it sets its own. A signal between the two would kill the
        process, and gunicorn would log that as a crash. Signals therefore wait.
        """
        before = signal.pthread_sigmask(signal.SIG_BLOCK, self.SIGNALS)
        try:
            super().init_signals()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        faulthandler.enable()

    def handle_quit(self, sig: int, frame: "FrameType | None") -> None:
        """Stop as on SIGTERM: gunicorn's quick stop leaves requests unanswered."""
        self.handle_exit(sig, frame)

    def load_wsgi(self) -> None:
        """Load the application and start the threads that run it."""
        super().load_wsgi()
        self._keepalive, self._processes = self.cfg.keepalive, self.cfg.workers
        self._ready: queue.SimpleQueue[Connection | None] = queue.SimpleQueue()
        self._loop = loop.Loop(
            heads.settings(self.cfg),
            _possible(self.limits),
            self.PIPE,
            self._ready.put,
            self._refusal,
            _COUNTS.of(self.age),
        )
        self._threads = [
            threading.Thread(target=self._answer_all, name=f"answers-{number}")
            for number in range(self.cfg.threads)
        ]
        for thread in self._threads:
            thread.start()

    def run(self) -> None:
        """Serve until a signal arrives or the parent process is gone."""
        for listener in self.sockets:
            self._loop.listen(listener)
        while self.alive and self.ppid == os.getppid():
            self._turn()
        self._stop()

    def _turn(self) -> None:
        if self._loop.turn():
            self.notify()

    def _stop(self) -> None:
        for listener in self.sockets:
            self._loop.deafen(listener)
            listener.close()
        end = time.monotonic() + self.cfg.graceful_timeout * _FINISHING
        while len(self._loop) and time.monotonic() < end:
            # The client of a kept connection may be about to send a request; closing now would lose
            # it.
            self._loop.hurry(self.limits.linger)
            self._turn()
        for _ in self._threads:
            self._ready.put(None)
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        self._loop.close()

    def _answer_all(self) -> None:
        while (connection := self._ready.get()) is not None:
            try:
                self._answer(connection)
            except OSError:  # the client is gone
                connection.drop_unsent()
                connection.is_kept = False
                self._loop.returned(connection)

    def _answer(self, connection: Connection) -> None:
        parts = self._parts(connection)
        connection.finish_request()
        connection.send(parts)
        self.nr += 1
        if self.nr >= self.max_requests:
            self.alive = False
        if connection.unsent or connection.buffer or not connection.is_kept:
            self._loop.returned(connection)
            return
        # In this usual case, the loop need not be woken.
        with connection.lock:
            is_early = connection.is_early
            if not is_early:
                connection.begin(Phase.IDLE, time.monotonic(), self._keepalive)
        if is_early:
            self._loop.returned(connection)

    def _parts(self, connection: Connection) -> answers.Parts:
        request = connection.request
        environ = environs.environ(connection, self._processes)
        can_keep = self._keepalive and not connection.is_unread and not request.should_close()
        try:
            parts, connection.is_kept = answers.answer(
                self.wsgi, environ, lambda: bool(can_keep and self.alive)
            )
        except BaseException:
            # Also on SystemExit: this is the end of one request, not of the thread.
            self.log.exception("Error handling request %s %s", request.method, request.uri)
            connection.is_kept = False
            return [self._refusal(http.HTTPStatus.INTERNAL_SERVER_ERROR)]
        return parts

    def _refusal(self, reason: Exception | int) -> bytes:
        if isinstance(reason, Exception):
            self.log.warning(_INVALID, "", reason)
            reason = refusals.status_of(reason)
        return refusals.message(reason, *self.refusal(reason))


def _possible(bounds: limits.Limits) -> limits.Limits:
    """Return the limits, with connections reduced to fit this process's open-file limit."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return bounds
    return bounds.but(connections=max(1, min(bounds.connections, files - _OTHER_FILES)))
