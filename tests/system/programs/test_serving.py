"""With `flatthread serve`, a stop signal reaches every worker in any state.

The critical moments last only a few microseconds, so each test prolongs one of them in real
processes. gunicorn's log says which workers did not exit and were killed by a signal.
"""

import contextlib
import functools
import http.client
import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import programs, worker_examples

SETTINGS = programs.ROOT / "flatthread" / "serving.py"

# With these settings, a worker announces its start and needs a second to reach the hook.
BOOTING = """
import sys, time

kept = post_fork

def post_fork(server, worker):
    sys.stdout.write(f"forked {worker.age}\\n")
    sys.stdout.flush()
    time.sleep(1)
    kept(server, worker)
"""

# With these settings, a worker needs a second between resetting its signal handlers and setting its
# own.
RESETTING = """
import signal, sys, time

kept, change = post_fork, signal.signal

def post_fork(server, worker):
    def slow(number, handler):
        change(number, handler)
        if (number, handler) == (worker.SIGNALS[-1], signal.SIG_DFL):
            sys.stdout.write(f"reset {worker.age}\\n")
            sys.stdout.flush()
            time.sleep(1)

    kept(server, worker)
    signal.signal = slow
"""

# With these settings, a worker's main thread needs a second to pass a request to a different
# thread.
SUBMITTING = """
import sys, time

kept = post_worker_init

def post_worker_init(worker):
    kept(worker)
    put = worker.connections.hand_over

    def slow(connection):
        sys.stdout.write("submitting\\n")
        sys.stdout.flush()
        time.sleep(1)
        return put(connection)

    worker.connections.hand_over = slow
"""

# With these settings, the process that loads the application, and each worker before it accepts
# readers, report how many requests the application has answered.
READING = """
asked = []

def counted(app):
    application = app.wsgi_app

    def noting(environ, start_response):
        asked.append(environ["PATH_INFO"])
        return application(environ, start_response)

    app.wsgi_app = noting

def report(name):
    sys.stdout.write(f"{name} has answered {len(asked)}\\n")
    sys.stdout.flush()

ready, init, reading = when_ready, post_worker_init, comments.app.start_worker

def when_ready(server):
    if preload_app:
        counted(server.app.wsgi())
    ready(server)
    report("parent")

def post_worker_init(worker):
    if not preload_app:
        counted(worker.wsgi)
    init(worker)

def start_worker(app):
    report("worker")
    return reading(app)

comments.app.start_worker = start_worker
"""

# With these settings, workers have short limits for slow clients. The socket buffer is small, so
# even a short response waits for its client.
IMPATIENT = """
import socket

kept = post_fork

def post_fork(server, worker):
    kept(server, worker)
    worker.limits = worker.limits.but(head=2.0, body=2.0, answer=2.0)
    for each in worker.sockets:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
"""
SLOW = 24  # Clients of each kind; exceeds the number of threads
OPEN = dict.fromkeys(("POSTS_PER_NETWORK", "POSTS_PER_AUTHOR", "SAME_TEXTS", "FORM_SECONDS"), "0")
THREAD = "/api/v1/sites/demo/comments?thread=t"


