"""Start the product under load: check that every process survives its first seconds.

Each start runs the product as scripts/serve does, with varying numbers of workers, on new data. As
soon as the product prints its URL, while other workers are still starting, eight writers post to
one thread, each on its own connection. If a worker dies, gunicorn's log shows this, with the stacks
of all threads (faulthandler). A closed connection and a missing acknowledged comment also count as
failures. The logs of failed starts are kept.
"""

import contextlib
import dataclasses
import itertools
import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from benchmarks import clients, measuring, servers
from benchmarks.bars import Bar

WORKERS = (2, 4, 8)
EACH = 100  # Starts with each number of workers.
SECONDS, QUICK_SECONDS = 1.5, 0.5  # How long the writers post.
_SAID = re.compile(rb"answers at http://[^:]+:(\d+)/")
_DIED = re.compile(r"Fatal Python error|was sent SIG|Traceback|exited with code|WORKER TIMEOUT")
_PATH = "/api/v1/sites/demo/comments?thread=page"
_PATIENCE = 60.0
_PAUSE = 0.01


@dataclasses.dataclass(slots=True)
class Start:
    """The result of one start. `faults` is empty if the start succeeded."""

    posts: int = 0
    faults: list[str] = dataclasses.field(default_factory=list)
    log: str = ""


@contextlib.contextmanager
def running(folder: Path, workers: int) -> Iterator[int]:
    """Run the product until the block ends; yield the port in its URL."""
    command = [sys.executable, "-m", "gunicorn", "--config", str(servers.CONFIG)]
    environ = servers.without_settings() | servers.OPEN
    environ |= {"PORT": "0", "DATA_DIR": str(folder / "data"), "SECRET": servers.SECRET}
    (folder / "data").mkdir()
    with (folder / "log").open("wb") as log, (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [*command, "--workers", str(workers), "main:app"],
            cwd=measuring.ROOT,
            env=environ,
            stdout=said,
            stderr=log,
        )
        try:
            yield _port(process, folder / "said")
        finally:
            process.terminate()
            process.wait(_PATIENCE)


def _port(process: "subprocess.Popen[bytes]", said: Path) -> int:
    end = time.monotonic() + _PATIENCE
    while time.monotonic() < end and process.poll() is None:
        if found := _SAID.search(said.read_bytes()):
            return int(found[1])
        time.sleep(_PAUSE)
    raise SystemExit(f"the product ended, or printed no URL: {process.poll()}")


def begin(folder: Path, workers: int, seconds: float) -> Start:
    """Start once, under load."""
    found = Start()
    with running(folder, workers) as port:
        requests = [
            clients.post_request(_PATH, {"name": f"writer {number}", "body": clients.TEXT})
            for number in range(clients.CLIENTS)
        ]
        try:
            found.posts = clients.post(port, list(map(itertools.repeat, requests)), seconds).posts
        except (SystemExit, OSError) as error:
            found.faults.append(f"a connection failed: {error}")
        else:
            total = _total(port)
            if total != found.posts:
                found.faults.append(f"{found.posts} comments were acknowledged, {total} exist")
    found.log = (folder / "log").read_text(encoding="utf-8", errors="replace")
    found.faults += [line for line in found.log.splitlines() if _DIED.search(line)]
    return found


def _total(port: int) -> int:
    url = f"http://127.0.0.1:{port}{_PATH}&limit=1"
    with urllib.request.urlopen(url, timeout=_PATIENCE) as answer:
        total: int = json.load(answer)["total"]
    return total


def bars(*, quick: bool) -> Iterator[Bar]:
    """Start under load."""
    starts, seconds = (1, QUICK_SECONDS) if quick else (EACH, SECONDS)
    for workers in WORKERS[:1] if quick else WORKERS:
        found = [_kept(workers, seconds) for _ in range(starts)]
        failed = sum(bool(each.faults) for each in found)
        detail = f"of {len(found)} starts with {sum(each.posts for each in found):,} posts"
        yield Bar(f"starts, {workers} workers", failed, 0, detail, unit="faults")


def _kept(workers: int, seconds: float) -> Start:
    """Start once; if there was a fault, keep the log and name it."""
    with tempfile.TemporaryDirectory(prefix="start-") as name:
        found = begin(Path(name), workers, seconds)
    if found.faults:
        log = Path(tempfile.mkdtemp(prefix="starts-")) / "log"
        log.write_text(found.log, encoding="utf-8")
        print(f"{workers} workers: {found.faults}; {log}", flush=True)
    return found
