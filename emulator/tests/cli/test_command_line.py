"""The program as users run it: its ports, its files, and its one-line errors."""

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from datastore_emulator.cli import command_line
from datastore_emulator.encoding import indexes
from datastore_emulator.execution import automatic_indexes
from emulator.tests.support import service_calls
from emulator.tests.support.service_calls import assert_refused


@pytest.fixture
def serve(make_service: type[service_calls.Service]) -> Callable[..., Any]:
    """Start the program; yield the process, a client, and a function that calls the admin port."""

    @contextlib.contextmanager
    def serve(
        *arguments: Any,
    ) -> Iterator[tuple[subprocess.Popen[str], service_calls.Service, Callable[..., Any]]]:
        child = subprocess.Popen(
            [sys.executable, "-m", "datastore_emulator", *map(str, arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "GRPC_VERBOSITY": "NONE"},
        )  # fmt: skip
        with child:
            try:
                address = child.stdout.readline().split()[1].partition("=")[2]
                _data, ports, _stop = (child.stderr.readline() for _ in range(3))
                admin = ports.split()[2].removeprefix("http://")

                def ask(method: str, path: str, body: str | None = None) -> tuple[int, str]:
                    connection = http.client.HTTPConnection(admin, timeout=60)
                    connection.request(method, path, body)
                    response = connection.getresponse()
                    content = response.read().decode()
                    connection.close()
                    return response.status, content

                with grpc.insecure_channel(address) as channel:
                    yield child, make_service(channel), ask
            finally:
                child.kill()

    return serve


def free_ports() -> int:
    """Return a free port that is followed by another free port.

    The kernel assigns neither port to a different program, because it assigns only higher ones.
    """
    assigned = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii")
    for port in range(int(assigned.split()[0]) - 2, 1024, -2):
        with socket.socket() as one, socket.socket() as two, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", port))
            two.bind(("127.0.0.1", port + 1))
            return port
    raise AssertionError("no two adjacent ports are free")


def test_a_server_defines_indexes_moves_its_clock_and_shuts_down(
    serve: Callable[..., Any], tmp_path: Path
) -> None:
    yaml = tmp_path / "index.yaml"
    yaml.touch()
    arguments = ("--data", tmp_path / "data", "--indexes", yaml, "--clock", "manual", "--fast")
    with serve("--port", 0, *arguments) as (child, service, ask):
        service.put(service.key("T", 1), a=1, b=2)
        assert service.names("T", ("a", "=", 1), order=["-b"]) == [1]
        assert automatic_indexes.MARKER in yaml.read_text()
        transaction = service.begin()
        ask("POST", "/clock", '{"advance": 61}')
        with assert_refused("INVALID_ARGUMENT", "expired"):
            service.get(service.key("T", 1), transaction=transaction)
        assert "T" in ask("GET", "/ui")[1]
        assert ask("GET", "/export")[1].count("\n") == 1
        assert ask("POST", "/shutdown", "")[0] == 200
        assert child.wait(timeout=60) == 0
        assert child.stderr.read() == ""
    assert automatic_indexes.read_file(yaml) == (indexes.Index("T", (("a", False), ("b", True))),)


@pytest.mark.parametrize("options", [(), ("--no-admin",)])
def test_the_api_s_port_shuts_down_unless_there_is_no_admin_port(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], options: tuple[str, ...]
) -> None:
    statuses = []

    def shut_down(_: Any) -> None:
        address = capfd.readouterr().out.split()[1].partition("=")[2]
        for method, path in (("GET", "/"), ("POST", "/shutdown")):
            connection = http.client.HTTPConnection(address, timeout=60)
            connection.request(method, path)
            statuses.append(connection.getresponse().status)
            connection.close()

    monkeypatch.setattr(signal, "sigwait", shut_down)
    monkeypatch.setattr(os, "kill", lambda *_: None)
    assert command_line.main(["--port", "0", "--in-memory", *options]) == 0
    assert statuses == [200, 404 if options else 200]


@pytest.mark.parametrize(
    ("arguments", "address", "data"),
    [
        ("start --host-port=127.0.0.1:0 --data-dir={}/new", "127.0.0.1", "{}/new/datastore.sqlite"),
        ("start --port 0 --project=p --data {}/data", "localhost", "{}/data"),
        ("--host-port :0 --in-memory", "localhost", "none"),
        ("--host-port 0 --in-memory", "localhost", "none"),
    ],
)
def test_the_arguments_of_google_s_emulator_are_understood(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    arguments: str, address: str, data: str,
) -> None:  # fmt: skip
    monkeypatch.setattr(signal, "sigwait", lambda _: signal.SIGTERM)
    assert command_line.main(arguments.format(tmp_path).split()) == 0
    said = capfd.readouterr()
    assert said.out.startswith(f"export DATASTORE_EMULATOR_HOST={address}:")
    assert said.err.startswith(f"Data file: {data.format(tmp_path)}\n")


