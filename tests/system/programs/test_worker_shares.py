"""The processes of `flatthread serve` share connections evenly, also after one of them dies."""

import contextlib
import http.client
import os
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support import forked_programs, programs
from tests.system.programs.test_serving import serving

CLIENTS = 8

# With these settings, each answer names its process, and each process reports when it accepts
# connections. Old counts are believed, because on a busy machine a process may do everything late.
# No process connects to itself.
NAMING = """
import os
import server.connection_counts

server.connection_counts.FRESH = {fresh}
keepalive = 60
kept_fork, kept_init = post_fork, post_worker_init

def post_fork(server, worker):
    kept_fork(server, worker)
    worker.limits = worker.limits.but(head=60.0)

def _announce(*_):
    pass

def post_worker_init(worker):
    kept_init(worker)
    application, listen = worker.wsgi.wsgi_app, worker._listen

    def naming(environ, start_response):
        def start(status, headers, *rest):
            return start_response(status, [*headers, ("X-Process", str(os.getpid()))], *rest)
        return application(environ, start)

    def telling(listener):
        listen(listener)
        sys.stdout.write(f"accepts at {{listener.getsockname()[1]}}\\n")
        sys.stdout.flush()

    worker.wsgi.wsgi_app, worker._listen = naming, telling
"""


class Clients:
    """Connections that stay open."""

    def __init__(self, stack: contextlib.ExitStack, port: int) -> None:
        self._stack, self._port = stack, port

    def connect(self, count: int) -> list[http.client.HTTPConnection]:
        """Open connections one directly after another, without a request."""
        opened = []
        for _ in range(count):
            made = http.client.HTTPConnection("127.0.0.1", self._port, timeout=programs.PATIENCE)
            made.connect()
            opened.append(self._stack.enter_context(contextlib.closing(made)))
        return opened


def port_of_two_processes(program: programs.Program) -> int:
    """Wait until two processes accept connections."""
    program.wait_for("accepts at")
    return int(program.wait_for(r"accepts at (\d+)")[1])


def has_gone_silent(process: int) -> bool:
    """Return whether a process has ended or is stopped."""
    try:
        return forked_programs.is_stopped(process)
    except (FileNotFoundError, ProcessLookupError):  # It ended before the open or the read.
        return True


def processes(connections: list[http.client.HTTPConnection]) -> Counter[int]:
    """Return how many of the connections each process serves."""

    def process(connection: Any) -> int:
        connection.request("GET", "/healthz")
        answer = connection.getresponse()
        answer.read()
        return int(answer.headers["X-Process"])

    return Counter(map(process, connections))


def test_two_processes_share_connections_evenly_also_after_a_kill(tmp_path: Path) -> None:
    with (
        serving(tmp_path, NAMING.format(fresh=3_600.0)) as program,
        contextlib.ExitStack() as stack,
    ):
        clients = Clients(stack, port_of_two_processes(program))
        shares = processes(clients.connect(CLIENTS))
        assert sorted(shares.values()) == [CLIENTS // 2] * 2
        killed = min(shares)
        os.kill(killed, signal.SIGKILL)
        program.wait_for("accepts at")
        more = processes(clients.connect(CLIENTS // 2))
        assert list(more.values()) == [CLIENTS // 2]
        assert more.keys().isdisjoint(shares)  # All of them go to the new process.


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_connections_are_not_left_to_a_process_that_does_not_respond(
    tmp_path: Path, number: int
) -> None:
    with serving(tmp_path, NAMING.format(fresh=1.0)) as program, contextlib.ExitStack() as stack:
        clients = Clients(stack, port_of_two_processes(program))
        (process,) = processes(clients.connect(1))
        children = Path(f"/proc/{program.process.pid}/task/{program.process.pid}/children")
        workers = set(map(int, children.read_text(encoding="ascii").split()))
        (other,) = workers - {process}
        os.kill(other, number)
        programs.wait_until(lambda: has_gone_silent(other), "the signal takes effect")
        try:
            found = processes(clients.connect(CLIENTS))
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(other, signal.SIGCONT)
        assert other not in found
        assert found.total() == CLIENTS
