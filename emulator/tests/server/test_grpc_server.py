"""The program prints its address, and stops on request."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.api_core import exceptions

from datastore_emulator import errors, inprocess, testing
from datastore_emulator.cli import command_line
from datastore_emulator.server import grpc_server, http_server
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused


@contextlib.contextmanager
def start(*arguments: Any) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, "-m", "datastore_emulator", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "GRPC_VERBOSITY": "NONE"},
    )
    with child:
        try:
            yield child
        finally:
            child.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_program_prints_its_address_answers_and_stops(
    tmp_path: Path, make_service: type[service_calls.Service], number: Any
) -> None:
    with start("--port", 0, "--data", tmp_path / "data") as child:
        said = child.stdout.readline()
        host, *projects = said.removeprefix("export ").split()
        name, _, address = host.partition("=")
        assert (name, address.partition(":")[0]) == ("DATASTORE_EMULATOR_HOST", "localhost")
        assert projects == ["DATASTORE_PROJECT_ID=test", "DATASTORE_DATASET=test"]
        with grpc.insecure_channel(address) as channel:
            service = make_service(channel)
            service.put(service.key("T", 1), a=1)
        child.send_signal(number)
        more, _ = child.communicate(timeout=60)
        assert (child.returncode, more) == (0, "")
    with inprocess.open_engine(tmp_path / "data") as engine:
        service = make_service(inprocess.Channel(engine))
        assert service.get(service.key("T", 1)) == {"a": 1}


def test_a_bad_index_yaml_ends_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "index.yaml"
    arguments = ["--port", "0", "--in-memory", "--indexes", str(bad)]
    assert command_line.main([*arguments, "--strict-indexes"]) == 1
    bad.write_text("indexes: 5")
    assert command_line.main(arguments) == 1
    missing, wrong = capsys.readouterr().err.splitlines()
    assert f"{bad}: No such file" in missing
    assert f"{bad} is not an index.yaml" in wrong


def test_a_server_starts_with_a_fault_plan(
    tmp_path: Path, make_service: type[service_calls.Service]
) -> None:
    plan = tmp_path / "plan.json"
    plan.write_text('{"rules": [{"rpc": "Commit", "call": 1, "status": "ABORTED"}]}')
    with start("--port", 0, "--in-memory", "--faults", plan) as child:
        address = child.stdout.readline().split()[1].partition("=")[2]
        with grpc.insecure_channel(address) as channel:
            service = make_service(channel)
            with assert_refused("ABORTED"):
                service.put(service.key("T", 1), a=1)
            service.put(service.key("T", 1), a=1)


def test_a_bad_fault_plan_ends_the_program(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "plan.json"
    bad.write_text('{"rules": [{}]}')
    assert command_line.main(["--port", "0", "--in-memory", "--faults", str(bad)]) == 1
    assert "rules[0] requires one of" in capsys.readouterr().err


def test_a_used_port_ends_the_program(
    engine: inprocess.Engine, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise OSError("cannot listen on localhost:1")

    monkeypatch.setattr(grpc_server, "start", refuse)
    assert command_line.main(["--port", "1", "--in-memory"]) == 1
    assert "cannot listen on" in capsys.readouterr().err


def test_a_used_address_is_an_os_error(engine: inprocess.Engine) -> None:
    running = grpc_server.start(engine, "localhost", 0)
    with pytest.raises(OSError, match="cannot listen on"):
        grpc_server.start(engine, "localhost", running.port)
    running.stop()


def test_a_port_used_at_one_of_the_addresses_is_refused(engine: inprocess.Engine) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        pytest.raises(OSError, match=r"127\.0\.0\.1 is in use"),
    ):
        grpc_server.start(engine, "localhost", other.getsockname()[1])


def test_a_picked_port_is_free_at_every_address(
    engine: inprocess.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[socket.socket] = []
    bind = http_server.Server.server_bind

    def bind_late(server: http_server.Server) -> None:
        """Let another program take the first picked port at the next address."""
        bind(server)
        if not taken:
            taken.append(socket.create_server(("127.0.0.1", server.server_port)))

    def both(_: Any, port: int, **__: Any) -> list[Any]:
        stream = (socket.SOCK_STREAM, 6, "")
        return [
            (socket.AF_INET, *stream, ("127.0.0.2", port)),
            (socket.AF_INET, *stream, ("127.0.0.1", port)),
        ]

    monkeypatch.setattr(http_server.Server, "server_bind", bind_late)
    monkeypatch.setattr(socket, "getaddrinfo", both)
    running = grpc_server.start(engine, "localhost", 0)
    monkeypatch.undo()
    with taken[0]:
        assert running.port != taken[0].getsockname()[1]
        for address in ("127.0.0.1", "127.0.0.2"):
            with grpc.insecure_channel(f"{address}:{running.port}") as channel:
                grpc.channel_ready_future(channel).result(timeout=60)
    running.stop()


def test_a_server_without_an_engine_opens_its_own(
    tmp_path: Path, index_yaml: Path, make_service: type[service_calls.Service]
) -> None:
    with (
        testing.running_server(path=tmp_path / "data", indexes=index_yaml) as address,
        grpc.insecure_channel(address) as channel,
    ):
        service = make_service(channel)
        service.put(service.key("T", 1), a=1, b=2)
        assert service.names(order=["a", "b"]) == [1]


def test_a_storage_fault_is_named_to_clients(
    make_service: type[service_calls.Service], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bytes:
        raise errors.DiskFull("no space").about("/srv/data")

    with testing.running_server() as address, grpc.insecure_channel(address) as channel:
        service = make_service(channel)
        monkeypatch.setattr(inprocess.Engine, "call", fail)
        with pytest.raises(grpc.RpcError) as refused:
            service.put(service.key("T", 1), a=1)
    error = exceptions.from_grpc_error(refused.value)
    assert (error.reason, error.metadata) == ("DISK_FULL", {"path": "/srv/data"})


def test_sixty_open_transactions_do_not_block_a_commit(
    make_service: type[service_calls.Service],
) -> None:
    with testing.running_server() as address, grpc.insecure_channel(address) as channel:
        service = make_service(channel)
        begun = [service.begin() for _ in range(60)]
        for transaction in begun:
            service.get(service.key("T", 1), transaction=transaction)
        service.put(service.key("T", 1), a=1)
        assert service.get(service.key("T", 1)) == {"a": 1}


def test_a_stopped_server_leaves_no_threads(
    engine: inprocess.Engine, make_service: type[service_calls.Service]
) -> None:
    before = set(threading.enumerate())
    with testing.running_server(engine) as address, grpc.insecure_channel(address) as channel:
        make_service(channel).put(make_service(channel).key("T", 1))
        own = [each for each in set(threading.enumerate()) - before if each.name == "datastore"]
        assert own
    for each in own:
        each.join(60)
        assert not each.is_alive()


@pytest.mark.parametrize("host", ["::1", "[::1]", "127.8.9.10", "localhost"])
def test_a_loopback_address_is_local(host: str) -> None:
    assert grpc_server.is_loopback(host)


@pytest.mark.parametrize("host", ["::", "[::]", "192.0.2.1", "", "no.such.host.invalid"])
def test_any_other_address_is_not_local(host: str) -> None:
    assert not grpc_server.is_loopback(host)