def serving(tmp_path: Path, added: Any, **more: Any) -> Any:
    settings = tmp_path / "settings.py"
    settings.write_text(SETTINGS.read_text() + added)
    return programs.running(
        [
            programs.BIN / "python",
            "-m",
            "gunicorn",
            "--bind",
            "127.0.0.1:0",
            "--config",
            settings,
            "main:app",
        ],
        environ=programs.environment(
            FLATTHREAD_DATA=str(tmp_path / "data"), PROOF_OF_WORK="0", **more
        ),
    )


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with serving(tmp_path_factory.mktemp("service"), "") as program:
        yield program.wait_for(r"answers at (http://\S+)/")[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize(
    ("added", "moment"),
    [(BOOTING, "forked 2"), (RESETTING, "reset 2"), (SUBMITTING, "submitting")],
    ids=["boot", "reset", "submit"],
)
def test_a_stop_at_a_critical_moment_lets_every_worker_exit(
    tmp_path: Path, added: Any, moment: str, number: Any
) -> None:
    with serving(tmp_path, added) as program:
        program.wait_for(moment)
        program.process.send_signal(number)
        assert program.process.wait(programs.PATIENCE) == 0
    assert not [line for line in program.lines if "SIG" in line or "Traceback" in line]


def test_workers_that_share_the_application_share_what_it_read(tmp_path: Path) -> None:
    with serving(tmp_path, READING) as program:
        asked = program.wait_for(r"parent has answered (\d+)")[1]
        assert asked != "0"
        for _ in range(2):
            assert program.wait_for(r"worker has answered (\d+)")[1] == asked


def test_a_worker_with_its_own_application_reads_before_it_accepts_readers(tmp_path: Path) -> None:
    emulator: list[str | Path] = [
        programs.BIN / "python",
        "-m",
        "emulator",
        "--port",
        "0",
        "--in-memory",
    ]
    with programs.running(emulator, environ=programs.environment()) as store:
        host = store.wait_for(r"DATASTORE_EMULATOR_HOST=(\S+)")[1]
        named = {"DATASTORE_EMULATOR_HOST": host, "SECRET": "a secret of this test, long enough"}
        with serving(tmp_path, READING, **named) as program:
            assert program.wait_for(r"parent has answered (\d+)")[1] == "0"
            for _ in range(2):
                assert program.wait_for(r"worker has answered (\d+)")[1] != "0"


def test_a_service_with_a_public_name_answers_only_to_that_name(tmp_path: Path) -> None:
    with serving(tmp_path, "", PUBLIC_URL="https://comments.example/below") as program:
        said = r"answers at (http://\S+)/, for readers at https://comments\.example/below$"
        url = program.wait_for(said)[1]
        assert programs.fetch(f"{url}/healthz")[0] == 200
        assert programs.fetch(f"{url}/")[0] == 421
        assert programs.fetch(f"{url}/", Host="comments.example")[0] == 200


def test_no_header_of_a_local_peer_moves_the_application_or_causes_a_500(
    tmp_path: Path,
) -> None:
    """By default, gunicorn trusts SCRIPT_NAME and X-Forwarded-Proto from loopback."""
    with serving(tmp_path, "") as program:
        url = program.wait_for(r"answers at (http://\S+)/")[1]
        host, port = url.removeprefix("http://").split(":")
        plain = programs.fetch(f"{url}/api/v1/openapi.json")
        for name, value in (
            ("SCRIPT_NAME", "/api"),
            ("SCRIPT_NAME", "/evil"),
            ("Script-Name", "/api"),
            ("PATH_INFO", "/nothing"),
            ("X-Forwarded-Proto", "https"),
            ("X-Forwarded-Proto", "gopher"),
            ("X-Forwarded-Ssl", "on"),
            ("X-Forwarded-Prefix", "/api"),
        ):
            connection = http.client.HTTPConnection(host, int(port), timeout=programs.PATIENCE)
            connection.request("GET", "/api/v1/openapi.json", headers={name: value})
            answer = connection.getresponse()
            assert (answer.status, answer.read()) == plain, (name, value)
            connection.close()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_request_in_progress_is_answered(tmp_path: Path, number: Any) -> None:
    with serving(tmp_path, "loglevel = 'info'\n") as program:
        url = program.wait_for(r"answers at (http://\S+)/")[1]
        host, port = url.removeprefix("http://").split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=programs.PATIENCE)
        body = b'{"name": "Ada", "body": "sent slowly"}'
        connection.putrequest("POST", "/api/v1/sites/demo/comments?thread=t")
        connection.putheader("Content-Type", "application/json")
        connection.putheader("Content-Length", str(len(body)))
        connection.putheader("Idempotency-Key", "slow-request-0001")
        connection.putheader("Expect", "100-continue")
        connection.endheaders()
        # Wait until the request is in progress; the socket would lose a request that no worker has
        # accepted.
        taken = b"HTTP/1.1 100 Continue\r\n\r\n"
        assert connection.sock.recv(len(taken), socket.MSG_WAITALL) == taken
        connection.send(body[:10])
        program.process.send_signal(number)
        program.wait_for("Handling signal")
        connection.send(body[10:])
        with connection.getresponse() as answer:
            assert answer.status == 201
        connection.close()
        assert program.process.wait(programs.PATIENCE) == 0


