"""How long readers and posters wait while an import runs beside the server.

One reader asks for first pages of the imported threads in turn, and one poster posts to them, first
without an import, then during one. The import is the `import` command in a process of its own.
"""

import contextlib
import json
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from benchmarks.importing import export_files
from benchmarks.serving import gunicorn_process

SITE = "bench"
_CLIENTS = ("reader", "poster")


class Waits(NamedTuple):
    """The seconds of each answered request, in ascending order."""

    seconds: list[float]

    def part(self, share: float) -> float:
        """Return a percentile; `share` is below 1."""
        return self.seconds[int(len(self.seconds) * share)]


class Latencies(NamedTuple):
    """The waits of each client before and during the import, and the seconds of the import."""

    before: dict[str, Waits]
    during: dict[str, Waits]
    seconds: float


def measure(folder: Path, count: int, seconds: float) -> Latencies:
    """Import `count` comments beside a server. Measure for `seconds` before the import.

    Raises:
        SystemExit: a request or the import failed.
    """
    data, file = folder / "data", folder / "export.xml"
    export_files.write(file, "disqus", count)
    added = gunicorn_process.command(data, "site", "add", SITE, "--origin", export_files.ORIGIN)
    if added.returncode:
        raise SystemExit(added.stderr)
    pages = range(1, -(-count // export_files.LARGEST) + 1)
    names = [quote(f"blog.example/posts/{page}", "") for page in pages]
    paths = [f"/api/v1/sites/{SITE}/comments?thread={name}" for name in names]
    with gunicorn_process.product(data, "/healthz") as server:
        for path in paths:
            _post(server, path, "first")
        server.settle()
        until = time.perf_counter() + seconds
        before = _waits(server, paths, lambda: time.perf_counter() < until)
        since = time.perf_counter()
        with _importing(data, file) as process:
            during = _waits(server, paths, lambda: process.poll() is None)
        return Latencies(before, during, time.perf_counter() - since)


@contextlib.contextmanager
def _importing(data: Path, file: Path) -> "Iterator[subprocess.Popen[bytes]]":
    words = ["import", str(file), "--site", SITE]
    with gunicorn_process.started(data, *words) as process:
        yield process
        if process.wait():
            raise SystemExit(f"the import ended with {process.returncode}")


def _waits(
    server: gunicorn_process.Server, paths: list[str], goes_on: Callable[[], bool]
) -> dict[str, Waits]:
    found: dict[str, list[float]] = {name: [] for name in _CLIENTS}
    failed: list[BaseException] = []

    def client(name: str) -> None:
        ask = _post if name == "poster" else _read
        try:
            while goes_on():
                since = time.perf_counter()
                ask(server, paths[len(found[name]) % len(paths)], f"{len(found[name])}")
                found[name].append(time.perf_counter() - since)
        except BaseException as error:  # noqa: BLE001 - raised below, in the main thread
            failed.append(error)

    threads = [threading.Thread(target=client, args=(name,)) for name in _CLIENTS]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    for error in failed:
        raise error
    return {name: Waits(sorted(seconds)) for name, seconds in found.items()}


def _read(server: gunicorn_process.Server, path: str, _text: str) -> None:
    _check(server.ask(path)[0], 200)


def _post(server: gunicorn_process.Server, path: str, text: str) -> None:
    body = json.dumps({"name": "Ann", "body": f"I have read this: {text}"})
    _check(server.ask(path, {"Content-Type": "application/json"}, body)[0], 201)


def _check(status: int, expected: int) -> None:
    if status != expected:
        raise SystemExit(f"the server answered {status}")
