"""Test server.worker: it calls the application once per valid request and waits for no client."""

import contextlib
import errno
import resource
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gunicorn.config import Config  # type: ignore[import-untyped]
from gunicorn.errors import ConfigError  # type: ignore[import-untyped]

from server import limits, loop, worker
from tests.support import worker_process

HELLO = b"GET /a%20b?c=d HTTP/1.1\r\nHost: h\r\n\r\n"
LAST = b"GET /last HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
POST = b"POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%b"
CHUNKED = b"POST /p HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
THREADS = 2  # the default of `worker_process.serving`


class Echo:
    """An application that echoes each request in its response and remembers the request."""

    def __init__(self) -> None:
        self.asked = []

    def __call__(self, environ: Any, start_response: Any) -> Any:
        body = environ["wsgi.input"].read()
        self.asked.append((environ["REQUEST_METHOD"], environ["PATH_INFO"], body))
        start_response("200 OK", [("Content-Type", "text/plain")])
        return [environ["PATH_INFO"].encode(), b" ", body]


class Gate:
    """An application that does not respond until the test opens the gate."""

    def __init__(self) -> None:
        self.entered = threading.Semaphore(0)
        self.opened = threading.Event()

    def __call__(self, _environ: Any, start_response: Any) -> list[bytes]:
        self.entered.release()
        assert self.opened.wait(worker_process.PATIENCE)
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]


def large(environ: Any, start_response: Any) -> list[bytes]:
    start_response("200 OK", [("Content-Length", str(8_000_000))])
    return [b"x" * 4_000_000, b"y" * 4_000_000]  # new objects for each request


def quick(**others: Any) -> Any:
    """Limits that soon disconnect slow clients but no other clients."""
    return limits.Limits(**{"head": 0.6, "body": 0.6, "answer": 0.6, "linger": 0.2} | others)


def is_reset(connection: Any) -> bool:
    return connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) != 0


def answered(slow: Any) -> Any:
    """Return the body that a client receives if it does not start reading before this call."""
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    return worker_process.answer(slow)[1]


def reads_nothing(served: Any, request: bytes) -> Any:
    """Return a client that sends a request and reads nothing."""
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    slow.settimeout(worker_process.PATIENCE)
    slow.connect(served.address)
    slow.sendall(request)
    return slow


