"""Run programs of tests in processes of their own that have already imported the service.

A test of kills, stops or races needs real processes, but no second import of the service, which
takes most of a small program's time. Python's fork server imports the modules once for each worker
of pytest. It has only one thread, and forks a process for each program. A test of starting and
importing starts a program with `programs` instead.
"""

import contextlib
import faulthandler
import multiprocessing
import os
import runpy
import signal
import sys
import threading
import types
from collections.abc import Callable
from multiprocessing import connection
from pathlib import Path
from typing import IO, Any, Self

from tests.support.programs import PATIENCE

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        "pytest",
        "comments.app",
        "comments.upkeep.background_worker",
        "comments.upkeep.integrity.repair",
        "comments.upkeep.scheduler",
        "comments.upkeep.wiring",
        "datastore_emulator.faults",
        "datastore_emulator.inprocess",
        "emulator.tests.support.ledger_writer",
        "emulator.tests.support.service_calls",
        "tests.support.people.proof_solver",
        "tests.support.threads.compaction",
        "tests.support.threads.raw_changes",
        "tests.support.threads.reader_processes",
        "tests.support.threads.sample_exports",
        "tests.support.threads.sample_votes",
    ]
)


class Program:
    """A running program, with pipes to its stdin and from its stdout, and with our stderr."""

    def __init__(self, program: str | Callable[..., object], arguments: tuple[Any, ...]) -> None:
        theirs_in, ours_in = _CONTEXT.Pipe(duplex=False)
        ours_out, theirs_out = _CONTEXT.Pipe(duplex=False)
        theirs = (theirs_in, theirs_out, connection.Connection(os.dup(2)))
        self._process = _CONTEXT.Process(
            target=_main, args=(program, arguments, theirs), daemon=True
        )
        self._process.start()
        for each in theirs:
            each.close()
        self.stdin = _opened(ours_in, "w")
        self.stdout = _opened(ours_out, "r")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """Wait for the end; after an error of the test, kill the program."""
        if error is not None:
            self.kill()
        self.wait()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit status, the negative number of the signal that killed it, or None."""
        return self._process.exitcode

    def send_signal(self, number: int) -> None:
        """Send a signal, as `subprocess.Popen` does: a program that has ended gets none."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def kill(self) -> None:
        self._process.kill()

    def wait(self, seconds: float = PATIENCE) -> int:
        """Wait for the end, and return the exit status."""
        with contextlib.suppress(BrokenPipeError):
            self.stdin.close()
        self._process.join(seconds)
        status = self._process.exitcode
        if status is None:
            self.kill()
            raise TimeoutError(f"the program did not end within {seconds} seconds")
        self.stdout.close()
        return status

    def output(self, seconds: float = PATIENCE) -> str:
        """Close stdin, and return the remaining output when the program has ended."""
        is_late = threading.Event()
        watchdog = threading.Timer(seconds, lambda: (is_late.set(), self.kill()))
        watchdog.start()
        try:
            self.stdin.close()
            found = self.stdout.read()
            self.wait(seconds)
        finally:
            watchdog.cancel()
        if is_late.is_set():
            raise TimeoutError(f"the program did not end within {seconds} seconds: {found}")
        return found


def start(program: str | Callable[..., object], *arguments: Any) -> Program:
    """Start a program: a text, the dotted name of a module, or a function of a module."""
    return Program(program, arguments)


def run(
    program: str | Callable[..., object], *arguments: Any, seconds: float = PATIENCE
) -> tuple[int, str]:
    """Run a program to its end; return its exit status and its output."""
    with start(program, *arguments) as started:
        output = started.output(seconds)
    return started.wait(), output


def fork() -> int:
    """Fork the test's own process, as `os.fork` does; a child that hangs is killed.

    Then the parent's pipes to the child end, and its exit status is that of SIGALRM.
    """
    child = os.fork()
    if not child:
        signal.alarm(PATIENCE)
    return child


def is_stopped(pid: int) -> bool:
    """Return whether a signal has stopped a process."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].startswith("T")


def _opened(end: connection.Connection, mode: str) -> IO[str]:
    """Return a file for an end of a pipe, and close the end itself."""
    with end:
        return open(os.dup(end.fileno()), mode, encoding="utf-8")  # noqa: PTH123 - a descriptor


def _main(
    program: str | Callable[..., object],
    arguments: tuple[Any, ...],
    ends: tuple[connection.Connection, ...],
) -> None:
    """Run in the new process."""
    for number, end in enumerate(ends):
        os.dup2(end.fileno(), number)
        end.close()
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - as Python does
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    faulthandler.enable()  # Prints the stacks of a program that crashes, for example in SQLite
    if callable(program):
        program(*arguments)
        return
    sys.argv = ["", *map(str, arguments)]
    if "\n" not in program:
        runpy.run_module(program, run_name="__main__")
        return
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    exec(compile(program, "<program>", "exec"), vars(module))  # noqa: S102 - a test's own program
