"""Start the product under load: check that every process survives its first seconds.

Each start runs the product as scripts/serve does, with varying numbers of workers, on new data. As
soon as the first worker answers, while others are still starting, eight writers post to one thread,
each on its own connection. If a worker dies, gunicorn's log shows this, with the stacks of all
threads (faulthandler). A closed connection and a missing acknowledged comment also count as
failures. The logs of failed starts are kept.
"""

import dataclasses
import itertools
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks import clients, servers
from benchmarks.bars import Bar

WORKERS = (2, 4, 8)
EACH = 100  # Starts with each number of workers.
SECONDS, QUICK_SECONDS = 1.5, 0.5  # How long the writers post.
_DIED = re.compile(r"Fatal Python error|was sent SIG|Traceback|exited with code|WORKER TIMEOUT")
_PATH = "/api/v1/sites/demo/comments?thread=page"


@dataclasses.dataclass(slots=True)
class Start:
    """The result of one start. `faults` is empty if the start succeeded."""

    posts: int = 0
    faults: list[str] = dataclasses.field(default_factory=list)
    log: str = ""


def begin(folder: Path, workers: int, seconds: float) -> Start:
    """Start once, under load."""
    found, log = Start(), folder / "log"
    with servers.product(folder / "data", "/healthz", workers=workers, log=log) as server:
        requests = [
            clients.post_request(_PATH, {"name": f"writer {number}", "body": clients.TEXT})
            for number in range(clients.CLIENTS)
        ]
        posters = list(map(itertools.repeat, requests))
        try:
            found.posts = clients.post(server.port, posters, seconds).posts
        except (SystemExit, OSError) as error:
            found.faults.append(f"a connection failed: {error}")
        else:
            total = json.loads(server.ask(f"{_PATH}&limit=1")[1])["total"]
            if total != found.posts:
                found.faults.append(f"{found.posts} comments were acknowledged, {total} exist")
    found.log = log.read_text(encoding="utf-8", errors="replace")
    found.faults += [line for line in found.log.splitlines() if _DIED.search(line)]
    return found


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