@pytest.mark.parametrize(
    ("arguments", "address", "project"),
    [
        ("", "localhost:8081", "test"),
        ("--data-dir={}", "localhost:8081", "test"),
        ("--host-port=127.0.0.1:8432 --project=p", "127.0.0.1:8432", "p"),
        ("--host 127.0.0.1 --port 8432", "127.0.0.1:8432", "test"),
        ("--host ::1 --port 8432", "'[::1]:8432'", "test"),
    ],
)
def test_env_init_prints_the_variables_of_a_server_with_the_same_flags(
    tmp_path: Path, capsys: pytest.CaptureFixture[str],
    arguments: str, address: str, project: str,
) -> None:  # fmt: skip
    assert command_line.main(["env-init", *arguments.format(tmp_path).split()]) == 0
    assert capsys.readouterr().out == (
        f"export DATASTORE_EMULATOR_HOST={address}"
        f" DATASTORE_PROJECT_ID={project} DATASTORE_DATASET={project}\n"
    )


@pytest.mark.parametrize(
    ("program", "status"),
    [("exit 3", 3), ("kill -9 $$", 137), ("kill -TERM $PPID; exec sleep 60", 143)],
)
def test_a_program_runs_beside_a_server_of_its_own(
    capfd: pytest.CaptureFixture[str], program: str, status: int
) -> None:
    ask = "import os, urllib.request as http\n"
    ask += "for name in ('http://' + os.environ['DATASTORE_EMULATOR_HOST'],"
    ask += " os.environ['DATASTORE_EMULATOR_ADMIN']):"
    ask += " print(http.urlopen(name).read().decode().strip())"
    ended = subprocess.run(
        [sys.executable, "-m", "datastore_emulator", "--in-memory", "--", "sh", "-c",
         f'{sys.executable} -c "$0"; echo $DATASTORE_PROJECT_ID; {program}', ask],
        check=False, timeout=60,
    )  # fmt: skip
    assert ended.returncode == status
    assert capfd.readouterr() == ("Ok\nOk\ntest\n", "")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("--prot 8081", "unrecognized arguments: --prot 8081"),
        ("--in-memory --", "-- needs a program to run"),
        ("--history -1", "argument --history: '-1' is not a number of seconds"),
        ("start --consistency=1.0", "--consistency is a flag of Google's emulator: leave it out"),
        ("start --no-store-on-disk", "use --in-memory"),
        ("env-init --port 0", "env-init needs the port that the server has printed"),
        ("--host-port=localhost:x", "argument --host-port: 'x' is not a port number"),
        ("--port 1 --host-port localhost:1", "not allowed with argument"),
    ],
)
def test_a_wrong_flag_is_named(
    capsys: pytest.CaptureFixture[str], arguments: str, text: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        command_line.main(arguments.split())
    assert ended.value.code == 2
    complaint = capsys.readouterr().err
    assert complaint.startswith("datastore-emulator: ")
    assert text in complaint
    assert complaint.count("\n") == 1


def test_the_help_names_the_default_data_file(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command_line.main(["--help"])
    assert "(default: datastore.sqlite)" in capsys.readouterr().out


def test_a_strict_server_refuses_what_index_yaml_does_not_serve(
    serve: Callable[..., Any], index_yaml: Path
) -> None:
    arguments = ("--in-memory", "--strict-indexes", "--indexes", index_yaml)
    before = index_yaml.read_bytes()
    with serve("--port", 0, *arguments) as (_, service, _ask):
        assert service.names(order=["a", "b"]) == []
        with assert_refused("FAILED_PRECONDITION", "recommended index is"):
            service.names(order=["x", "y"])
    assert index_yaml.read_bytes() == before


def test_the_admin_port_is_the_next_port_or_any_free_one(
    serve: Callable[..., Any],
) -> None:
    port = free_ports()
    with serve("--port", port, "--in-memory") as (_, _, ask):
        connection = http.client.HTTPConnection("localhost", port + 1, timeout=60)
        connection.request("GET", "/")
        assert connection.getresponse().read() == b"Ok\n"
        connection.close()
        assert ask("GET", "/") == (200, "Ok\n")
    port = free_ports()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port + 1))
        taken.listen()
        with serve("--port", port, "--in-memory") as (_, _, ask):
            assert ask("GET", "/") == (200, "Ok\n")


