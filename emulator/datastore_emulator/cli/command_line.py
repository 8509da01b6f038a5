"""The command line: `datastore-emulator` starts a server; with a COMMAND it runs one task.

Each error is one line on stderr that names the flag or the file. A wrong flag exits
with status 2, and a machine or file error with status 1. Each command imports only what it needs,
because a server must answer its first request quickly.
"""

import argparse
import contextlib
import errno
import functools
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from datastore_emulator import clock, errors, inprocess
from datastore_emulator.admin_api import admin_service
from datastore_emulator.cli import flags
from datastore_emulator.execution import automatic_indexes
from datastore_emulator.fault_injection import fault_plans
from datastore_emulator.server import admin_port, grpc_server, http_server
from datastore_emulator.storage import file_permissions

_STOP = frozenset({signal.SIGTERM, signal.SIGINT})
_KILLED = 128  # Shells report a killed program as 128 plus the signal's number.
_WARNING = (
    "datastore-emulator: warning: --host {host} lets other machines connect without a password: "
    "anyone who can reach port {port} can read, change and delete all data. "
    "Use --host localhost unless you trust the whole network."
)

_READABLE = (
    "datastore-emulator: warning: cannot restrict the permissions of {path}: other users of "
    "this machine may be able to read it."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the emulator with the given arguments; return the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    is_command, options = flags.parse(given)
    try:
        return _do(options) if is_command else _serve(options)
    except errors.DatastoreError as error:
        print(f"datastore-emulator: {error}", file=sys.stderr)
    except OSError as error:
        text = f"{error.filename}: {error.strerror}" if error.filename else error
        print(f"datastore-emulator: {text}", file=sys.stderr)
    return 1


def _do(options: argparse.Namespace) -> int:
    if options.command == flags.ENV_INIT:
        _print(_variables(options, options.port))
        return 0
    from datastore_emulator.cli import commands  # noqa: PLC0415 - a server does not need it

    return commands.COMMANDS[options.command](options)


def _serve(options: argparse.Namespace) -> int:
    # Block the two signals before any thread starts: every thread inherits the signal mask, and
    # `sigwait` receives the signals. A signal handler that sets an event could run while the main
    # thread holds that event's lock, and then hang forever.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP)
    try:
        return _run(options)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run(options: argparse.Namespace) -> int:
    movable = clock.Clock(time.time()) if options.clock == "manual" else None
    plan = None if options.faults is None else _plan(options.faults)
    with contextlib.ExitStack() as running, _open(options, movable or time.time) as engine:
        engine.install_faults(plan)
        operations = admin_service.AdminService(engine, _exports_folder(options))
        stop = functools.partial(os.kill, os.getpid(), signal.SIGTERM)
        offered = frozenset({"/"}) if options.no_admin else admin_port.COMMON
        common = admin_port.AdminPort(engine, stop, api=operations, commands=offered)
        with _naming("--host, --port"):
            api = grpc_server.start(engine, options.host, options.port, operations, common.answer)
        running.callback(api.stop)
        if not grpc_server.is_loopback(options.host):
            print(_WARNING.format(host=options.host, port=api.port), file=sys.stderr, flush=True)
        admin = _start_admin_port(
            options, api.port, admin_port.AdminPort(engine, stop, movable, operations)
        )
        variables = _variables(options, api.port)
        url = ""
        if admin is not None:
            running.callback(admin.stop)
            url = f"http://localhost:{admin.port}"
        status = 0
        if options.program:
            status = _run_program(options.program, {**variables, "DATASTORE_EMULATOR_ADMIN": url})
        else:
            _print(variables)
            _describe(options, url)
            signal.sigwait(_STOP)
        running.close()
    return status


def _variables(options: argparse.Namespace, port: int) -> dict[str, str]:
    """Return the variables for clients, including both that name the project."""
    host = options.host.strip("[]")
    host = "localhost" if host in {"0.0.0.0", "::"} else host  # noqa: S104 - not listening
    return {
        "DATASTORE_EMULATOR_HOST": f"[{host}]:{port}" if ":" in host else f"{host}:{port}",
        "DATASTORE_PROJECT_ID": options.project,
        "DATASTORE_DATASET": options.project,
    }


def _print(variables: dict[str, str]) -> None:
    """Print the line that a user copies into a shell; stdout contains nothing else."""
    values = (f"{name}={shlex.quote(value)}" for name, value in variables.items())
    print("export", *values, flush=True)


def _describe(options: argparse.Namespace, admin_url: str) -> None:
    """Tell the user where the data is."""
    print(
        f"Data file: {'none' if options.in_memory else options.data.absolute()}",
        *([f"Admin port: {admin_url} (data browser: {admin_url}/ui)"] if admin_url else []),
        "Stop with Ctrl-C.",
        sep="\n",
        file=sys.stderr,
        flush=True,
    )


def _run_program(program: Sequence[str], variables: dict[str, str]) -> int:
    """Run a program with the variables in its environment, and return its exit status."""
    # The terminal also sends Ctrl-C to this process, but the program decides how to react to it. A
    # program inherits blocked and ignored signals, but no handlers.
    signal.signal(signal.SIGINT, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOP)
    with subprocess.Popen(program, env={**os.environ, **variables}) as child:  # noqa: S603 - given
        signal.signal(signal.SIGTERM, lambda *_: child.terminate())
        status = child.wait()
    return status if status >= 0 else _KILLED - status


@contextlib.contextmanager
def _naming(flag: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OSError(f"{flag}: {error}") from error


def _plan(path: Path) -> fault_plans.Plan:
    try:
        return fault_plans.Plan.parse(path.read_bytes())
    except errors.InvalidArgument as error:
        raise errors.InvalidArgument(f"--faults: {path}: {error.message}") from error


def _open(options: argparse.Namespace, now: Callable[[], float]) -> inprocess.Engine:
    given = options.indexes
    if given is not None and not given.exists():
        raise FileNotFoundError(
            errno.ENOENT, "No such file. To let the emulator write it, create an empty one.", given
        )
    if options.data_dir is not None:
        options.data_dir.mkdir(parents=True, exist_ok=True)
    for path in () if options.in_memory else file_permissions.restrict(os.fspath(options.data)):
        print(_READABLE.format(path=path), file=sys.stderr, flush=True)
    return inprocess.open_engine(
        None if options.in_memory else options.data,
        indexes=given if options.strict_indexes else None,
        auto_indexes=None if options.strict_indexes else automatic_indexes.AutomaticIndexes(given),
        clock=now,
        durability="fast" if options.fast else "durable",
        history=options.history,
        concurrency=options.concurrency,
        built_in_indexes="eager",  # The data browser then need not compute their sizes
    )


def _exports_folder(options: argparse.Namespace) -> Path | None:
    """Return the requested folder for exports, or else a folder next to the data file."""
    given: Path | None = options.exports
    if given is not None or options.in_memory:
        return given
    return Path(f"{options.data}-exports")


def _start_admin_port(
    options: argparse.Namespace, port: int, answers: admin_port.AdminPort
) -> http_server.HttpServer | None:
    """Open the requested admin port, or else the port after the API's port."""
    if options.no_admin:
        return None
    if options.admin_port is not None:
        with _naming("--admin-port"):
            return http_server.start(answers.answer, options.admin_port)
    # The user did not request the port after the API's port, so fall back to any free port; the
    # output shows its number.
    with contextlib.suppress(OSError):
        return http_server.start(answers.answer, port + 1 if options.port else 0)
    return http_server.start(answers.answer, 0)
