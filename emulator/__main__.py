"""`python -m emulator`: a Datastore for clients in any language.

Owns the command line. It prints the variables that clients need, answers until SIGTERM or SIGINT,
and then lets running requests finish.
"""

import argparse
import importlib.util
import signal
import sys
import types
from collections.abc import Sequence
from pathlib import Path

_CLIENT = "google.cloud.datastore_v1"
_STOP = frozenset({signal.SIGTERM, signal.SIGINT})

if __name__ == "__main__":
    # The message definitions lie inside the client library, and importing that takes longer than
    # everything else together. This process is no client: a bare package in its place, with the
    # same files below it, halves the time to the first answer.
    found = importlib.util.find_spec(_CLIENT)
    if found is not None and found.submodule_search_locations is not None:
        package = types.ModuleType(_CLIENT)
        package.__path__ = list(found.submodule_search_locations)
        sys.modules[_CLIENT] = package

from emulator import errors, faults, inprocess, server  # noqa: E402 - only behind the bare package


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to stop; returns the exit status."""
    options = _parser().parse_args(arguments)
    if options.concurrency == "pessimistic":
        print("--concurrency pessimistic is not available yet", file=sys.stderr)
        return 2
    # Before any thread starts, so that all inherit it: the two signals wait for `sigwait` instead
    # of interrupting. A handler that sets an event can meet the main thread inside that event's
    # lock and hang for ever.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP)
    try:
        return _serve(options)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _serve(options: argparse.Namespace) -> int:
    try:
        plan = None if options.faults is None else faults.Plan.parse(options.faults.read_bytes())
        engine = inprocess.open_engine(
            None if options.in_memory else options.data, indexes=options.indexes
        )
    except (errors.DatastoreError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    with engine:
        engine.install_faults(plan)
        try:
            running = server.start(engine, options.host, options.port)
        except OSError as error:
            print(error, file=sys.stderr)
            return 1
        print(f"export DATASTORE_EMULATOR_HOST={options.host}:{running.port}")
        print(f"export DATASTORE_PROJECT_ID={options.project}", flush=True)
        signal.sigwait(_STOP)
        running.stop()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m emulator", description="A Datastore on one machine."
    )
    parser.add_argument("--port", type=int, required=True, help="0 picks a free one")
    parser.add_argument("--host", default="localhost")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--data", type=Path, default=Path("datastore.sqlite"), help="the data file")
    where.add_argument("--in-memory", action="store_true", help="keep nothing")
    parser.add_argument("--indexes", type=Path, help="an index.yaml")
    parser.add_argument("--faults", type=Path, help="a fault plan (JSON) to start with")
    parser.add_argument(
        "--strict-indexes",
        action="store_true",
        help="refuse queries that index.yaml does not serve (always so, until there is a choice)",
    )
    parser.add_argument(
        "--concurrency", choices=("pessimistic", "optimistic"), default="optimistic"
    )
    parser.add_argument("--project", default="test", help="only for the printed variables")
    return parser


if __name__ == "__main__":
    sys.exit(main())
