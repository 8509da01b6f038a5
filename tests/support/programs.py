"""Start the project's own programs as users do, and send HTTP requests to them."""

import contextlib
import os
import queue
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent
# The command `flatthread`, for programs whose current folder is the project's.
FLATTHREAD: tuple[str | Path, ...] = (sys.executable, "-m", "flatthread")
# Timeout in seconds. The timeout is long because the machine may be busy; the error message names
# the awaited condition.
PATIENCE = 60


class Program:
    """A running program with its output collected line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self._new: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            self._new.put(line)
        self._new.put(None)

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Wait for a line of output; fail with all output if the program ends or time runs out."""
        end = time.monotonic() + PATIENCE
        while True:
            try:
                line = self._new.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise TimeoutError(f"no line like {pattern!r} in {self.lines}") from None
            if line is None:
                raise AssertionError(f"ended without a line like {pattern!r}: {self.lines}")
            if found := re.search(pattern, line):
                return found

    def stop(self) -> int:
        """Send SIGTERM, wait until the program ends, and return its exit status."""
        self.process.terminate()
        status = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return status


@contextlib.contextmanager
def running(
    command: Sequence[str | Path], *, environ: Mapping[str, str], cwd: Path = ROOT
) -> Iterator[Program]:
    """Run a program until the block ends, with stdout and stderr merged."""
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=environ,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        program = Program(process)
        try:
            yield program
        finally:
            if process.poll() is None:
                program.stop()


def run(
    command: Sequence[str | Path], *, cwd: str | Path, **settings: str
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end with `settings` in its environment, and capture its output."""
    return subprocess.run(
        command,
        cwd=cwd,
        env=environment(**settings),
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def environment(**settings: str) -> dict[str, str]:
    """Return a plain user's environment: PATH, a home, and `settings`.

    The environment excludes coverage's variables, because these programs run from copies that no
    longer exist when coverage reports.
    """
    kept = ("PATH", "HOME", "LANG", "TMPDIR", "PIP_FIND_LINKS", "PIP_CERT")
    return {name: os.environ[name] for name in kept if name in os.environ} | settings


def copy_project(target: Path, *, without: Path | None = None) -> Path:
    """Copy all files that git tracks or would track, without those that an ignore file excludes."""
    names = _listed("--cached", "--others", "--exclude-standard")
    if without is not None:
        ignored = ["--cached", "--others", "--ignored", f"--exclude-from={without}"]
        names -= _listed(*ignored)
    for name in names:
        if (ROOT / name).exists():  # git also lists files whose deletion is uncommitted
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target / name, follow_symlinks=False)
    return target


def borrow_environment(folder: Path, *, lender: Path = BIN.parent) -> None:
    """Link a copy of the project to the installed packages, in the layout of scripts/venv.

    The folder and its `bin` contain links but are not links themselves: clearing the copy's
    environment removes only links, and scripts/venv adds the copy's own command.
    """
    venv = folder / ".venv"
    (venv / "bin").mkdir(parents=True)
    for each in (*lender.iterdir(), *(lender / "bin").iterdir()):
        if each.name not in {"bin", "flatthread"}:
            (venv / each.relative_to(lender)).symlink_to(each)
    for name in ("requirements.txt", "requirements-dev.txt"):
        stamp = venv / f"installed-{name}"
        stamp.unlink(missing_ok=True)
        shutil.copy(folder / name, stamp)


def write(path: Path, text: str) -> None:
    """Write a program, in a new folder if necessary."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def tracked() -> set[str]:
    """Return the names of all files that git tracks."""
    return _listed("--cached")


def _listed(*options: str) -> set[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", *options], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return set(listed.stdout.split("\0")) - {""}


def fetch(
    url: str, *, method: str = "GET", body: bytes | None = None, **headers: str
) -> tuple[int, bytes]:
    """Send one HTTP request without a proxy. Callers write header names with underscores."""
    request = urllib.request.Request(  # noqa: S310 - tests pass only our own addresses
        url,
        data=body,
        method=method,
        headers={name.replace("_", "-"): value for name, value in headers.items()},
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=PATIENCE) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


def unshare() -> list[str]:
    """Return the command prefix that gives a program separate mounts."""
    as_root = ["unshare", "--mount"]
    return as_root if os.geteuid() == 0 else [*as_root, "--map-root-user"]


def can_mount() -> bool:
    """Return whether `unshare` works on this machine."""
    try:
        tried = subprocess.run(
            [*unshare(), "mount", "-t", "tmpfs", "tmpfs", "/tmp"],  # noqa: S108
            check=False,
            capture_output=True,
        )
    except FileNotFoundError:
        return False
    return tried.returncode == 0


def wait_until(is_so: Callable[[], object], what: str = "") -> None:
    """Wait for a condition; fail with the message `what` if it does not become true."""
    pause = threading.Event()
    for _ in range(PATIENCE * 1_000):
        if is_so():
            return
        pause.wait(0.001)
    raise TimeoutError(what or is_so)
