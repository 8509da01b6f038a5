"""The admin port: its commands, and the refusal of requests from outside this machine."""

import http.client
import io
import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from datastore_emulator import clock, inprocess
from datastore_emulator.server import admin_port, http_server
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused

ENTITY: dict[str, Any] = {
    "key": {"path": [{"kind": "T", "id": "1"}]},
    "properties": {"a": {"integerValue": "1"}},
}


@pytest.fixture
def stopped() -> threading.Event:
    return threading.Event()


@pytest.fixture
def movable() -> clock.Clock:
    return clock.Clock(1_700_000_000.0)


@pytest.fixture(params=["optimistic", "pessimistic"])
def engine(
    index_yaml: Path, movable: clock.Clock, request: pytest.FixtureRequest
) -> Iterator[inprocess.Engine]:
    with inprocess.open_engine(
        None, indexes=index_yaml, clock=movable, concurrency=request.param
    ) as opened:
        yield opened


@pytest.fixture
def running(
    engine: inprocess.Engine, movable: clock.Clock, stopped: threading.Event
) -> Iterator[http_server.HttpServer]:
    running = http_server.start(admin_port.AdminPort(engine, stopped.set, movable).answer, 0)
    yield running
    running.stop()


@pytest.fixture
def ask(running: http_server.HttpServer) -> Callable[..., Any]:
    def ask(method: str, path: str, body: Any = None, **headers: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
        named = {name.replace("_", "-"): text for name, text in headers.items()}
        connection.request(method, path, body, named, encode_chunked=hasattr(body, "__next__"))
        response = connection.getresponse()
        content = response.read()
        connection.close()
        return response.status, content.decode()

    return ask


@pytest.fixture
def service(
    engine: inprocess.Engine, make_service: type[service_calls.Service]
) -> service_calls.Service:
    return make_service(inprocess.Channel(engine))


def test_health_says_ok(ask: Callable[..., Any]) -> None:
    assert ask("GET", "/") == (200, "Ok\n")
    assert ask("HEAD", "/") == (200, "")


def test_reset_removes_everything_and_ends_transactions(
    ask: Callable[..., Any], service: service_calls.Service
) -> None:
    service.put(service.key("T", 1), a=1, b=2)
    service.put(service.key("T", 1, namespace="n"), a=1)
    open_one = service.begin()
    service.get(service.key("T", 1), transaction=open_one)
    assert ask("POST", "/reset")[0] == 200
    assert service.get(service.key("T", 1)) is None
    assert service.names(order=["a", "b"]) == service.names(namespace="n") == []
    with assert_refused("INVALID_ARGUMENT"):
        service.get(service.key("T", 1), transaction=open_one)
    service.put(service.key("T", 2), a=1, b=2)
    assert service.names(order=["a", "b"]) == [2]


def test_a_partial_reset_leaves_the_rest(
    ask: Callable[..., Any],
    service: service_calls.Service,
    make_service: type[service_calls.Service],
    engine: inprocess.Engine,
) -> None:
    other = make_service(inprocess.Channel(engine), "other")
    for each in (service, other):
        for namespace in ("", "n", "m"):
            each.put(each.key("T", 1, namespace=namespace), a=1, b=2)
    assert ask("POST", "/reset?project=test&namespace=n")[0] == 200
    kept = [(one, name) for one in (service, other) for name in ("", "n", "m")
            if one.names(namespace=name, order=["a", "b"])]  # fmt: skip
    assert kept == [(service, ""), (service, "m"), (other, ""), (other, "n"), (other, "m")]
    assert ask("POST", "/reset?namespace=")[0] == 200
    assert service.names() == other.names() == []
    assert service.names(namespace="m") == other.names(namespace="n") == [1]


def test_ids_are_not_handed_out_again_after_a_reset(
    ask: Callable[..., Any], service: service_calls.Service
) -> None:
    first = {service.put(service.key("T")).mutation_results[0].key.path[0].id for _ in range(9)}
    ask("POST", "/reset")
    later = {service.put(service.key("T")).mutation_results[0].key.path[0].id for _ in range(9)}
    assert len(first | later) == 18


def test_a_reset_that_names_an_unknown_part_removes_nothing(
    ask: Callable[..., Any], service: service_calls.Service
) -> None:
    service.put(service.key("T", 1), a=1)
    assert ask("POST", "/reset?nmespace=n") == (400, "/reset has no parameter nmespace.\n")
    assert service.names() == [1]


def test_an_engine_in_another_process_sees_a_reset(
    tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    with inprocess.open_engine(tmp_path / "d") as one, inprocess.open_engine(tmp_path / "d") as two:
        here, there = (make_service(inprocess.Channel(each)) for each in (one, two))
        for service in (here, there):
            service.put(service.key("T", 1), a=1)
            assert service.names("T", ("a", "=", 1)) == [1]
        one.reset()
        here.put(here.key("U", 1), z=1)
        there.put(there.key("T", 2), a=1)
        assert [each.names("T", ("a", "=", 1)) for each in (here, there)] == [[2], [2]]
        assert there.names("U", ("z", "=", 1)) == [1]


def test_shutdown_answers_and_then_ends(ask: Callable[..., Any], stopped: threading.Event) -> None:
    assert ask("POST", "/shutdown", b"", content_type="application/x-www-form-urlencoded")[0] == 200
    assert stopped.wait(60)


def test_the_clock_can_be_moved_forward(
    ask: Callable[..., Any], service: service_calls.Service
) -> None:
    open_one = service.begin()
    assert json.loads(ask("GET", "/clock")[1]) == {"now": 1_700_000_000.0, "is_manual": True}
    status, content = ask("POST", "/clock", '{"advance": 61.5}')
    assert (status, json.loads(content)["now"]) == (200, 1_700_000_061.5)
    with assert_refused("INVALID_ARGUMENT", "expired"):
        service.get(service.key("T", 1), transaction=open_one)


@pytest.mark.parametrize(
    "body", ["", "[]", "{}", '{"advance": "1"}', '{"advance": 1, "x": 2}', '{"advance": -1}',
             '{"advance": Infinity}', '{"advance": 1e999}', '{"advance": NaN}', "[" * 100_000]
)  # fmt: skip
def test_an_invalid_clock_request_is_refused(
    ask: Callable[..., Any], movable: clock.Clock, body: str
) -> None:
    assert ask("POST", "/clock", body)[0] == 400
    assert movable() == 1_700_000_000.0


def test_a_clock_that_runs_by_itself_is_not_moved(engine: inprocess.Engine) -> None:
    plain = admin_port.AdminPort(engine, lambda: None)
    with pytest.raises(http_server.BadRequest, match="--clock manual"):
        plain.answer(http_server.Request("POST", "/clock", {}, "", io.BytesIO()))


def test_the_indexes_are_shown_as_an_index_yaml(ask: Callable[..., Any], index_yaml: Path) -> None:
    status, text = ask("GET", "/indexes")
    assert status == 200
    assert text.startswith("indexes:\n- kind: T\n")
    assert text.count("- kind") == 7


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nothing", 404), ("GET", "/reset", 405), ("POST", "/", 405), ("PUT", "/clock", 405),
     ("POST", "/v1/nothing", 404), ("POST", "/v1/projects/p:nothing", 404)],
)  # fmt: skip
def test_other_paths_and_methods_are_refused(
    ask: Callable[..., Any], method: str, path: str, status: int
) -> None:
    assert ask(method, path, "{}")[0] == status