def test_lines_can_be_piped_from_export_to_import(tmp_path: Path) -> None:
    program = [sys.executable, "-m", "datastore_emulator"]
    line = '{"key": {"partitionId": {"projectId": "p"}, "path": [{"kind": "T", "id": "%d"}]}}\n'
    lines = "".join(line % (number + 1) for number in range(50))

    def bring(name: str, given: str) -> None:
        ran = subprocess.run(
            [*program, "import", "--data", tmp_path / name],
            input=given, check=True, capture_output=True, text=True,
        )  # fmt: skip
        assert ran.stdout == f"{tmp_path / name}: 50 entities written\n"

    bring("one", lines)
    exported = subprocess.run(
        [*program, "export", "--data", tmp_path / "one"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    assert exported.count("\n") == 50
    bring("two", exported)


def test_an_export_of_a_served_file_and_an_import_into_it(
    serve: Callable[..., Any], tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    data = tmp_path / "data"
    with serve("--port", 0, "--data", data) as (_, service, _ask):
        service.put(service.key("T", 1), a=1)
        assert command_line.main(["export", "--data", str(data)]) == 0
        lines = capfdbinary.readouterr().out
        (tmp_path / "lines").write_bytes(lines.replace(b'"1"', b'"2"'))
        assert command_line.main(["import", "--data", str(data), str(tmp_path / "lines")]) == 0
        assert service.names("T", ("a", "=", 2)) == [2]


@pytest.mark.parametrize(
    ("arguments", "texts"),
    [
        (["--data", "{}/none/data"], ["{}/none/data: There is no folder"]),
        (["--data", "{}/text"], ["{}/text"]),
        (["--in-memory", "--indexes", "{}/none", "--strict-indexes"], ["{}/none"]),
        (["--in-memory", "--indexes", "{}/none"], ["{}/none", "create an empty one"]),
        (["--in-memory", "--indexes", "{}/text"], ["{}/text", "`indexes:`"]),
        (["--in-memory", "--faults", "{}/none"], ["{}/none"]),
        (["--in-memory", "--faults", "{}/text"], ["--faults", "{}/text"]),
        (["--in-memory", "--admin-port", "{taken}"], ["--admin-port", "{taken}"]),
        (["--in-memory", "--host", "no.such.host.invalid"], ["--host", "no.such.host.invalid"]),
        (["--in-memory", "--", "no-such-program"], ["no-such-program: No such file"]),
    ],
)
def test_a_wrong_file_or_port_gives_one_line_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str],
    arguments: list[str], texts: list[str],
) -> None:  # fmt: skip
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    (tmp_path / "text").write_text("- not what is wanted")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        names = {"taken": taken.getsockname()[1]}
        given = [each.format(tmp_path, **names) for each in arguments]
        assert command_line.main(["--port", "0", *given]) == 1
    complaint = capfd.readouterr().err.splitlines()[-1]
    assert complaint.startswith("datastore-emulator: ")
    for text in texts:
        assert text.format(tmp_path, **names) in complaint


@pytest.mark.parametrize(
    ("host", "is_warned"),
    [
        ("0.0.0.0", True),  # noqa: S104 - the warning is about this address
        ("localhost", False),
        ("127.0.0.1", False),
        ("127.0.0.2", False),
    ],
)
def test_a_host_that_others_can_reach_gives_a_warning(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], host: str, is_warned: bool
) -> None:
    monkeypatch.setattr(signal, "sigwait", lambda _: signal.SIGTERM)
    arguments = ["--port", "0", "--in-memory", "--no-admin", "--host", host]
    assert command_line.main(arguments) == 0
    said = capfd.readouterr()
    port = said.out.split()[1].rpartition(":")[2]
    warning = f"warning: --host {host} lets other machines connect"
    assert (warning in said.err) == is_warned
    assert (
        f"anyone who can reach port {port} can read, change and delete" in said.err
    ) == is_warned
    assert said.err.count("\n") == 2 + is_warned  # Where the data is, and how to stop


def test_a_server_loads_only_what_it_needs() -> None:
    slow = [
        "yaml",
        "google.cloud.datastore",
        "google.auth",
        "google.longrunning",
        "google.cloud.datastore_admin_v1.types",
        "datastore_emulator.admin_api.admin_methods",
        "datastore_emulator.import_export.json_lines",
        "datastore_emulator.server.browser_pages",
        "datastore_emulator.cli.commands",
    ]
    program = (
        "import runpy, signal, sys\n"
        "slow = sys.argv.pop().split()\n"
        "signal.sigwait = lambda _: print([name for name in slow if name in sys.modules])\n"
        "runpy.run_module('datastore_emulator', run_name='__main__')\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, "--port", "0", "--in-memory", " ".join(slow)],
        check=True, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert ran.stdout.splitlines()[-1] == "[]"
