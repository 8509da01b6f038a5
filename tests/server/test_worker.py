"""The worker calls the application once for each valid request, and ends as asked."""

import errno
import gc
import resource
import socket
import sys
from pathlib import Path
from typing import Any

import pytest
from gunicorn.config import Config  # type: ignore[import-untyped]
from gunicorn.errors import ConfigError  # type: ignore[import-untyped]

from server import limits, worker
from tests.support import worker_process
from tests.support.worker_examples import (
    CHUNKED,
    HELLO,
    LAST,
    POST,
    Echo,
    Gate,
    answered,
    large,
    leave,
    quick,
    reads_nothing,
    wait_until_taken,
)

THREADS = 2  # The default of `worker_process.serving`


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

    def test_a_request_line_may_be_as_long_as_a_head(self) -> None:
        with worker_process.serving(Echo()) as served:
            found = served.ask(b"GET /p?" + b"a" * 30_000 + b" HTTP/1.1\r\nHost: h\r\n\r\n" + LAST)
        assert found.count(b"HTTP/1.1 200 OK") == 2

    @pytest.mark.parametrize("target", [b"/last?a", b"http://h/last?a", b"http://h:80/last"])
    def test_a_target_may_name_its_host(self, target: bytes) -> None:
        with worker_process.serving(Echo()) as served:
            found = served.ask(LAST.replace(b"/last", target))
        assert found.endswith(b"/last ")

    def test_a_client_that_closes_its_sending_side_is_answered(self) -> None:
        with worker_process.serving(Echo()) as served, served.connect() as connection:
            connection.sendall(HELLO)
            connection.shutdown(socket.SHUT_WR)
            assert worker_process.rest(connection).endswith(b"/a b ")

    def test_requests_before_the_end_of_the_sending_side_are_answered(self) -> None:
        gate = Gate()
        with worker_process.serving(gate, keepalive=60) as served, served.connect() as connection:
            connection.sendall(HELLO + POST % (3, b"abc"))
            connection.shutdown(socket.SHUT_WR)
            assert gate.entered.acquire(timeout=worker_process.PATIENCE)
            (open_,) = served.worker.connections.open
            worker_process.wait_until(lambda: open_._has_ended)
            gate.opened.set()
            assert worker_process.rest(connection).count(b"HTTP/1.1 200 OK") == 2

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
            connection.sendall(expecting % (3, b"abc"))  # The client does not wait for 100 Continue
            assert worker_process.answer(connection)[1] == b"/p abc"
            assert served.ask(expecting % (11, b"")).startswith(b"HTTP/1.1 200 OK\r\n")

    @pytest.mark.parametrize("sent", [POST % (12, b"x" * 12), CHUNKED + b"c\r\n" + b"x" * 12])
    def test_the_application_sees_that_a_body_is_too_long(self, sent: bytes) -> None:
        echo = Echo()
        with worker_process.serving(echo, bounds=limits.Limits(largest_body=10)) as served:
            found = served.ask(sent)
        assert b"Connection: close" in found
        ((_, _, body),) = echo.asked
        # The application gets no bytes of a body with a declared length.
        assert body == (b"" if b"Content-Length" in sent else b"x" * 12)

    def test_an_application_gets_the_path_bytes_and_no_script_name(self) -> None:
        def told(environ: Any, start_response: Any) -> list[bytes]:
            start_response("200 OK", [])
            keys = ("PATH_INFO", "QUERY_STRING", "SCRIPT_NAME", "wsgi.url_scheme",
                    "REMOTE_ADDR", "SERVER_NAME", "HTTP_X_A", "HTTP_SCRIPT_NAME",
                    "CONTENT_LENGTH", "wsgi.multithread")  # fmt: skip
            return [repr([environ.get(key) for key in keys]).encode()]

        sent = (
            b"GET /%C3%A4/b%2Fc?x=%20 HTTP/1.1\r\nHost: h\r\nX-A: 1\r\nX-A: 2\r\n"
            b"SCRIPT_NAME: /evil\r\nX-Forwarded-Proto: https\r\nConnection: close\r\n\r\n"
        )
        with worker_process.serving(told) as served:
            body = served.ask(sent).partition(b"\r\n\r\n")[2].decode()
        assert body == repr(
            ["/\xc3\xa4/b/c", "x=%20", "", "http", "127.0.0.1", "127.0.0.1",
             "1,2", None, None, True]
        )  # fmt: skip

    def test_a_unix_socket_is_supported(self, tmp_path: Path) -> None:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(tmp_path / "socket"))
        listener.listen()
        with worker_process.serving(Echo(), listener=listener) as served:
            assert served.ask(LAST).endswith(b"/last ")

    @pytest.mark.slow
    def test_a_worker_ends_after_max_requests(self) -> None:
        with worker_process.serving(Echo(), max_requests=2) as served:
            assert b"keep-alive" in served.ask(HELLO + HELLO)
            served.stop()


class TestEnds:
    @pytest.mark.slow
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
            wait_until_taken(served, connection)
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
                leave(each, b"")
            gate.opened.set()
            assert served.ask(LAST).endswith(b"ok")
            assert len(served.worker.connections.open) <= 1

    def test_a_client_that_left_keeps_its_place_until_its_request_has_run(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "peer", {"127.0.0.1": "", "127.0.1.1": "a"}.get)
        gate = Gate()
        bounds = limits.Limits(per_peer=4)
        with worker_process.serving(gate, bounds=bounds, start=False) as served:
            for _ in range(20):
                source = ("127.0.1.1", 0)
                leave(socket.create_connection(served.address, source_address=source), LAST)
            with served.connect() as other:
                served.start()
                other.sendall(LAST[:5])
                wait_until_taken(served, other)
                gate.opened.set()
                other.sendall(LAST[5:])
                assert worker_process.rest(other).endswith(b"ok")
            runs = 0
            while gate.entered.acquire(blocking=False):
                runs += 1
        assert 1 < runs <= 4 + 1

    def test_a_client_that_left_has_an_address(self) -> None:
        found = set()

        def application(environ: Any, start_response: Any) -> Any:
            found.add((environ["PATH_INFO"], environ["REMOTE_ADDR"]))
            return Echo()(environ, start_response)

        with worker_process.serving(application, start=False) as served:
            leave(served.connect(), POST % (3, b"abc"))
            served.start()
            served.ask(LAST)
        assert found == {("/p", "127.0.0.1"), ("/last", "127.0.0.1")}

    def test_a_client_that_left_leaves_no_answer_in_memory(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        body = b"x" * 8_000_000

        def application(_environ: Any, start_response: Any) -> list[bytes]:
            start_response("200 OK", [])
            return [body]

        known = sys.getrefcount(body)
        gc.disable()
        try:
            with worker_process.serving(application) as served:
                slow = reads_nothing(served, HELLO)
                assert slow.recv(100)
                assert sys.getrefcount(body) > known
                leave(slow, b"")
                worker_process.wait_until(lambda: sys.getrefcount(body) == known)
                worker_process.wait_until(lambda: not served.worker.connections.open)
        finally:
            gc.enable()
        assert [each for each in caplog.records if each.name == "asyncio"] == []

    def test_a_large_last_answer_ends_without_an_error(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        with worker_process.serving(large) as served, reads_nothing(served, LAST) as slow:
            assert len(answered(slow)) == 8_000_000
            assert worker_process.rest(slow) == b""
        assert [each for each in caplog.records if each.name == "asyncio"] == []

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
            worker_process.wait_until(lambda: len(served.worker.connections.open))
            listener.faults = 1
            assert served.ask(LAST).endswith(b"/last ")
            assert worker_process.rest(idle) == b""