class TestRequests:
    def test_several_requests_are_answered_on_one_connection(self) -> None:
        echo = Echo()
        with worker_process.serving(echo) as served, served.connect() as connection:
            for number in range(3):
                connection.sendall(POST % (1, b"%d" % number))
                head, body = worker_process.answer(connection)
                assert head.startswith(b"HTTP/1.1 200 OK\r\n")
                assert b"Connection: keep-alive\r\n" in head
                assert body == b"/p %d" % number

    def test_pipelined_requests_are_answered_in_order(self) -> None:
        with worker_process.serving(Echo()) as served:
            found = served.ask(HELLO + POST % (3, b"abc") + CHUNKED + b"1\r\nx\r\n0\r\n\r\n" + LAST)
        bodies = [part.partition(b"\r\n\r\n")[2] for part in found.split(b"HTTP/1.1 200 OK")[1:]]
        assert bodies == [b"/a b ", b"/p abc", b"/p x", b"/last "]

    def test_a_request_sent_byte_by_byte_is_answered(self) -> None:
        with worker_process.serving(Echo()) as served, served.connect() as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for byte in CHUNKED + b"3;a=b\r\nabc\r\n0\r\nX-Sum: 1\r\n\r\n":
                connection.sendall(bytes([byte]))
            assert worker_process.answer(connection)[1] == b"/p abc"

    def test_a_client_that_closes_its_sending_side_is_answered(self) -> None:
        with worker_process.serving(Echo()) as served, served.connect() as connection:
            connection.sendall(HELLO)
            connection.shutdown(socket.SHUT_WR)
            assert worker_process.rest(connection).endswith(b"/a b ")

    @pytest.mark.parametrize(
        ("request_", "is_kept"),
        [
            (LAST, False),
            (b"GET / HTTP/1.0\r\n\r\n", False),
            (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", True),
            (HELLO, True),
        ],
    )
    def test_a_connection_stays_open_if_the_client_asks_for_it(
        self, request_: bytes, is_kept: bool
    ) -> None:
        with worker_process.serving(Echo(), keepalive=20) as served, served.connect() as connection:
            connection.sendall(request_)
            head, _ = worker_process.answer(connection)
            assert (b"Connection: keep-alive" in head) == is_kept
            assert head.startswith(request_.split(b"\r\n")[0].rpartition(b" ")[2] + b" 200 OK")
            if is_kept:
                connection.sendall(LAST)
                assert worker_process.answer(connection)[1] == b"/last "
            assert worker_process.rest(connection) == b""

    def test_an_idle_connection_is_closed_without_a_response(self) -> None:
        with worker_process.serving(Echo(), keepalive=1) as served, served.connect() as connection:
            connection.sendall(HELLO)
            worker_process.answer(connection)
            assert worker_process.rest(connection) == b""
        with (
            worker_process.serving(Echo(), bounds=quick()) as served,
            served.connect() as connection,
        ):
            assert worker_process.rest(connection) == b""

    def test_a_client_that_expects_100_continue_gets_it(self) -> None:
        expecting = POST.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n")
        bounds = limits.Limits(largest_body=10)
        with (
            worker_process.serving(Echo(), bounds=bounds) as served,
            served.connect() as connection,
        ):
            connection.sendall(expecting % (3, b""))
            invited = b"HTTP/1.1 100 Continue\r\n\r\n"
            assert connection.recv(len(invited), socket.MSG_WAITALL) == invited
            connection.sendall(b"abc")
            assert worker_process.answer(connection)[1] == b"/p abc"
            connection.sendall(expecting % (3, b"abc"))  # the client does not wait for 100 Continue
            assert worker_process.answer(connection)[1] == b"/p abc"
            assert served.ask(expecting % (11, b"")).startswith(b"HTTP/1.1 200 OK\r\n")

    @pytest.mark.parametrize("sent", [POST % (12, b"x" * 12), CHUNKED + b"c\r\n" + b"x" * 12])
    def test_the_application_sees_that_a_body_is_too_long(self, sent: bytes) -> None:
        echo = Echo()
        with worker_process.serving(echo, bounds=limits.Limits(largest_body=10)) as served:
            found = served.ask(sent)
        assert b"Connection: close" in found
        ((_, _, body),) = echo.asked
        # The application gets no bytes of a body with a declared length and, of a chunked body, one
        # byte more than the limit.
        assert body == (b"" if b"Content-Length" in sent else b"x" * 11)

    def test_an_application_gets_the_path_bytes_and_no_script_name(self) -> None:
        def told(environ: Any, start_response: Any) -> list[bytes]:
            start_response("200 OK", [])
            keys = ("PATH_INFO", "RAW_URI", "QUERY_STRING", "SCRIPT_NAME", "wsgi.url_scheme",
                    "REMOTE_ADDR", "SERVER_NAME", "HTTP_X_A", "HTTP_SCRIPT_NAME",
                    "CONTENT_LENGTH", "wsgi.multithread", "wsgi.multiprocess")  # fmt: skip
            return [repr([environ.get(key) for key in keys]).encode()]

        sent = (
            b"GET /%C3%A4/b%2Fc?x=%20 HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nX-A: 2\r\n"
            b"SCRIPT_NAME: /evil\r\nX-Forwarded-Proto: https\r\nConnection: close\r\n\r\n"
        )
        with worker_process.serving(told) as served:
            body = served.ask(sent).partition(b"\r\n\r\n")[2].decode()
        assert body == repr(
            ["/\xc3\xa4/b/c", "/%C3%A4/b%2Fc?x=%20", "x=%20", "", "http", "127.0.0.1", "127.0.0.1",
             "1,2", None, None, True, False]
        )  # fmt: skip

    def test_a_unix_socket_is_supported(self, tmp_path: Path) -> None:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        with worker_process.serving(Echo(), listener=listener) as served:
            assert served.ask(LAST).endswith(b"/last ")

    def test_a_worker_ends_after_max_requests(self) -> None:
        with worker_process.serving(Echo(), max_requests=2) as served:
            assert b"keep-alive" in served.ask(HELLO + HELLO)
            served.stop()


BAD_SIZES = (
    b"zz", b"+c", b"_1", b"-1", b"0x1", b"", b" 1", b"1 ", b"1_0", b"1g", b"\xb2", b"1" * 17,
    b"1\n", b"1;=x", b"1;a\x00", b'1;a="b', b"c\r",
)  # fmt: skip
NO_REQUESTS = (
    (POST % (1, b""))[:-2] + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    CHUNKED[:-2] + b"Content-Length: 5\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\na",
    b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\na",
    b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\na",
    b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    b"POST / HTTP/1.0\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: h\r\nX-A: b\r\n c\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: h\r\nX\x00A: b\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: h\r\nX-A: b\rc\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: h\r\nHost: i\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: h\nX-A: b\r\n\r\n",
    b"GET / HTTP/1.1\nHost: h\n\n",
    b"GET /\xff HTTP/1.1\r\nHost: h\r\n\r\n",
    b"GET  / HTTP/1.1\r\nHost: h\r\n\r\n",
    b"\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
    b"\x16\x03\x01\x00",
    CHUNKED + b"1\r\nab\r\n0\r\n\r\n",
    CHUNKED + b"1\r\na\n0\r\n\r\n",
    CHUNKED + b"0\r\nX : a\r\n\r\n",
    CHUNKED + b"0\r\nContent-Length: 3\r\n\r\n",
    CHUNKED + b"0\r\nX: a\nY: b\r\n\r\n",
    CHUNKED + b"0\r\n" + b"X: a\r\n" * 2_000 + b"\r\n",
    b"GET /" + b"a" * 40_000,
    b"GET / HTTP/1.1\r\nHost: h\r\n" + b"X: a\r\n" * 150 + b"\r\n",
    b"GET / HTTP/1.1\r\nHost: h\r\nX: " + b"a" * 10_000 + b"\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: h\r\n" + (b"X: " + b"a" * 5_000 + b"\r\n") * 7 + b"\r\n",
    b"GET / HTTP/1.1\r\nHost: h\r\nExpect: nothing\r\n\r\n",
)  # fmt: skip


class TestRefusals:
    @pytest.fixture(scope="class")
    @classmethod
    def service(cls) -> Iterator[Any]:
        echo = Echo()
        with worker_process.serving(echo) as served:
            yield served, echo

    @pytest.mark.parametrize("size", BAD_SIZES)
    def test_a_chunk_whose_size_is_malformed_is_refused(self, service: Any, size: bytes) -> None:
        served, echo = service
        found = served.ask(CHUNKED + size + b"\r\n" + b"x" * 12 + b"\r\n0\r\n\r\n" + LAST)
        assert found.startswith(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n")
        assert found.count(b"HTTP/1.1") == 1
        assert echo.asked == []

    @pytest.mark.parametrize("sent", NO_REQUESTS, ids=range(len(NO_REQUESTS)))
    def test_an_invalid_or_ambiguous_request_reaches_no_application(
        self, service: Any, sent: bytes
    ) -> None:
        served, echo = service
        found = served.ask(sent + LAST)
        status = int(found.split()[1])
        assert status in {400, 414, 417, 431, 501}
        assert found.count(b"HTTP/1.1") == 1
        assert b'"status": %d' % status in found
        assert echo.asked == []

    @pytest.mark.parametrize(
        ("sent", "status"),
        [
            (b"\x16\x03\x01\x00", 400),
            (b"GET / HTTP/1.1\nHost: h", 400),
            (b"GET /" + b"a" * 40_000, 414),
            (b"GET / HTTP/1.1\r\nX: " + b"a" * 40_000, 431),
            (b"GET / HTTP/1.1\r\n" + b"X: a\r\n" * 6_000, 431),
            (b"\r\n\r\n\r\n", 400),
            (CHUNKED + b"1\nx", 400),
            (CHUNKED + b"0\r\n" + b"X: a\r\n" * 6_000, 431),
        ],
        ids=range(8),
    )
    def test_a_hopeless_request_is_refused_before_its_end(
        self, service: Any, sent: bytes, status: int
    ) -> None:
        assert service[0].ask(sent).startswith(b"HTTP/1.1 %d " % status)
        assert service[1].asked == []

    def test_a_client_that_keeps_sending_can_read_the_refusal(self, service: Any) -> None:
        served, _ = service
        with served.connect() as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost : h\r\n\r\n")
            assert worker_process.answer(connection)[0].startswith(b"HTTP/1.1 400")
            for _ in range(10):
                connection.sendall(b"x" * 10_000)
            assert worker_process.rest(connection) == b""


class TestSlowClients:
    KINDS = ("head", "body", "chunks", "reader", "invited")

    def slow(self, served: Any, kind: Any) -> Any:
        if kind == "reader":
            return reads_nothing(served, b"GET /large HTTP/1.1\r\nHost: h\r\n\r\n")
        connection = served.connect()
        connection.sendall({
            "head": b"GET / HTTP/1.1\r\nHost: h\r\nX-",
            "body": POST % (100, b"half"),
            "chunks": CHUNKED + b"64\r\nhalf",
            "invited": POST.replace(b"\r\n\r\n", b"\r\nExpect: 100-continue\r\n\r\n") % (9, b""),
        }[kind])  # fmt: skip
        return connection

    def application(self, environ: Any, start_response: Any) -> Any:
        if environ["PATH_INFO"] == "/large":
            return large(environ, start_response)
        start_response("200 OK", [("Content-Length", "4")])
        return [b"fast"]

    @pytest.mark.parametrize("kind", KINDS)
    def test_others_are_served_while_many_are_slow_and_slow_ones_are_closed(
        self, kind: Any
    ) -> None:
        bounds = quick(head=1.0, body=1.0, answer=1.0)
        with (
            worker_process.serving(self.application, bounds=bounds) as served,
            contextlib.ExitStack() as stack,
        ):
            many = [stack.enter_context(self.slow(served, kind)) for _ in range(THREADS * 8)]
            for _ in range(20):
                assert served.ask(LAST).endswith(b"fast")
            if kind == "reader":
                # The connection ends with a reset, which only an explicit check detects.
                for each in many:
                    worker_process.wait_until(lambda each=each: is_reset(each))  # type: ignore[misc]
                return
            found = [worker_process.rest(each) for each in many]
            assert all(b"HTTP/1.1 408 Request Timeout\r\n" in each for each in found)

    @pytest.mark.parametrize("kind", ["head", "body", "chunks"])
    def test_a_steady_trickle_of_bytes_does_not_extend_the_deadline(self, kind: str) -> None:
        with (
            worker_process.serving(self.application, bounds=quick()) as served,
            self.slow(served, kind) as connection,
        ):
            connection.settimeout(0.02)
            found = b""
            end = time.monotonic() + worker_process.PATIENCE
            while time.monotonic() < end and not found:
                connection.send(b"a")
                with contextlib.suppress(TimeoutError):
                    found = connection.recv(100)
        assert found.startswith(b"HTTP/1.1 408")

    def test_the_next_head_of_a_connection_has_a_deadline_too(self) -> None:
        with (
            worker_process.serving(Echo(), bounds=quick(), keepalive=60) as served,
            served.connect() as connection,
        ):
            connection.sendall(HELLO + b"GET ")
            assert worker_process.answer(connection)[1] == b"/a b "
            assert worker_process.rest(connection).startswith(b"HTTP/1.1 408")

    def test_a_response_read_too_slowly_is_ended_even_with_steady_reads(
        self,
    ) -> None:
        bounds = quick(answer=1.0, rate=100_000_000)
        with (
            worker_process.serving(self.application, bounds=bounds) as served,
            self.slow(served, "reader") as connection,
        ):
            taken, pause = 0, threading.Event()
            with contextlib.suppress(ConnectionResetError):
                while data := connection.recv(2_048):
                    taken += len(data)
                    pause.wait(0.002)
        assert taken < 8_000_000

    def test_a_client_that_reads_in_time_gets_the_whole_response(self) -> None:
        with (
            worker_process.serving(self.application, keepalive=20) as served,
            self.slow(served, "reader") as connection,
        ):
            assert answered(connection) == b"x" * 4_000_000 + b"y" * 4_000_000
            connection.sendall(LAST)
            assert worker_process.rest(connection).endswith(b"fast")

    def test_pending_responses_are_limited_in_bytes(self) -> None:
        bounds = limits.Limits(unsent=10_000_000)
        with (
            worker_process.serving(self.application, bounds=bounds) as served,
            contextlib.ExitStack() as s,
        ):
            many = [s.enter_context(self.slow(served, "reader")) for _ in range(6)]
            ended = set()

            def all_but_one() -> bool:
                ended.update(each for each in many if is_reset(each))
                return len(ended) == len(many) - 1

            worker_process.wait_until(all_but_one)
            # The limit has room for one response, so only the last response that began to wait is
            # complete.
            (left,) = set(many) - ended
            assert len(answered(left)) == 8_000_000

    def test_data_shared_by_several_responses_counts_once(self) -> None:
        page = b"x" * 4_000_000

        def shared(environ: Any, start_response: Any) -> Any:
            start_response("200 OK", [("Content-Length", str(2 * len(page)))])
            return [page, page]

        bounds = limits.Limits(unsent=5_000_000)
        with worker_process.serving(shared, bounds=bounds) as served, contextlib.ExitStack() as s:
            many = [s.enter_context(self.slow(served, "reader")) for _ in range(3)]
            assert [len(answered(each)) for each in many] == [8_000_000] * 3


class TestRoom:
    def test_without_room_the_longest_waiting_connection_is_closed(self) -> None:
        with (
            worker_process.serving(Echo(), bounds=limits.Limits(connections=3)) as served,
            contextlib.ExitStack() as stack,
        ):
            first, *others = [stack.enter_context(served.connect()) for _ in range(3)]
            for each in (first, *others):
                each.sendall(b"GET")
                self.wait_until_taken(served, each)
            assert served.ask(LAST).endswith(b"/last ")
            assert worker_process.rest(first) == b""
            for each in others:
                each.sendall(LAST[3:])
                assert worker_process.rest(each).endswith(b"/last ")

    def wait_until_taken(self, served: Any, connection: Any) -> None:
        name = connection.getsockname()

        def is_taken() -> Any:
            return any(
                each.client == name and each.buffer
                for each in list(served.worker._loop._connections)
            )

        worker_process.wait_until(is_taken)

    def test_one_address_has_limited_connections_without_affecting_others(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(loop.limits, "peer", {"127.0.0.1": "", "127.0.1.1": "a"}.get)  # type: ignore[attr-defined]
        gate = Gate()
        with (
            worker_process.serving(gate, bounds=limits.Limits(per_peer=2), threads=4) as served,
            contextlib.ExitStack() as stack,
        ):
            waiting = [self.connect_from(stack, served, "127.0.1.1") for _ in range(3)]
            assert worker_process.rest(waiting[0]) == b""
            for each in waiting[1:]:
                each.sendall(LAST)
                assert gate.entered.acquire(timeout=worker_process.PATIENCE)
            # The server does not end a running request to accept a new connection.
            assert worker_process.rest(self.connect_from(stack, served, "127.0.1.1")) == b""
            exempt = [stack.enter_context(served.connect()) for _ in range(3)]
            gate.opened.set()
            for each in exempt:
                each.sendall(LAST)
            for each in (*waiting[1:], *exempt):
                assert worker_process.rest(each).endswith(b"ok")
            again = self.connect_from(stack, served, "127.0.1.1")
            again.sendall(LAST)
            assert worker_process.rest(again).endswith(b"ok")

    def connect_from(self, stack: Any, served: Any, place: Any) -> Any:
        made = socket.create_connection(
            served.address, worker_process.PATIENCE, source_address=(place, 0)
        )
        return stack.enter_context(made)


class TestEnds:
    def test_a_stop_finishes_running_requests_and_closes_the_others(self) -> None:
        gate = Gate()
        with (
            worker_process.serving(gate, keepalive=60) as served,
            served.connect() as runs,
            served.connect() as comes,
            served.connect() as idles,
        ):
            runs.sendall(HELLO)
            assert gate.entered.acquire(timeout=worker_process.PATIENCE)
            comes.sendall(HELLO[:10])
            served.tell()
            assert worker_process.rest(idles) == b""
            comes.sendall(HELLO[10:])
            gate.opened.set()
            for each in (runs, comes):
                found = worker_process.rest(each)
                assert found.endswith(b"ok")
                assert b"Connection: close" in found

    def test_a_stop_does_not_wait_forever(self) -> None:
        with (
            worker_process.serving(Echo(), graceful_timeout=1) as served,
            served.connect() as connection,
        ):
            connection.sendall(HELLO[:10])
            TestRoom().wait_until_taken(served, connection)
            served.stop()
            assert worker_process.rest(connection) == b""

    @pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), KeyboardInterrupt()])
    def test_a_failing_application_gives_an_error_response_and_continues(self, error: Any) -> None:
        def fails(environ: Any, start_response: Any) -> Any:
            if environ["PATH_INFO"] == "/last":
                return Echo()(environ, start_response)
            raise error

        with worker_process.serving(fails) as served:
            assert served.ask(HELLO).startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
            assert served.ask(LAST).endswith(b"/last ")

    def test_a_client_that_left_before_its_response_affects_no_other(self) -> None:
        gate = Gate()
        with worker_process.serving(gate) as served:
            connections = [served.connect() for _ in range(THREADS)]
            for each in connections:
                each.sendall(HELLO)
                assert gate.entered.acquire(timeout=worker_process.PATIENCE)
                each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, loop._AT_ONCE)
                each.close()
            gate.opened.set()
            assert served.ask(LAST).endswith(b"ok")
            assert len(served.worker._loop) <= 1

    def test_settings_that_would_be_ignored_are_refused(self) -> None:
        cfg = Config()
        worker.Worker.check_config(cfg, None)
        cfg.set("certfile", __file__)
        with pytest.raises(ConfigError, match="TLS"):
            worker.Worker.check_config(cfg, None)

    @pytest.mark.parametrize(("files", "left"), [(200, 72), (resource.RLIM_INFINITY, 1_000)])
    def test_connections_are_limited_by_the_open_files(
        self, monkeypatch: pytest.MonkeyPatch, files: int, left: int
    ) -> None:
        monkeypatch.setattr(resource, "getrlimit", lambda _which: (files, files))
        assert worker._possible(limits.Limits()).connections == left

    def test_without_free_descriptors_a_waiting_connection_is_closed(self) -> None:
        class Listener(socket.socket):
            faults = 0

            def accept(self) -> Any:
                if self.faults:
                    self.faults -= 1
                    raise OSError(errno.EMFILE, "no more files")
                return super().accept()

        listener = Listener()
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        with worker_process.serving(Echo(), listener=listener) as served, served.connect() as idle:
            worker_process.wait_until(lambda: len(served.worker._loop))
            listener.faults = 1
            assert served.ask(LAST).endswith(b"/last ")
            assert worker_process.rest(idle) == b""
