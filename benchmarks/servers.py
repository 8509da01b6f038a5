"""Servers as in production: gunicorn on a free port, with its start time and memory measured.

`product` runs what `flatthread serve` runs, on a data folder; `floor` runs a floor (`floors`) with
the same number of workers and threads. Each server ends when its block ends. `command` runs a
command of the product on the same data folder.
"""

import contextlib
import http.client
import os
import random
import runpy
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO

from benchmarks.measuring import ROOT
from benchmarks.threads import loading

CONFIG = ROOT / "flatthread" / "serving.py"
_PATIENCE = 60.0
_PAUSE = 0.002
# Benchmarks look like bots: they use one network and one text, and solve no challenge.
OPEN = dict.fromkeys(
    ("PROOF_OF_WORK", "POSTS_PER_NETWORK", "POSTS_PER_AUTHOR", "POSTS_PER_THREAD", "SAME_TEXTS"),
    "0",
)
_REST = 0.1  # Within this many seconds, an idle server uses less than `_IDLE` seconds.
_IDLE = 0.002
SECRET = "a secret of the benchmarks, long enough"  # noqa: S105 - nothing signed with it is kept


class Server:
    """A running gunicorn. `started` is the number of seconds until the server answered a path."""

    def __init__(self, process: "subprocess.Popen[bytes]", port: int) -> None:
        self._process = process
        self.port = port
        self.started = 0.0

    def ask(
        self, path: str, headers: Mapping[str, str] | None = None, body: str = ""
    ) -> tuple[int, bytes, str]:
        """Send one request, a POST if it has a body; return the status, raw body and tag."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE)
        with contextlib.closing(connection):
            method = "POST" if body else "GET"
            connection.request(method, path, body=body or None, headers=dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.read(), answer.getheader("ETag", "")

    def wait(self, path: str, since: float) -> None:
        """Repeat a request until there is an answer."""
        while time.perf_counter() - since < _PATIENCE:
            if self._process.poll() is not None:
                raise SystemExit(f"the server ended with {self._process.returncode}")
            with contextlib.suppress(OSError, http.client.HTTPException):
                status, _, _ = self.ask(path)
                if status == 200:
                    self.started = time.perf_counter() - since
                    return
            time.sleep(_PAUSE)
        raise SystemExit(f"no answer at {path} within {_PATIENCE:.0f} s")

    def memory(self) -> int:
        """Return the bytes that the server's processes use, counting shared pages once (PSS)."""
        return sum(map(_shared_bytes, _tree(self._process.pid)))

    def worked(self) -> float:
        """Return the processor seconds of all threads of the server."""
        tasks = (each for pid in _tree(self._process.pid) for each in _tasks(pid))
        return sum(map(_nanoseconds, tasks)) / 1e9

    def settle(self) -> None:
        """Wait until the server is idle, because its workers start in turn."""
        before, until = -1.0, time.perf_counter() + _PATIENCE
        while (now := self.worked()) - before > _IDLE and time.perf_counter() < until:
            before = now
            time.sleep(_REST)

    def kill(self) -> None:
        """Kill all processes of the server (SIGKILL), and wait until the first one has ended."""
        for pid in _tree(self._process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait(_PATIENCE)

    def kill_worker(self, chance: random.Random) -> bool:
        """Kill one worker of the server; return whether there was one."""
        workers = _tree(self._process.pid)[1:]
        if workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(workers), signal.SIGKILL)
        return bool(workers)

    def stop(self) -> None:
        """Stop the server, and wait until it has ended."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(_PATIENCE)


@contextlib.contextmanager
def product(
    data: Path,
    first: str,
    *,
    rules: Mapping[str, str] = OPEN,
    workers: int | None = None,
    log: Path | None = None,
) -> Iterator[Server]:
    """Run the product on a data folder, and wait until it answers `first`.

    `rules` are the post limits. The log is written to a file, by default to standard error.
    """
    environ = _settings_of(data) | dict(rules)
    number = [] if workers is None else ["--workers", str(workers)]
    with contextlib.ExitStack() as stack:
        errors = None if log is None else stack.enter_context(log.open("wb"))
        arguments = ["--config", str(CONFIG), *number, "main:app"]
        yield stack.enter_context(_running(arguments, environ, first, errors))


def _settings_of(data: Path) -> dict[str, str]:
    return {
        "DATASTORE_PROJECT_ID": loading.PROJECT,
        "FLATTHREAD_DATA": str(data),
        "SECRET": SECRET,
        "SORT_HASH_LEVELS": str(loading.SCHEME.levels),
    }


def command(
    data: Path, *words: str, environ: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    """Run a command of the product on a data folder."""
    return subprocess.run(
        _words(*words),
        cwd=ROOT,
        env=without_settings() | _settings_of(data) | dict(environ or {}),
        capture_output=True,
        text=True,
        check=False,
    )


def started(data: Path, *words: str) -> "subprocess.Popen[bytes]":
    """Start a command of the product on a data folder. Its output is dropped."""
    return subprocess.Popen(
        _words(*words),
        cwd=ROOT,
        env=without_settings() | _settings_of(data),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _words(*words: str) -> list[str]:
    return [sys.executable, "-m", "flatthread", *words]


def problems(data: Path) -> Iterator[str]:
    """Yield what `repair` and `recount` find in a data folder."""
    for words in (("repair",), ("recount", "--no-fix")):
        done = command(data, *words)
        if done.returncode:
            yield f"{' '.join(words)}: {done.stdout[-2_000:]}{done.stderr[-2_000:]}"


@contextlib.contextmanager
def floor(bodies: Path, app: str = "flask()") -> Iterator[Server]:
    """Run an application of `floors` on the files in a folder, in the same way as the product."""
    settings = runpy.run_path(str(CONFIG))
    arguments = ["--workers", str(settings["workers"]), "--threads", str(settings["threads"])]
    arguments += ["--preload", "--no-control-socket", "--log-level", settings["loglevel"]]
    first = f"/{next(bodies.iterdir()).name}"
    arguments.append(f"benchmarks.floors:{app}")
    with _running(arguments, {"SERVED": str(bodies)}, first) as server:
        yield server


@contextlib.contextmanager
def _running(
    arguments: list[str], environ: dict[str, str], first: str, errors: IO[bytes] | None = None
) -> Iterator[Server]:
    port = free_port()
    start = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "gunicorn", "--bind", f"127.0.0.1:{port}", *arguments],
        cwd=ROOT,
        env=without_settings() | environ,
        stdout=subprocess.DEVNULL,
        stderr=errors,
    )
    server = Server(process, port)
    try:
        server.wait(first, start)
        yield server
    finally:
        server.stop()


def without_settings() -> dict[str, str]:
    """Return the environment of a user who has set nothing."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR")
    return {name: os.environ[name] for name in kept if name in os.environ}


def free_port() -> int:
    """Return a free port of the loopback address."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


def _tree(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    return [pid, *(each for child in children for each in _tree(int(child)))]


def _tasks(pid: int) -> Iterator[Path]:
    """Yield each thread's statistics file, which begins with its processor nanoseconds."""
    return Path(f"/proc/{pid}/task").glob("*/schedstat")


def _nanoseconds(task: Path) -> int:
    """Return the processor time of a thread, or 0 if the thread has ended."""
    try:
        return int(task.read_text(encoding="ascii").split()[0])
    except FileNotFoundError:
        return 0


def _shared_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0
