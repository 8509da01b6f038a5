"""Requests to URLs that people enter have the right content and always end."""

import socket
import struct
import threading
from typing import Any

import pytest
import trustme

from comments import errors
from comments.events import safe_http
from tests.support import loopback_servers


def test_a_request_has_the_host_name_and_the_body() -> None:
    with loopback_servers.receiver() as told:
        told.headers = {"X-Said": "yes"}
        answer = loopback_servers.client(told.port).send(
            "POST", f"http://hooks.example:{told.port}/a?b", body=b"{}", headers={"X-Id": "1"}
        )
        (heard,) = told.heard
    assert (answer.status, answer.body, answer.headers["x-said"]) == (200, b"ok", "yes")
    assert (heard.method, heard.path, heard.body) == ("POST", "/a?b", b"{}")
    assert heard.headers["Host"] == f"hooks.example:{told.port}"
    assert heard.headers["X-Id"] == "1"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_returned_and_not_followed(status: int) -> None:
    with loopback_servers.receiver() as told, loopback_servers.receiver() as inside:
        told.status, told.headers = status, {"Location": f"http://127.0.0.1:{inside.port}/"}
        answer = loopback_servers.client(told.port).send(
            "GET", f"http://hooks.example:{told.port}/"
        )
    assert (answer.status, len(told.heard), inside.heard) == (status, 1, [])


def test_the_certificate_is_checked_against_the_name() -> None:
    with loopback_servers.receiver(certificate="hooks.example") as told:
        client = loopback_servers.client(told.port)
        url = f"https://hooks.example:{told.port}/"
        assert client.send("GET", url).status == 200
        with pytest.raises(errors.Unreachable):
            client.send("GET", url.replace("hooks", "other"))


def test_a_certificate_of_an_unknown_authority_is_refused() -> None:
    stranger = trustme.CA()
    with loopback_servers.receiver(certificate="hooks.example", authority=stranger) as told:
        with pytest.raises(errors.Unreachable):
            loopback_servers.client(told.port).send("POST", f"https://hooks.example:{told.port}/")
        assert told.heard == []


def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with loopback_servers.receiver() as told, loopback_servers.receiver() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "https_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        loopback_servers.client(told.port).send("GET", f"http://hooks.example:{told.port}/")
    assert (len(told.heard), proxy.heard) == (1, [])


@pytest.mark.parametrize("size", [1_000, 1_001, 10_000_000])
def test_an_answer_is_read_up_to_its_limit(size: int) -> None:
    with loopback_servers.receiver() as told:
        told.answer = b"x" * size
        client = loopback_servers.client(told.port, limits=safe_http.RequestLimits(answer=1_000))
        answer = client.send("GET", f"http://hooks.example:{told.port}/")
    assert (len(answer.body), answer.is_cut) == (1_000, size > 1_000)


def drip(text: bytes) -> Any:
    """Return a peer that sends `text` and then sends single bytes for a long time."""

    def talk(connection: Any, over: Any) -> None:
        connection.recv(10_000)
        connection.sendall(text)
        for _ in range(1_500):
            if over.wait(0.005):
                return
            connection.sendall(b"x")

    return talk


def silence(connection: Any, over: Any) -> None:
    over.wait(10)


def long_continue(connection: Any, over: Any) -> None:
    for _ in range(500):
        if over.wait(0.02):
            return
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")


def at_once(text: bytes) -> Any:
    def talk(connection: Any, over: Any) -> None:
        connection.recv(10_000)
        connection.sendall(text)

    return talk


def then_reset(text: bytes) -> Any:
    """Return a peer that sends `text` and resets the connection, which discards unread bytes."""

    def talk(connection: Any, over: Any) -> None:
        at_once(text)(connection, over)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return talk


HOSTILE = {
    "silence": silence,
    "a status line without end": drip(b"HTTP/1.1 2"),
    "headers without end": drip(b"HTTP/1.1 200 OK\r\nX: "),
    "a body that drips": drip(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n"),
    "a chunk that drips": drip(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3e0\r\n"),
    "continue without end": long_continue,
    "another protocol": at_once(b"220 mail.example ESMTP\r\n"),
    "nothing": at_once(b""),
    "a bad status": at_once(b"HTTP/1.1 abc\r\n\r\n"),
    "a line too long": at_once(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000 + b"\r\n\r\n"),
    "a bad chunk": at_once(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nxx"),
    "a reset": then_reset(b""),
    "success, and a reset": then_reset(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf"),
    "half a body": at_once(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nhalf"),
}


@pytest.mark.parametrize("how", HOSTILE)
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_request_ends_for_any_behavior_of_the_peer(how: str, scheme: str) -> None:
    limits = safe_http.RequestLimits(connect=30, total=0.3, answer=1_000)
    with loopback_servers.peer(HOSTILE[how]) as port:
        client = loopback_servers.client(port, limits=limits)
        try:
            answer = client.send("POST", f"{scheme}://hooks.example:{port}/", body=b"{}")
        except errors.Unreachable:
            answer = None
    assert answer is None  # Half of the announced body does not count as an answer


def test_the_time_limit_of_a_request_includes_name_resolution() -> None:
    over = threading.Event()

    def looked_up(_host: Any) -> Any:
        over.wait(0.3)
        return [loopback_servers.LOOPBACK]

    def answers(connection: Any, _over: Any) -> None:
        over.wait(0.4)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    with loopback_servers.peer(answers) as port:
        limits = safe_http.RequestLimits(connect=30, total=0.5)
        client = loopback_servers.client(port, limits=limits, resolver=looked_up)
        with pytest.raises(errors.Unreachable):
            client.send("POST", f"http://hooks.example:{port}/", body=b"{}")


def test_a_peer_that_refuses_is_unreachable() -> None:
    with loopback_servers.unused_port() as port, pytest.raises(errors.Unreachable):
        loopback_servers.client(port).send("GET", f"http://hooks.example:{port}/")


def test_a_header_cannot_carry_a_line_end() -> None:
    with loopback_servers.receiver() as told, pytest.raises(ValueError, match="Invalid header"):
        loopback_servers.client(told.port).send(
            "GET", f"http://hooks.example:{told.port}/", headers={"X": "a\r\nHost: internal"}
        )
    assert told.heard == []
