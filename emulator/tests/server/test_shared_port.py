"""One port that serves gRPC and HTTP."""

import http.client
import socket
import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from datastore_emulator import inprocess, protobufs, testing
from datastore_emulator.server import grpc_server
from emulator.tests.support import service_calls

JSON = {"Content-Type": "application/json"}
PROTOBUF = {"Content-Type": "application/x-protobuf"}


@pytest.fixture
def address(engine: inprocess.Engine) -> Iterator[str]:
    with testing.running_server(engine) as running:
        yield running


def ask(
    address: str, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request(
        method, path, body, {name.replace("_", "-"): headers[name] for name in headers}
    )
    response = connection.getresponse()
    found = response.status, response.read()
    connection.close()
    return found


def test_one_address_serves_every_client(
    address: str, make_service: type[service_calls.Service]
) -> None:
    assert ask(address, "GET", "/") == (200, b"Ok\n")
    commit = b"""{"mode": "NON_TRANSACTIONAL", "mutations": [{"upsert": {"key":
        {"path": [{"kind": "T", "id": "1"}]}, "properties": {"a": {"integerValue": "5"}}}}]}"""
    assert ask(address, "POST", "/v1/projects/test:commit", commit, **JSON)[0] == 200
    with grpc.insecure_channel(address) as channel:
        service = make_service(channel)
        assert service.get(service.key("T", 1)) == {"a": 5}
        lookup = protobufs.LookupRequest(project_id="test", keys=[service.key("T", 1)])
        status, found = ask(
            address, "POST", "/v1/projects/test:lookup", lookup.SerializeToString(), **PROTOBUF
        )
        assert status == 200
        assert len(protobufs.LookupResponse.FromString(found).found) == 1
        assert ask(address, "POST", "/reset", "")[0] == 200
        assert service.get(service.key("T", 1)) is None


def test_a_request_in_single_bytes_is_understood(address: str) -> None:
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n":
            client.sendall(bytes((byte,)))
        assert client.recv(1024).startswith(b"HTTP/1.1 405")


@pytest.mark.parametrize("sent", [b"", b"P", b"PR", b"\r\n\r\n", b"PRI nonsense"])
def test_a_client_that_says_nothing_sensible_harms_no_one(address: str, sent: bytes) -> None:
    host, _, port = address.partition(":")
    with socket.create_connection((host, int(port)), timeout=60) as client:
        client.sendall(sent)
        client.shutdown(socket.SHUT_WR)
        while client.recv(1024):
            pass
    assert ask(address, "GET", "/") == (200, b"Ok\n")


def test_only_the_commands_of_google_s_emulators_are_offered(address: str) -> None:
    for path in ("/ui", "/export", "/clock", "/faults", "/shutdown"):
        assert ask(address, "GET", path)[0] == 404


@pytest.mark.parametrize(
    "headers", [{"Origin": "http://other.example"}, {"Host": "other.example"}], ids=str
)
def test_pages_of_other_origins_are_refused(address: str, headers: dict[str, str]) -> None:
    assert ask(address, "POST", "/reset", "", **headers)[0] == 403


def test_other_machines_may_use_any_host_name_but_no_browser(engine: inprocess.Engine) -> None:
    running = grpc_server.start(engine, "0.0.0.0", 0)  # noqa: S104 - the test is about this address
    address = f"127.0.0.1:{running.port}"
    try:
        assert ask(address, "POST", "/reset", "", Host="datastore:8081")[0] == 200
        for name in ("Origin", "Sec_Fetch_Site"):
            own = {"Host": "evil.example", name: "http://evil.example"}
            assert ask(address, "POST", "/reset", "", **own)[0] == 403
    finally:
        running.stop()


def test_a_large_request_and_answer_pass_through(
    address: str, make_service: type[service_calls.Service]
) -> None:
    with grpc.insecure_channel(address) as channel:
        service = make_service(channel)
        texts = {f"t{n}": service_calls.Unindexed("x" * 300_000) for n in range(3)}
        service.commit(
            *({"upsert": service.entity(service.key("T", n), **texts)} for n in range(1, 9))
        )
        assert len(service.names()) == 8


def test_a_stopped_server_ends_its_connections(engine: inprocess.Engine) -> None:
    before = set(threading.enumerate())
    running = grpc_server.start(engine, "localhost", 0)
    with grpc.insecure_channel(f"localhost:{running.port}") as channel:
        grpc.channel_ready_future(channel).result(timeout=60)
        running.stop()
        for each in set(threading.enumerate()) - before:
            if "process_request" in each.name or "_pump" in each.name:
                each.join(60)
                assert not each.is_alive()
    with pytest.raises(ConnectionRefusedError):
        ask(f"127.0.0.1:{running.port}", "GET", "/")
