"""The command line: `python -m emulator` serves, with a COMMAND it does one thing and ends.

Owns the flags. What the user got wrong is one line on stderr that names the flag or the file: exit
status 2 for a flag, 1 for what the machine or a file says. A command imports only what it needs:
the time to a server's first answer counts.
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
    "python -m emulator: warning: --host {host} lets other machines connect, and there is no "
    "password: anyone who reaches port {port} can read, change and delete all data. "
    "Use --host localhost unless you trust the whole network."
)

_READABLE = (
    "python -m emulator: warning: the permissions of {path} cannot be restricted: other users of "
    "this machine may be able to read it."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say; returns the exit status."""
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
    from emulator.cli import commands  # noqa: PLC0415 - a server needs none

    return commands.COMMANDS[options.command](options)


def _serve(options: argparse.Namespace) -> int:
    # Before any thread starts, so that all inherit it: the two signals wait for `sigwait` instead
    # of interrupting. A handler that sets an event can meet the main thread inside that event's
    # lock and hang for ever.
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
    )


def _exports_folder(options: argparse.Namespace) -> Path | None:
    """Return where clients may export to: beside the data unless somewhere else was asked for."""
    given: Path | None = options.exports
    if given is not None or options.in_memory:
        return given
    return Path(f"{options.data}-exports")


def _start_admin_port(
    options: argparse.Namespace, port: int, answers: admin_port.AdminPort
) -> http_server.HttpServer | None:
    """Open the admin port where it was asked for, or else beside the API's port."""
    if options.no_admin:
        return None
    if options.admin_port is not None:
        with _named("--admin-port"):
            return http_server.start(answers.answer, options.admin_port)
    # Nobody asked for the next port; what is printed says which one it is.
    with contextlib.suppress(OSError):
        return http_server.start(answers.answer, port + 1 if options.port else 0)
    return http_server.start(answers.answer, 0)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= _MAX_PORT):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port")
    return int(text)


def server_parser() -> argparse.ArgumentParser:
    """Return the flags of the server."""
    parser = argparse.ArgumentParser(
        prog="python -m emulator",
        description="A Datastore on one machine.",
        epilog="With COMMAND --help: export, import, backup, restore, compact, check.",
        allow_abbrev=False,
    )
    parser.add_argument("--port", type=_port, required=True, help="of gRPC; 0 picks a free one")
    parser.add_argument(
        "--host",
        default="localhost",
        help="the address to listen on; anyone who can connect to it owns the data",
    )
    admin = parser.add_mutually_exclusive_group()
    admin.add_argument(
        "--admin-port", type=_port, help="the admin port; the next one if it is free"
    )
    admin.add_argument("--no-admin", action="store_true", help="no admin port")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--data", type=Path, default=Path("datastore.sqlite"), help="the data file")
    where.add_argument("--in-memory", action="store_true", help="keep nothing")
    parser.add_argument(
        "--exports",
        type=Path,
        metavar="FOLDER",
        help="the one folder that clients may export to and import from; without: beside the data",
    )
    parser.add_argument(
        "--history",
        type=int,
        default=3600,
        metavar="SECONDS",
        help="how far back a read_time may look; 0 keeps nothing",
    )
    parser.add_argument(
        "--fast",
        action="store_true",
        help="do not wait for the disk: a power cut may lose data, a crash of the process not",
    )
    parser.add_argument("--indexes", type=Path, help="an index.yaml")
    parser.add_argument("--faults", type=Path, help="a fault plan (JSON) to start with")
    parser.add_argument(
        "--strict-indexes",
        action="store_true",
        help="refuse queries that index.yaml does not serve; without, it gets what they lack",
    )
    parser.add_argument(
        "--concurrency",
        choices=("pessimistic", "optimistic"),
        default="pessimistic",
        help="whether transactions lock what they read, as production's do by default",
    )
    parser.add_argument(
        "--clock",
        choices=("real", "manual"),
        default="real",
        help="manual: it stands still until POST /clock moves it",
    )
    parser.add_argument("--project", default="test", help="only for the printed variables")
    return parser


def command_parser() -> argparse.ArgumentParser:
    """Return the commands and their flags."""
    parser = argparse.ArgumentParser(
        prog="python -m emulator",
        description="Does one thing to a data file. Without a command: serves (--help).",
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, text: str) -> argparse.ArgumentParser:
        command = subparsers.add_parser(name, help=text, description=text, allow_abbrev=False)
        command.add_argument("--data", type=Path, required=True, help="the data file")
        return command

    command = add("export", "Write entities as lines of JSON, as of one moment.")
    for part in ("project", "database", "namespace", "kind"):
        command.add_argument(f"--{part}", help=f"only of this {part}")
    command.add_argument("target", nargs="?", default="-", help="a new file; - is standard output")
    command = add("import", "Write the entities of lines of JSON, all of them or on an error none.")
    command.add_argument("--batch", type=_count, help="commit after this many: for huge files")
    command.add_argument("source", nargs="?", default="-", help="- is standard input")
    command = add("backup", "Copy a data file as of one moment, also while it is used.")
    command.add_argument("target", type=Path, help="a new file")
    command = add("restore", "Put a copy of a backup at a data file's place.")
    command.add_argument("source", type=Path, help="the backup")
    command.add_argument("--replace", action="store_true", help="also if there is a data file")
    add("compact", "Give back the room of what was deleted.")
    add("check", "Check a data file. The status is 1 if anything is wrong with it.")
    return parser


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return int(text)