def post(url: str, text: str, key: str) -> Any:
    return programs.fetch(
        f"{url}{THREAD}",
        method="POST",
        body=json.dumps({"name": "Ada", "body": text}).encode(),
        content_type="application/json",
        idempotency_key=key,
    )[0]


def opened(url: str, sent: Any) -> Any:
    """Open a connection that sends some bytes and then neither sends nor reads anything."""
    host, port = url.removeprefix("http://").split(":")
    made = socket.socket()
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    made.settimeout(programs.PATIENCE)
    made.connect((host, int(port)))
    made.sendall(sent)
    return made


def until_closed(connection: Any) -> Any:
    """Read from a connection until it ends, with or without a reset."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while data := connection.recv(65_536):
            found += data
    return found


def test_slow_clients_block_no_others_and_are_disconnected(tmp_path: Path) -> None:
    head = f"GET {THREAD} HTTP/1.1\r\nHost: h\r\n".encode()
    length = b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    kinds = {
        "a head": head,
        "a body": head.replace(b"GET", b"POST") + length,
        "a reader": head + b"\r\n",
    }
    with serving(tmp_path, IMPATIENT, **OPEN) as program, contextlib.ExitStack() as stack:
        url = program.wait_for(r"answers at (http://\S+)/")[1]
        # Store a thread that is too large for the kernel's buffers while the client does not read.
        for number in range(30):
            assert post(url, f"{number} " + "word " * 1_900, f"long-comment-{number:04}") == 201
        slow = {
            kind: [stack.enter_context(opened(url, sent)) for _ in range(SLOW)]
            for kind, sent in kinds.items()
        }
        for number in range(10):
            assert programs.fetch(f"{url}{THREAD}&limit=1")[0] == 200
            assert post(url, f"short {number}", f"short-comment-{number:04}") == 201
        for kind in ("a head", "a body"):
            for each in slow[kind]:
                assert until_closed(each).startswith(b"HTTP/1.1 408 Request Timeout\r\n"), kind
        whole = len(programs.fetch(f"{url}{THREAD}")[1])
        for each in slow["a reader"]:
            programs.wait_until(
                functools.partial(worker_examples.is_reset, each),
                "the end of an answer that nobody reads",
            )
            assert len(until_closed(each)) < whole
        assert program.stop() == 0


@pytest.mark.parametrize("size", [b"zz", b"+c", b"_1", b"", b"0x1"])
def test_a_malformed_chunk_size_is_a_bad_request(service: Any, size: bytes) -> None:
    head = f"POST {THREAD} HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n".encode()
    sent = head + b"Transfer-Encoding: chunked\r\n\r\n" + size + b"\r\n{}\r\n0\r\n\r\n"
    with opened(service, sent) as connection:
        found, _, body = until_closed(connection).partition(b"\r\n\r\n")
    assert found.startswith(b"HTTP/1.1 400 ")
    assert b"Content-Type: application/problem+json" in found
    assert b"Access-Control-Allow-Origin: *" in found
    assert json.loads(body)["code"] == "http-400"


def test_a_crashed_worker_logs_its_stack_and_is_replaced(
    tmp_path: Path,
) -> None:
    with serving(tmp_path, "") as program:
        url = program.wait_for(r"answers at (http://\S+)/")[1]
        # Python cannot dump the stack of a thread that runs, and this line follows a commit.
        program.wait_for("There is no owner yet")
        task = Path(f"/proc/{program.process.pid}/task/{program.process.pid}/children")
        first = task.read_text().split()
        os.kill(int(first[0]), signal.SIGSEGV)
        program.wait_for("Fatal Python error: Segmentation fault")
        program.wait_for("in run_forever")  # A line of the main thread's stack
        program.wait_for("was sent SIGSEGV")
        programs.wait_until(lambda: set(task.read_text().split()) - set(first), "another worker")
        assert programs.fetch(f"{url}/healthz")[0] == 200
        assert program.stop() == 0
