"""Start the product under load: check that every process survives its first seconds.

Each start runs the product as scripts/serve does, with varying numbers of workers, on new data. As
soon as the product prints its URL, while other workers are still starting, eight writers post to
one thread, each on its own connections. If a worker dies, gunicorn's log shows this, with the
stacks of all threads (faulthandler). A closed connection and a missing acknowledged comment also
count as failures.

    python -m benchmarks.serving.starts [--starts 300] [--workers 2,4,8] [--writers 8]
                                        [--seconds 1.5]

The program prints Markdown; the logs of failed starts are kept. 300 starts take half an hour.
"""

import argparse
import contextlib
import dataclasses
import http.client
import itertools
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.bars import Bar
from benchmarks.serving import gunicorn_process, posters

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
def running(folder: Path, workers: int) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """Run the product until the block ends; yield the process and the port in its URL."""
    command = [sys.executable, "-m", "gunicorn", "--config", "scripts/serving.py"]
    environ = gunicorn_process.without_settings() | gunicorn_process.OPEN
    environ |= {"PORT": "0", "DATA_DIR": str(folder / "data"), "SECRET": gunicorn_process.SECRET}
    (folder / "data").mkdir()
    with (folder / "log").open("wb") as log, (folder / "said").open("wb") as said:
        process = subprocess.Popen(
            [*command, "--workers", str(workers), "main:app"],
            cwd=gunicorn_process.ROOT,
            env=environ,
            stdout=said,
            stderr=log,
        )
        try:
            yield process, _port(process, folder / "said")
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


def begin(folder: Path, workers: int, writers: int, seconds: float) -> Start:
    """Start once, under load."""
    found = Start()
    with running(folder, workers) as (_, port):
        requests = [
            posters.request(_PATH, {"name": f"writer {number}", "body": posters.TEXT})
            for number in range(writers)
        ]
        try:
            found.posts = posters.run(port, list(map(itertools.repeat, requests)), seconds).posts
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
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_PATIENCE)
    with contextlib.closing(connection):
        connection.request("GET", f"{_PATH}&limit=1")
        total: int = json.loads(connection.getresponse().read())["total"]
        return total


def line(workers: int, found: Sequence[Start]) -> str:
    """Return a row of the table."""
    failed = sum(bool(each.faults) for each in found)
    return f"| {workers} | {len(found)} | {sum(each.posts for each in found):,} | {failed} |"


def measure(chosen: argparse.Namespace) -> dict[int, list[Start]]:
    """Start the product repeatedly; keep and name the log of each start with a fault."""
    numbers = [int(each) for each in chosen.workers.split(",")]
    found: dict[int, list[Start]] = {number: [] for number in numbers}
    for count in range(chosen.starts):
        workers = numbers[count % len(numbers)]
        with tempfile.TemporaryDirectory(prefix="start-") as name:
            start = begin(Path(name), workers, chosen.writers, chosen.seconds)
        found[workers].append(start)
        if start.faults:
            kept = Path(tempfile.mkdtemp(prefix="starts-")) / "log"
            kept.write_text(start.log, encoding="utf-8")
            sys.stderr.write(f"{count}, {workers} workers: {start.faults}; {kept}\n")
    return found


def bars(*, quick: bool) -> Iterator[Bar]:
    """Start under load."""
    short = ["--starts", "1", "--workers", "2", "--seconds", "0.5"]
    for workers, found in measure(asked(short if quick else [])).items():
        failed = sum(bool(each.faults) for each in found)
        detail = f"of {len(found)} starts with {sum(each.posts for each in found):,} posts"
        yield Bar(f"starts, {workers} workers", failed, 0, detail, unit="faults")


def asked(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--starts", type=int, default=300, help="in all, over all numbers of workers"
    )
    parser.add_argument("--workers", default="2,4,8")
    parser.add_argument("--writers", type=int, default=posters.CLIENTS)
    parser.add_argument("--seconds", type=float, default=1.5)
    return parser.parse_args(arguments)


def main() -> None:
    """Run all starts and print the table."""
    print("| workers | starts | posts | starts with a fault |\n|---:|---:|---:|---:|")
    for each in measure(asked(None)).items():
        print(line(*each))


if __name__ == "__main__":
    main()
