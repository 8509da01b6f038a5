"""The command line: `python -m emulator` starts a server; with a COMMAND it runs one task.

Owns the flags. Each error is one line on stderr that names the flag or the file. A wrong flag exits
with status 2, and a machine or file error with status 1. Each command imports only what it needs,
because a server must answer its first request quickly.
"""

import argparse
import contextlib
import functools
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from emulator import clock, errors, inprocess
from emulator.admin_api import admin_service
from emulator.execution import automatic_indexes
from emulator.fault_injection import fault_plans
from emulator.server import admin_port, grpc_server, http_server
from emulator.storage import file_permissions

_STOP = frozenset({signal.SIGTERM, signal.SIGINT})
_MAX_PORT = 65_535
_WARNING = (
    "python -m emulator: warning: --host {host} lets other machines connect without a password: "
    "anyone who can reach port {port} can read, change and delete all data. "
    "Use --host localhost unless you trust the whole network."
)

_READABLE = (
    "python -m emulator: warning: cannot restrict the permissions of {path}: other users of "
    "this machine may be able to read it."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the emulator with the given arguments; return the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    is_command = bool(given) and not given[0].startswith("-")
    options = (command_parser() if is_command else server_parser()).parse_args(given)
    try:
        return _do(options) if is_command else _serve(options)
    except errors.DatastoreError as error:
        print(f"python -m emulator: {error}", file=sys.stderr)
    except OSError as error:
        text = f"{error.filename}: {error.strerror}" if error.filename else error
        print(f"python -m emulator: {text}", file=sys.stderr)
    return 1


def _do(options: argparse.Namespace) -> int:
    from emulator.cli import commands  # noqa: PLC0415 - a server does not need it

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
        with _named("--host, --port"):
            api = grpc_server.start(engine, options.host, options.port, operations)
        running.callback(api.stop)
        if not grpc_server.is_loopback(options.host):
            print(_WARNING.format(host=options.host, port=api.port), file=sys.stderr, flush=True)
        stop = functools.partial(os.kill, os.getpid(), signal.SIGTERM)
        admin = _start_admin_port(
            options, api.port, admin_port.AdminPort(engine, stop, movable, operations)
        )
        print(f"export DATASTORE_EMULATOR_HOST={options.host}:{api.port}")
        print(f"export DATASTORE_PROJECT_ID={options.project}", flush=True)
        if admin is not None:
            running.callback(admin.stop)
            print(f"export DATASTORE_EMULATOR_ADMIN=http://localhost:{admin.port}", flush=True)
        signal.sigwait(_STOP)
        running.close()
    return 0


@contextlib.contextmanager
def _named(flag: str) -> Iterator[None]:
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
        built_in_indexes="eager",  # the data browser shows their sizes without computing them
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
        with _named("--admin-port"):
            return http_server.start(answers.answer, options.admin_port)
    # The user did not request the port after the API's port, so fall back to any free port; the
    # output shows its number.
    with contextlib.suppress(OSError):
        return http_server.start(answers.answer, port + 1 if options.port else 0)
    return http_server.start(answers.answer, 0)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= _MAX_PORT):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port number")
    return int(text)


def server_parser() -> argparse.ArgumentParser:
    """Return the parser of the server's flags."""
    parser = argparse.ArgumentParser(
        prog="python -m emulator",
        description="Serve a Datastore on one machine.",
        epilog="Commands (see COMMAND --help): export, import, backup, restore, compact, check.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--port", type=_port, required=True, help="the gRPC port; 0 picks a free one"
    )
    parser.add_argument(
        "--host",
        default="localhost",
        help="the address to listen on; anyone who can connect can change all data",
    )
    admin = parser.add_mutually_exclusive_group()
    admin.add_argument(
        "--admin-port", type=_port, help="the admin port (default: the next port if free)"
    )
    admin.add_argument("--no-admin", action="store_true", help="open no admin port")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--data", type=Path, default=Path("datastore.sqlite"), help="the data file")
    where.add_argument("--in-memory", action="store_true", help="keep the data in memory only")
    parser.add_argument(
        "--exports",
        type=Path,
        metavar="FOLDER",
        help="the folder that clients may export to and import from (default: next to the data)",
    )
    parser.add_argument(
        "--history",
        type=int,
        default=3600,
        metavar="SECONDS",
        help="how far back read_time can read; 0 keeps no history",
    )
    parser.add_argument(
        "--fast",
        action="store_true",
        help="do not wait for the disk: a power loss can lose data, but a process crash cannot",
    )
    parser.add_argument("--indexes", type=Path, help="an index.yaml")
    parser.add_argument("--faults", type=Path, help="a fault plan (JSON) to start with")
    parser.add_argument(
        "--strict-indexes",
        action="store_true",
        help="refuse queries that need an index missing from index.yaml (default: add the index)",
    )
    parser.add_argument(
        "--concurrency",
        choices=("pessimistic", "optimistic"),
        default="pessimistic",
        help="pessimistic: transactions lock what they read, as in Google's service by default",
    )
    parser.add_argument(
        "--clock",
        choices=("real", "manual"),
        default="real",
        help="manual: only POST /clock moves the clock",
    )
    parser.add_argument("--project", default="test", help="the project id in the printed variables")
    return parser


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the commands and their flags."""
    parser = argparse.ArgumentParser(
        prog="python -m emulator",
        description="Run one task on a data file. Without a command, serve (see --help).",
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, text: str) -> argparse.ArgumentParser:
        command = subparsers.add_parser(name, help=text, description=text, allow_abbrev=False)
        command.add_argument("--data", type=Path, required=True, help="the data file")
        return command

    command = add("export", "Write a consistent snapshot of the entities as lines of JSON.")
    for part in ("project", "database", "namespace", "kind"):
        command.add_argument(f"--{part}", help=f"export only this {part}")
    command.add_argument("target", nargs="?", default="-", help="a new file; - is standard output")
    command = add(
        "import", "Import entities from lines of JSON: all of them, or none after an error."
    )
    command.add_argument(
        "--batch", type=_count, help="commit after this many entities, for huge files"
    )
    command.add_argument("source", nargs="?", default="-", help="- is standard input")
    command = add("backup", "Copy a consistent snapshot of a data file, even while it is in use.")
    command.add_argument("target", type=Path, help="a new file")
    command = add("restore", "Restore a data file from a backup.")
    command.add_argument("source", type=Path, help="the backup")
    command.add_argument("--replace", action="store_true", help="replace an existing data file")
    add("compact", "Release the disk space of deleted data.")
    add("check", "Check a data file. The exit status is 1 if it has problems.")
    return parser


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)
