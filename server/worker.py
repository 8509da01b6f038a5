"""The gunicorn worker: asyncio's loop reads and writes, and threads answer.

In gunicorn's own threaded worker, a thread waits for its client: for the rest of a body, and until
the client has accepted the answer. A few slow clients, one per thread, therefore block the whole
worker. docs/server.md compares the servers that were measured.

gunicorn's settings for HTTP/2, access logs, `pre_request`, `post_request` and `worker_connections`
have no effect; those for TLS are refused.
"""

import asyncio
import contextlib
import faulthandler
import os
import queue
import resource
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from gunicorn.errors import ConfigError  # type: ignore[import-untyped]
from gunicorn.workers import base  # type: ignore[import-untyped]

from server import answers, connection_counts, limits, refusals
from server.connections import Connection, Connections

if TYPE_CHECKING:
    from types import FrameType

_TICK = 0.25  # Seconds between two checks of the deadlines
_PAUSE = 0.001  # Seconds for which a connection is left to processes with fewer connections
_OTHER_FILES = 128  # Number of files that a process may open besides its connections
# gunicorn imports this module before it forks the workers, so all of them share the counts.
_COUNTS = connection_counts.ConnectionCounts()
_INVALID = "Invalid request from ip=%s: %r"
_FINISHING = 0.8  # Share of the graceful timeout for clients; the rest is for gunicorn's hooks


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

        gunicorn resets all handlers before it sets its own. A signal between these two steps would
        kill the process, and gunicorn would log that as a crash. Signals are therefore blocked
        until both steps are done.
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
        self.ready: queue.SimpleQueue[Connection | None] = queue.SimpleQueue()
        self.connections = Connections(
            _possible(self.limits), self.cfg.keepalive, self.ready.put, self._refuse
        )
        self._threads = [
            threading.Thread(target=self._answer_all, name=f"answers-{number}")
            for number in range(self.cfg.threads)
        ]
        for thread in self._threads:
            thread.start()

    def run(self) -> None:
        """Serve until a signal arrives or the parent process is gone."""
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._opening: dict[Connection, asyncio.Task[Any]] = {}
        self._count = _COUNTS.of(self.age)
        self.connections.changed = self._publish
        for listener in self.sockets:
            self._listen(listener)
        while self.alive and self.ppid == os.getppid():
            await self._tick()
        await self._stop()

    async def _tick(self) -> None:
        self.notify()
        self.connections.expire()
        self._publish()
        await asyncio.sleep(_TICK)

    async def _stop(self) -> None:
        self.alive = False
        for listener in self.sockets:
            self._loop.remove_reader(listener.fileno())
            listener.close()
        self._count.remove()
        await asyncio.gather(*self._opening.values(), return_exceptions=True)
        end = time.monotonic() + self.cfg.graceful_timeout * _FINISHING
        while self.connections.open and time.monotonic() < end:
            # The client of a kept connection may be about to send a request; closing now would lose
            # it.
            for connection in self.connections.open:
                connection.hurry()
            await self._tick()
        for _ in self._threads:
            self.ready.put(None)
        for thread in self._threads:
            thread.join(max(0.0, end - time.monotonic()))
        for connection in [*self.connections.open]:
            connection.end()

    # Accepting connections.

    def _listen(self, listener: Any) -> None:
        listener.settimeout(0.0)
        if listener.family != socket.AF_UNIX and hasattr(socket, "TCP_USER_TIMEOUT"):
            # After this time, the kernel also drops the unsent data of a closed connection.
            patience = int(self.limits.answer * 1_000)
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, patience)
        self._watch(listener)

    def _watch(self, listener: Any) -> None:
        if self.alive:
            self._publish()
            self._loop.add_reader(listener.fileno(), self._accept, listener)

    def _publish(self) -> None:
        if self.alive:
            self._count.write(self._number(), time.monotonic())

    def _number(self) -> int:
        opened = self.connections.open
        return len(opened) + sum(connection not in opened for connection in self._opening)

    def _accept(self, listener: Any) -> None:
        if self._count.is_above_others(self._number(), time.monotonic()):
            self._loop.remove_reader(listener.fileno())
            self._loop.call_later(_PAUSE, self._watch, listener)
            return
        try:
            accepted, client = listener.accept()
        except BlockingIOError:
            return
        except OSError:  # The client is gone, or there are no more files
            self.connections.make_room(self.connections.open)
            return
        accepted.settimeout(0.0)
        connection = Connection(self.connections, client)
        opening = self._loop.connect_accepted_socket(lambda: connection, accepted)
        task = self._loop.create_task(opening)
        self._opening[connection] = task
        task.add_done_callback(lambda _: self._opening.pop(connection))
        self._publish()

    # Answering requests.

    def _refuse(self, status: int, why: object) -> bytes:
        """Log a refusal; return the answer."""
        self.log.warning(_INVALID, "", why)
        return refusals.message(status, *self.refusal(status))

    def _answer_all(self) -> None:
        while (connection := self.ready.get()) is not None:
            with contextlib.suppress(RuntimeError):  # The loop has ended
                self._loop.call_soon_threadsafe(connection.answer, self._answer(connection))

    def _answer(self, connection: Connection) -> answers.Answer:
        request = connection.request
        self.nr += 1
        if self.nr >= self.max_requests:
            self.alive = False
        can_keep = self.cfg.keepalive and not connection.is_cut and request.should_keep_alive
        try:
            asked = answers.environ(request, connection.body, connection.client, connection.address)
            return answers.run(self.wsgi, asked, lambda: bool(can_keep and self.alive))
        except BaseException:
            # Catch SystemExit too, because it ends only this request and not the thread.
            named = (request.method + b" " + request.path).decode("latin-1")
            self.log.exception("Error handling request %s", named)
            return answers.Answer(refusals.message(500, *self.refusal(500)), (), is_kept=False)


def _possible(bounds: limits.Limits) -> limits.Limits:
    """Return the limits, with connections reduced to fit this process's open-file limit."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY:
        return bounds
    return bounds.but(connections=max(1, min(bounds.connections, files - _OTHER_FILES)))