@pytest.mark.parametrize("path", ["/reset", "/shutdown", "/v1/projects/test:commit"])
@pytest.mark.parametrize(
    "headers",
    [{"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://localhost:1"},
     {"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"},
     {"Host": "evil.example"}, {"Host": "localhost.evil.example:80"}, {"Host": "127.0.0.1.x"}],
)  # fmt: skip
def test_requests_from_foreign_pages_change_nothing(
    ask: Callable[..., Any],
    service: service_calls.Service,
    stopped: threading.Event,
    path: str,
    headers: dict[str, str],
) -> None:
    service.put(service.key("T", 1), a=1)
    assert ask("POST", path, "{}", **headers)[0] == 403
    assert (service.names(), stopped.is_set()) == ([1], False)


def test_a_foreign_host_name_reads_nothing(ask: Callable[..., Any]) -> None:
    assert ask("GET", "/", Host="evil.example")[0] == 403


def test_own_pages_and_both_loopback_names_are_accepted(
    ask: Callable[..., Any], running: http_server.HttpServer
) -> None:
    for host in ("localhost", "127.0.0.1", "[::1]"):
        named = f"{host}:{running.port}"
        assert ask("POST", "/reset", "", Host=named, Origin=f"http://{named}")[0] == 200


def test_responses_have_the_headers_that_exclude_other_pages(
    running: http_server.HttpServer,
) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=60)
    connection.request("GET", "/")
    headers = connection.getresponse().headers
    connection.close()
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in headers


