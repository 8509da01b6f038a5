"""The worker waits for no slow client, and limits connections and pending bytes."""

import contextlib
import socket
import threading
import time
from typing import Any

import pytest

from server import limits
from tests.support import worker_process
from tests.support.worker_examples import (
    CHUNKED,
    HELLO,
    LAST,
    POST,
    Echo,
    Gate,
    answered,
    is_reset,
    large,
    quick,
    reads_nothing,
    wait_until_taken,
)

THREADS = 2  # The default of `worker_process.serving`


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
        # The client may read its answer late on a busy machine, while it keeps sending.
        bounds = quick(linger=worker_process.PATIENCE)
        with (
            worker_process.serving(self.application, bounds=bounds) as served,
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
        bounds = quick(answer=1.0)
        with (
            worker_process.serving(self.application, bounds=bounds) as served,
            self.slow(served, "reader") as connection,
        ):
            taken, pause = 0, threading.Event()
            with contextlib.suppress(ConnectionResetError):
                while data := connection.recv(2_048):
                    taken += len(data)
                    pause.wait(0.05)
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
                wait_until_taken(served, each)
            assert served.ask(LAST).endswith(b"/last ")
            assert worker_process.rest(first) == b""
            for each in others:
                each.sendall(LAST[3:])
                assert worker_process.rest(each).endswith(b"/last ")

    def test_one_address_has_limited_connections_without_affecting_others(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(limits, "peer", {"127.0.0.1": "", "127.0.1.1": "a"}.get)
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
