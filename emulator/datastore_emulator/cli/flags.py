"""The flags of the command line.

Owns the parsers, and the list of Google's emulators' flags. The parsers accept the flags that have
the same meaning here; for each other flag, the error names the replacement.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from datastore_emulator import __version__

DATA_FILE = Path("datastore.sqlite")
_START = "start"  # A command of Google's emulators
ENV_INIT = "env-init"  # A command of Google's emulators that prints variables for the shell
_PORT = 8081  # The port of `gcloud emulators datastore start`
_MAX_PORT = 65_535

# Flags of `gcloud emulators datastore start`, `gcloud emulators firestore start` and the programs
# that they start. The value says what to do instead.
_ANSWERS = {
    "--consistency": "leave it out, because every read is consistent",
    "--database-mode": "leave it out, because there is only the Datastore mode",
    "--export-on-exit": "use --data FILE, and the command export",
    "--firestore_in_datastore_mode": "leave it out, because there is no other mode",
    "--import-data": "use --data FILE, and the command import",
    "--index_file": "use --indexes FILE",
    "--no-store-on-disk": "use --in-memory",
    "--require_indexes": "use --strict-indexes",
    "--storage_file": "use --data FILE",
    "--store-on-disk": "leave it out, because data is stored unless you give --in-memory",
    "--store_on_disk": "use --in-memory, or leave it out to store data",
    "--testing": "use --in-memory",
    "--use-firestore-in-datastore-mode": "leave it out, because there is no other mode",
}


class _Parser(argparse.ArgumentParser):
    """Reports a wrong flag in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} ({self.prog} --help lists all flags)\n")


class _Answer(argparse.Action):
    """Ends the program with the answer to a flag of Google's emulators."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        _namespace: argparse.Namespace,
        _given: object,
        option: str | None = None,
    ) -> None:
        parser.error(f"{option} is a flag of Google's emulator: {_ANSWERS[option or '']}")


def parse(given: Sequence[str]) -> tuple[bool, argparse.Namespace]:
    """Return whether the arguments name a command, and the options.

    `options.program` is the program to run beside the server, or empty. Wrong arguments end the
    program with status 2.
    """
    command = given[0] if given and not given[0].startswith("-") else None
    if command not in {None, _START, ENV_INIT}:
        return True, command_parser().parse_args(given)
    parser = server_parser()
    arguments = list(given[1:] if command else given)
    end = arguments.index("--") if "--" in arguments else len(arguments)
    options = parser.parse_args(arguments[:end])
    options.command = command
    options.program = arguments[end + 1 :]
    if end < len(arguments) and not options.program:
        parser.error("-- needs a program to run")
    if options.host_port is not None:
        options.host, options.port = options.host_port
    elif options.port is None:
        options.port = 0 if options.program else _PORT
    if command == ENV_INIT and options.port == 0:
        parser.error(f"{ENV_INIT} needs the port that the server has printed")
    if options.data_dir is not None:
        options.data = options.data_dir / DATA_FILE
    return command == ENV_INIT, options


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and int(text) <= _MAX_PORT):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port number")
    return int(text)


def _host_port(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host or "localhost", _port(port)


def server_parser() -> argparse.ArgumentParser:
    """Return the parser of the server's flags."""
    parser = _Parser(
        prog="datastore-emulator",
        usage="%(prog)s [FLAGS] [-- PROGRAM ...]\n       %(prog)s COMMAND ...",
        description="Serve a Datastore on one machine, until Ctrl-C or while PROGRAM runs. PROGRAM "
        "gets the server's address in its environment, and its exit status is the command's.",
        epilog="Commands, each with its own --help: export, import, backup, restore, compact, "
        "check. env-init, with the flags of a server, prints the variables for its clients.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    _add_address(parser.add_argument_group("address"))
    _add_data(parser.add_argument_group("data"))
    _add_behavior(parser.add_argument_group("behavior"))
    for flag in _ANSWERS:
        parser.add_argument(flag, nargs="?", action=_Answer, help=argparse.SUPPRESS)
    return parser


def _add_address(group: Any) -> None:
    at = group.add_mutually_exclusive_group()
    at.add_argument(
        "--port",
        type=_port,
        help=f"the port of the API; 0 picks a free one (default: {_PORT}; 0 with PROGRAM)",
    )
    at.add_argument(
        "--host-port",
        type=_host_port,
        metavar="HOST:PORT",
        help="the host and the port, as for Google's emulator",
    )
    group.add_argument(
        "--host",
        default="localhost",
        help="the address to listen on; anyone who can connect can change all data "
        "(default: %(default)s)",
    )
    admin = group.add_mutually_exclusive_group()
    admin.add_argument(
        "--admin-port",
        type=_port,
        metavar="PORT",
        help="the port of the data browser and the controls (default: the next port if free)",
    )
    admin.add_argument("--no-admin", action="store_true", help="open no admin port")
    group.add_argument(
        "--project",
        default="test",
        help="the project id in the printed variables (default: %(default)s)",
    )


def _add_data(group: Any) -> None:
    where = group.add_mutually_exclusive_group()
    where.add_argument(
        "--data",
        type=Path,
        default=DATA_FILE,
        metavar="FILE",
        help="the data file (default: %(default)s)",
    )
    where.add_argument(
        "--data-dir",
        type=Path,
        metavar="FOLDER",
        help=f"a folder for the data file {DATA_FILE}, as for Google's emulator",
    )
    where.add_argument("--in-memory", action="store_true", help="keep the data in memory only")
    group.add_argument(
        "--fast",
        action="store_true",
        help="do not wait for the disk: a power loss can lose data, but a process crash cannot",
    )
    group.add_argument(
        "--history",
        type=_seconds,
        default=3600,
        metavar="SECONDS",
        help="how far back read_time can read; 0 keeps no history (default: %(default)s)",
    )
    group.add_argument(
        "--exports",
        type=Path,
        metavar="FOLDER",
        help="the folder that clients may export to and import from (default: next to the data)",
    )


def _add_behavior(group: Any) -> None:
    group.add_argument(
        "--indexes", type=Path, metavar="FILE", help="an index.yaml; the file can be empty"
    )
    group.add_argument(
        "--strict-indexes",
        action="store_true",
        help="refuse queries that need an index missing from index.yaml (default: add the index)",
    )
    group.add_argument(
        "--concurrency",
        choices=("pessimistic", "optimistic"),
        default="pessimistic",
        help="pessimistic: transactions lock what they read, as in Google's service by default",
    )
    group.add_argument(
        "--clock",
        choices=("real", "manual"),
        default="real",
        help="manual: only POST /clock moves the clock",
    )
    group.add_argument(
        "--faults", type=Path, metavar="FILE", help="a fault plan (JSON) to start with"
    )


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the commands and their flags."""
    parser = _Parser(
        prog="datastore-emulator",
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


def _seconds(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return int(text)