def raw(running: http_server.HttpServer, content: bytes) -> bytes:
    """Send bytes and return everything that is received before the connection closes."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=60) as connection:
        connection.sendall(content)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


@pytest.mark.parametrize(
    "headers",
    [b"Content-Length: 2\r\nContent-Length: 3", b"Content-Length: x", b"Content-Length: -1",
     b"Content-Length: 2\r\nTransfer-Encoding: chunked", b"Transfer-Encoding: gzip"],
)  # fmt: skip
def test_a_body_of_unclear_length_ends_the_connection(
    running: http_server.HttpServer, headers: bytes
) -> None:
    request = b"POST /reset HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n\r\n{}"
    got = raw(running, request + b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 400")
    assert got.count(b"HTTP/1.1") == 1


def test_one_connection_carries_many_requests_with_and_without_chunks(
    running: http_server.HttpServer, movable: clock.Clock
) -> None:
    head = b"POST /clock HTTP/1.1\r\nHost: localhost\r\n"
    plain = head + b"Content-Length: 14\r\n\r\n" + b'{"advance": 1}'
    chunked = (
        head + b"Transfer-Encoding: chunked\r\n\r\n5\r\n" + b'{"adv' + b"\r\nA;x=y\r\n"
        b'ance": 2 }' + b"\r\n0\r\nTrailer: x\r\n\r\n"
    )
    got = raw(running, plain + chunked + plain)
    assert got.count(b"HTTP/1.1 200") == 3
    assert movable() == 1_700_000_004.0


@pytest.mark.parametrize("chunks", [b"x\r\n", b"5\r\nab", b"5\r\n{}", b"-1\r\n", b""])
def test_broken_chunks_are_refused(
    running: http_server.HttpServer, movable: clock.Clock, chunks: bytes
) -> None:
    head = b"POST /clock HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert raw(running, head + chunks).startswith(b"HTTP/1.1 400")
    assert movable() == 1_700_000_000.0


def test_a_body_that_is_too_large_is_refused_and_answered(ask: Callable[..., Any]) -> None:
    assert ask("POST", "/clock", b" " * 3_000_000)[0] == 413


def test_a_used_port_is_an_os_error(running: http_server.HttpServer) -> None:
    with pytest.raises(OSError, match="cannot listen on"):
        http_server.start(lambda _: http_server.Response(b""), running.port)


def test_a_fault_of_a_handler_is_answered_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    running = http_server.start(lambda _: 1 / 0, 0)  # type: ignore[arg-type,return-value]
    got = raw(running, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    running.stop()
    assert got.startswith(b"HTTP/1.1 500")
    assert "ZeroDivisionError" in caplog.text


def test_a_stream_that_fails_midway_is_visibly_incomplete(caplog: pytest.LogCaptureFixture) -> None:
    def parts() -> Iterator[bytes]:
        yield b"some"
        raise ValueError

    running = http_server.start(lambda _: http_server.Response(parts()), 0)
    got = raw(running, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    running.stop()
    assert got.endswith(b"4\r\nsome\r\n")


def test_export_and_import_go_through_the_admin_port(
    ask: Callable[..., Any], service: service_calls.Service
) -> None:
    for number in range(3):
        service.put(service.key("T", number + 1), a=number, b=1)
    status, lines = ask("GET", "/export?project=test&kind=T")
    assert (status, lines.count("\n")) == (200, 3)
    ask("POST", "/reset")
    for body in (lines.encode(), (line + b"\n" for line in lines.encode().splitlines())):
        status, content = ask("POST", "/import", body)
        assert (status, json.loads(content)) == (200, {"entities": 3})
        assert service.names(order=["a", "b"]) == [1, 2, 3]
        ask("POST", "/reset")


def test_a_bad_import_is_named_and_stores_nothing(
    ask: Callable[..., Any], service: service_calls.Service
) -> None:
    good = json.dumps(ENTITY | {"key": ENTITY["key"] | {"partitionId": {"projectId": "test"}}})
    status, content = ask("POST", "/import", f"{good}\n{{\n")
    assert status == 400
    assert "the body:2: The line is not an entity" in content
    assert service.names() == []
    assert ask("POST", "/import?batch=0", good)[0] == 400


def test_faults_can_be_installed_listed_and_removed(
    ask: Callable[..., Any], service: service_calls.Service
) -> None:
    plan = '{"rules": [{"rpc": "Lookup", "status": "INTERNAL"}]}'
    assert json.loads(ask("PUT", "/faults", plan)[1]) == {"is_installed": True, "injected": []}
    with assert_refused("INTERNAL"):
        service.get(service.key("T", 1))
    assert len(json.loads(ask("GET", "/faults")[1])["injected"]) == 1
    assert ask("PUT", "/faults", '{"rules": 5}')[0] == 400
    assert ask("DELETE", "/faults")[0] == 200
    assert service.get(service.key("T", 1)) is None


def test_a_dropped_answer_ends_the_http_connection_too(ask: Callable[..., Any]) -> None:
    ask("PUT", "/faults", '{"rules": [{"rpc": "Lookup", "drop": true}]}')
    with pytest.raises(http.client.RemoteDisconnected):
        ask("POST", "/v1/projects/test:lookup", "{}", Content_Type="application/json")


@pytest.mark.parametrize("announced", ["Content-Length: {}", "Transfer-Encoding: chunked"])
def test_an_aborted_upload_stores_nothing_and_blocks_no_one(
    running: http_server.HttpServer, service: service_calls.Service, announced: str
) -> None:
    line = json.dumps(ENTITY | {"key": ENTITY["key"] | {"partitionId": {"projectId": "test"}}})
    head = f"POST /import HTTP/1.1\r\nHost: localhost\r\n{announced.format(len(line) + 9)}\r\n\r\n"
    body = f"{len(line) + 1:x}\r\n{line}\n\r\n" if "chunked" in announced else f"{line}\n"
    with socket.create_connection(("127.0.0.1", running.port), timeout=60) as connection:
        connection.sendall((head + body).encode())
        service.put(service.key("T", 2), a=2)  # Runs while the import waits for the rest
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(65536).startswith(b"HTTP/1.1 400")
    assert service.names() == [2]
